"""File-like data, and the scratch folder in which a task sees it as files."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from headrace.model.errors import TaskFailed

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class FileData:
    """The name and content of a file: what commands read and write.

    A Python task gets it as a path to a read-only copy that exists while the task runs.
    """

    name: str
    data: bytes

    def __sizeof__(self) -> int:
        return 64 + len(self.data)


@dataclass(frozen=True, slots=True)
class Generated:
    """An input that is generated where it is used: this many zero bytes."""

    size: int


class Scratch:
    """The folder of one task, created on first use and removed when the task ends.

    Arbitrary item names become plain file names: never a path outside the folder, never an option.

    >>> with Scratch() as scratch:
    ...     [scratch.place(name).name for name in ("a.txt", "../../x", "-rf", "a.txt", "a; rm -rf ~")]
    ['a.txt', '1_.._.._x', '2_-rf', '3_a.txt', '4_a__rm_-rf__']
    """

    def __init__(self) -> None:
        self._root: Path | None = None
        self._taken: set[str] = set()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    @property
    def root(self) -> Path:
        """The task's own folder; `folder` in it holds the items."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="headrace-"))
            self.folder.mkdir()
        return self._root

    @property
    def folder(self) -> Path:
        return self.root / "items"

    def place(self, name: str) -> Path:
        """A path in the folder for an item of this name; requesting a name twice gives two paths."""
        plain = name
        if not _PLAIN_NAME.match(name) or name in self._taken:
            plain = f"{len(self._taken)}_{_NOT_PLAIN.sub('_', name)[-100:]}"
            while plain in self._taken:
                plain = f"0{plain}"
        self._taken.add(plain)
        return self.folder / plain

    def write(self, name: str, value: Any) -> Path:
        """Write a value as a read-only file."""
        path = self.place(name)
        if isinstance(value, FileData):
            path.write_bytes(value.data)
        elif isinstance(value, bytes | bytearray | memoryview):
            path.write_bytes(value)
        elif isinstance(value, str):
            path.write_text(value, encoding="utf-8", newline="")
        elif isinstance(value, np.ndarray):
            with path.open("wb") as file:
                np.save(file, value, allow_pickle=False)
        else:
            raise TaskFailed(
                f"a {type(value).__name__} cannot be passed to a command as a file",
                where=f"item {name!r}",
                hint="return bytes, text or a numpy array from the task that produces it",
            )
        path.chmod(0o444)
        return path
