"""Results as files, in a format that depends on their type, written atomically."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from headrace.model.errors import TaskFailed
from headrace.runtime.files import FileData


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
