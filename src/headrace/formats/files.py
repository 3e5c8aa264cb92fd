"""Read and write whole files: input is untrusted and limited in size, output is written completely or not at all."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import stat
import sys
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from headrace.model.errors import BadFile
from headrace.model.units import show_size

MAX_BYTES = 2**30
"""Default size limit of a file, after decompression."""
STDOUT = "-"
"""The path that stands for stdout when writing."""
STDIN = "-"
"""The path that stands for stdin when reading."""
OTHER_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".pdf", ".eps", ".ps")
"""Suffixes of pictures that Headrace does not write: it draws SVG."""
BOMB_FLOOR = 16_000_000
"""Decompressed size up to which any compression ratio is accepted."""
BOMB_RATIO = 200
"""Compression ratio beyond which larger files are refused; real JSON is near 30."""
_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
"""What some editors write before UTF-8 text."""
_GZIP_MAGIC = b"\x1f\x8b"


def read_file(path: str | Path, *, limit: int = MAX_BYTES) -> bytes:
    """The contents of a regular file, decompressed if its first bytes say gzip; without a byte order mark."""
    where = str(path)
    with _open_regular(path) as file:
        try:
            packed = file.peek(2)[:2] == _GZIP_MAGIC  # type: ignore[attr-defined]
            data = _unpack(file, where, limit) if packed else file.read(limit + 1)
        except OSError as error:
            raise BadFile(
                f"cannot be read: {error.strerror}", where=where, hint="check the disk and try again"
            ) from None
    if len(data) > limit:
        raise _too_large(where, limit)
    return data.removeprefix(_BOM)


def read_head(path: str | Path, size: int = 65536) -> bytes:
    """The first bytes of a file, decompressed if it is gzip; the rest is not read."""
    where = str(path)
    with _open_regular(path) as file:
        try:
            head = file.read(size)
        except OSError as error:
            raise BadFile(
                f"cannot be read: {error.strerror}", where=where, hint="check the disk and try again"
            ) from None
    if head[:2] != _GZIP_MAGIC:
        return head.removeprefix(_BOM)
    member = zlib.decompressobj(wbits=31)
    try:
        text = member.decompress(head, size)
    except zlib.error as error:
        raise _corrupt(where, error) from None
    if len(head) < size and len(text) < size and not member.eof:
        raise _cut_short(where, len(head))
    return text.removeprefix(_BOM)


def write_file(
    path: str | Path, data: bytes, *, compress: bool | None = None, make_folder: bool = False
) -> None:
    """Write all of `data` or nothing, to a file or, for `-`, to stdout.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and then take the name. Symbolic links
    are followed; a device or a pipe is written to and stays what it is. The same data gives the same bytes: a gzip
    header carries no time.

    Parameters
    ----------
    path
        The file, or `-`.
    data
        The contents.
    compress
        Whether to gzip them; by default if the name ends in `.gz`.
    make_folder
        Create the folder if it does not exist.

    Raises
    ------
    BadFile
        If the file cannot be written.
    """
    if is_stdout(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if make_folder:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error.strerror) from None
    require_target(path)
    if target.name.lower().endswith(".gz") if compress is None else compress:
        data = gzip.compress(data, compresslevel=6, mtime=0)
    if target.exists() and not target.is_file():
        _write_through(target, data)
        return
    target = Path(os.path.realpath(target))
    scratch = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.tmp")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except OSError as error:
        raise _unwritable(path, error.strerror) from None
    finally:
        with suppress(OSError):
            scratch.unlink()


def _write_through(target: Path, data: bytes) -> None:
    """Write to a device or a pipe; a pipe that nobody reads is an error, not a reason to wait."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "wb") as file:
            os.set_blocking(descriptor, True)
            file.write(data)
    except OSError as error:
        raise _unwritable(target, error.strerror) from None


def is_stdout(path: str | Path | None) -> bool:
    """Whether a path stands for stdout."""
    return path is not None and str(path) == STDOUT


def require_svg(*paths: str | Path | None) -> None:
    """Refuse names of pictures that promise something other than SVG; those without an ending promise nothing.

    >>> require_svg("plan.svg", "-", None)
    >>> require_svg("plan.png")
    Traceback (most recent call last):
        ...
    headrace.model.errors.BadFile: plan.png: pictures are drawn as SVG, not PNG (try: plan.svg)
    """
    for path in paths:
        suffix = "" if path is None else Path(path).suffix
        if path is not None and suffix.lower() not in ("", ".svg"):
            kind = suffix[1:].upper()
            raise BadFile(
                f"pictures are drawn as SVG, not {kind}",
                where=str(path),
                hint=str(Path(path).with_suffix(".svg")),
            )


def require_target(*paths: str | Path | None) -> None:
    """Refuse paths that `write_file` could not write to: called before long work, so that it is not done in vain."""
    for path in paths:
        if path is None or is_stdout(path):
            continue
        target = Path(path)
        try:
            if not target.name or target.is_dir():
                raise _unwritable(path, "Is a directory")
            folder = Path(os.path.realpath(target)).parent
            if not folder.is_dir():
                raise _unwritable(path, "No such file or directory")
            special = target.exists() and not target.is_file()
        except (OSError, ValueError) as error:
            raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from None
        if not (os.access(target, os.W_OK) if special else os.access(folder, os.W_OK | os.X_OK)):
            raise _unwritable(path, "Permission denied")


def _unwritable(path: str | Path, reason: str | None) -> BadFile:
    return BadFile(
        f"cannot be written: {reason}",
        where=str(path),
        hint="choose a file in an existing folder that you can write to",
    )


def encode_text(text: str, where: str) -> bytes:
    """Text as UTF-8; a lone surrogate is an error."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        bad = text[max(0, error.start - 20) : error.end + 20]
        raise BadFile(f"the text {bad!r} cannot be written as UTF-8", where=where, hint="rename it") from None


@cache
def _stdin() -> bytes:
    """All of stdin, read once: what it holds is asked for before it is read as that."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadFile("nothing is piped in", where="stdin", hint="headrace ... - < FILE")
    return sys.stdin.buffer.read(MAX_BYTES + 1)


def _open_regular(path: str | Path) -> BinaryIO:
    """Open for reading without blocking; pipes, sockets and devices are refused, except stdin (`-`)."""
    where = str(path)
    if where == STDIN:
        return io.BufferedReader(io.BytesIO(_stdin()))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadFile(
            f"cannot be opened: {reason}", where=where or "''", hint="check the name and the permissions"
        ) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        raise BadFile(f"is {what}, not a file", where=where, hint="give the name of a regular file")
    return os.fdopen(descriptor, "rb")


def _unpack(file: BinaryIO, where: str, limit: int) -> bytes:
    """All members of a gzip file, in bounded chunks; stops as soon as a limit is exceeded."""
    out = io.BytesIO()  # hands out its buffer without a second copy
    packed = 0
    member = zlib.decompressobj(wbits=31)
    rest = b""
    try:
        while True:
            if not rest:
                rest = file.read(_CHUNK)
                packed += len(rest)
                if not rest:
                    break
            if member.eof:
                if not rest.startswith(_GZIP_MAGIC):
                    break  # padding after the last member
                member = zlib.decompressobj(wbits=31)
            out.write(member.decompress(rest, _CHUNK))
            rest = member.unused_data if member.eof else member.unconsumed_tail
            _check_growth(out.tell(), packed, where, limit)
    except zlib.error as error:
        raise _corrupt(where, error) from None
    if not member.eof:
        raise _cut_short(where, packed)
    return out.getvalue()


def _check_growth(unpacked: int, packed: int, where: str, limit: int) -> None:
    if unpacked > limit:
        raise _too_large(where, limit)
    if unpacked > BOMB_FLOOR and unpacked > BOMB_RATIO * packed:
        raise BadFile(
            f"decompresses to more than {BOMB_RATIO} times its size ({packed} bytes gave {unpacked} so far)",
            where=where,
            hint="if the file is genuine, decompress it first and give the plain file",
        )


def _too_large(where: str, limit: int) -> BadFile:
    return BadFile(f"is larger than {show_size(limit)} ({limit} bytes)", where=where, hint="split it")


def _corrupt(where: str, error: zlib.error) -> BadFile:
    return BadFile(f"the gzip data is corrupt: {error}", where=where, hint="get a fresh copy of the file")


def _cut_short(where: str, packed: int) -> BadFile:
    return BadFile(
        f"the gzip data is truncated after {packed} bytes", where=where, hint="get a fresh copy of the file"
    )
