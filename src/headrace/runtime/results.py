"""Results as files, in a format that depends on their type, written atomically."""

from __future__ import annotations

import io
import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from headrace.model.errors import BadFile, TaskFailed
from headrace.runtime.durable import write_whole
from headrace.runtime.file_trees import TreeReader, checksum_of_tree, copy_tree, remove_tree, scan
from headrace.runtime.files import FileData, StagedFile


def encode(value: Any, where: str) -> tuple[bytes, str]:
    """The file content of a value, and a matching suffix.

    >>> encode({"mean": 2}, "a result")
    (b'{\\n  "mean": 2\\n}\\n', '.json')
    >>> encode("text", "a result")[1], encode(b"raw", "a result")[0]
    ('.txt', b'raw')
    """
    if isinstance(value, FileData):
        return value.data, Path(value.name).suffix
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), ".bin"
    if isinstance(value, str):
        return value.encode("utf-8"), ".txt"
    try:
        if isinstance(value, np.ndarray):
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            return buffer.getvalue(), ".npy"
        plain = value.item() if isinstance(value, np.generic) else value
        return (json.dumps(plain, indent=2, allow_nan=False) + "\n").encode(), ".json"
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskFailed(
            f"a {type(value).__name__} cannot be written to a file: {error}",
            where=where,
            hint="return bytes, text, a numpy array or a JSON value",
        ) from None


def copy_result(staged: StagedFile, target: Path, private: bool) -> str:
    """Write a file or folder that is here as a whole or not at all, as a copy; returns its checksum.

    Raises
    ------
    BadFile
        If its contents are missing, or not what they were.
    OSError
        If it cannot be written.
    """
    if not staged.path:
        raise BadFile("its contents were not fetched", where=str(target), hint="run it again")
    source = Path(staged.path)
    try:
        tree = scan(source)
    except OSError as error:
        raise BadFile(f"cannot be read: {error.strerror}", where=str(source)) from None
    scratch = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.tmp")
    try:
        if tree.is_folder:
            copy_tree(source, tree, scratch)
            checksum = checksum_of_tree(scratch, tree)
        else:
            chunks = TreeReader(source, tree).chunks()
            checksum = write_whole(scratch, chunks, mode=0o600 if private else 0o666, durable=not private)
            if tree.entries[0].executable:
                scratch.chmod(scratch.stat().st_mode | 0o111)
        if staged.checksum and checksum != staged.checksum:
            raise BadFile("its contents are damaged", where=str(source), hint="resume the run")
        scratch.rename(target)
    except BaseException:
        remove_tree(scratch)
        raise
    return checksum
