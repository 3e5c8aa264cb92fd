"""Results of runs as a page can show them: images, arrays, tables, text. Nothing is executed or unpickled."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.units import show_size

MOST_IMAGE = 8_000_000
MOST_TEXT = 20_000
MOST_ROWS = 50
MOST_COLUMNS = 30
THUMBNAIL = 256
"""Pixels of the longer side of the picture of an array."""
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


def preview(path: Path) -> dict[str, Any]:
    """What a file holds, by its first bytes and its name: O(bytes shown), for arrays O(elements)."""
    if path.is_dir():
        names = sorted(one.name + ("/" if one.is_dir() else "") for one in path.iterdir())
        return {"kind": "folder", "text": "\n".join(names[:200]), "size": f"{len(names)} entries"}
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(MOST_TEXT)
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", where=str(path)) from None
    shown: dict[str, Any] = {"size": show_size(size)}
    image = next((kind for mark, kind in _IMAGES.items() if head.startswith(mark)), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        image = "image/webp"
    if not image and path.suffix == ".svg" and b"<svg" in head:
        image = "image/svg+xml"  # shown by <img>, where scripts do not run
    if image and size <= MOST_IMAGE:
        data = base64.b64encode(path.read_bytes()).decode()
        return shown | {"kind": "image", "source": f"data:{image};base64,{data}"}
    if head.startswith(b"\x93NUMPY"):
        return shown | _array(path)
    return shown | _text(head, path.suffix, whole=size <= MOST_TEXT)


def _array(path: Path) -> dict[str, Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        return {"kind": "text", "text": f"not a readable array: {error}"}
    facts = [["shape", " by ".join(map(str, array.shape)) or "scalar"], ["type", str(array.dtype)]]
    answer: dict[str, Any] = {"kind": "array", "facts": facts}
    if array.size and array.dtype.kind in "biuf":
        finite = np.asarray(array, float)
        finite = finite[np.isfinite(finite)]
        if len(finite.ravel()):
            facts += [
                ["least", f"{finite.min():.6g}"],
                ["mean", f"{finite.mean():.6g}"],
                ["most", f"{finite.max():.6g}"],
            ]
        answer["text"] = np.array2string(np.asarray(array), threshold=60, edgeitems=4)[:MOST_TEXT]
        if array.ndim == 2 and min(array.shape) > 1:
            answer["source"] = _thumbnail(np.asarray(array, float))
    return answer


def _thumbnail(values: np.ndarray) -> str:
    """A grey picture of a matrix, as PNG: black is the least value."""
    step = max(1, math.ceil(max(values.shape) / THUMBNAIL))
    small = values[::step, ::step]
    small = np.where(np.isfinite(small), small, 0.0)
    spread = float(small.max() - small.min()) or 1.0
    grey = ((small - small.min()) / spread * 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _text(head: bytes, suffix: str, *, whole: bool) -> dict[str, Any]:
    if b"\0" in head:
        lines = [head[i : i + 16].hex(" ") for i in range(0, min(len(head), 512), 16)]
        return {"kind": "bytes", "text": "\n".join(lines)}
    text = head.decode(errors="replace")
    if suffix in (".csv", ".tsv"):
        rows = list(csv.reader(io.StringIO(text), delimiter="\t" if suffix == ".tsv" else ","))
        rows = rows if whole else rows[:-1]  # the last one may be cut
        if rows:
            return _table(rows[0], rows[1:])
    if whole and text.lstrip()[:1] in ("[", "{"):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, list) and read and all(isinstance(one, dict) for one in read):
            names = list(dict.fromkeys(name for one in read for name in one))
            return _table(names, [[str(one.get(name, "")) for name in names] for one in read])
        if isinstance(read, dict | list):
            return {"kind": "text", "text": json.dumps(read, indent=1, ensure_ascii=False)[:MOST_TEXT]}
    return {"kind": "text", "text": text, "cut": not whole}


def _table(headers: list[str], rows: list[list[str]]) -> dict[str, Any]:
    shown = [[cell[:200] for cell in row[:MOST_COLUMNS]] for row in rows[:MOST_ROWS]]
    return {"kind": "table", "headers": headers[:MOST_COLUMNS], "rows": shown, "cut": len(rows) > MOST_ROWS}
