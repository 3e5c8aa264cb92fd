"""Buffers stored in a file between two of our processes, each preceded by its length."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from headrace.model.errors import BadFile, TaskFailed
from headrace.model.units import show_size

_LENGTH = struct.Struct("<I")


class SpoolWriter:
    """Appends buffers to a file, up to a maximum number of bytes."""

    def __init__(self, path: Path, limit: int, where: str) -> None:
        self._file: BinaryIO = path.open("wb")
        self._limit = limit
        self._where = where
        self.buffers = 0
        self.size = 0
        """Total bytes of buffers, without length prefixes."""

    def append(self, data: bytes | memoryview) -> None:
        """Append one buffer."""
        if self.size + len(data) > self._limit:
            raise TaskFailed(
                f"the spool would exceed {show_size(self._limit)}",
                where=self._where,
                hint="give the trial run less input, or a larger --spool",
            )
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        self.buffers += 1
        self.size += len(data)

    def close(self) -> None:
        self._file.close()


def read_spool(path: Path, largest: int) -> Iterator[bytes]:
    """The buffers of a file, one by one; none may be larger than `largest` bytes."""
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else largest + 1
            data = file.read(size) if size <= largest else b""
            if size > largest or len(data) < size:
                raise BadFile("a spooled buffer is corrupt", where=str(path), hint="run the trial again")
            yield data
