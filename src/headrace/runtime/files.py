"""Files as data: their values, and the scratch folder in which a task sees them.

A file of at most `INLINE` bytes is a `FileData`: its contents travel with the value. A larger file, or a folder, is a
`StagedFile`: a description whose contents are in the file store of each worker that has a copy of the value
(`file_store.py`), and move with it (`dask_files.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from headrace.model.errors import HeadraceError, TaskFailed, UsageError
from headrace.model.safe_path import safe_path
from headrace.runtime.file_trees import (
    Tree,
    checksum_of_tree,
    copy_tree,
    link_tree,
    make_read_only,
    scan,
    signature,
)

INLINE = 1 << 16
"""Bytes up to which the contents of a file travel with its value."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class FileData:
    """The name and content of a small file: what commands read and write.

    A Python task gets it as a path to a read-only copy that exists while the task runs.
    """

    name: str
    data: bytes
    executable: bool = False

    def __sizeof__(self) -> int:
        return 64 + len(self.data)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A large file or a folder, without its contents."""

    name: str
    size: int
    """Bytes of contents."""
    token: str
    """What file stores know it by: the run's token, a dash, and a name that is used once."""
    checksum: str = ""
    """See `checksum_of_tree`; "" for an input that is read in place, until it is sent somewhere."""
    folder: bool = False
    path: str = ""
    """Outside workers: where the contents are."""

    def __sizeof__(self) -> int:
        return 64 + self.size

    @property
    def run(self) -> str:
        """The token of the run that it belongs to."""
        return self.token.partition("-")[0]


@dataclass(frozen=True, slots=True)
class File:
    """What a Python task returns to make a file or folder its output, instead of a value.

    The file is moved if it is in the task's own folder, and copied otherwise.

    >>> import headrace as hr
    >>> def film() -> hr.File:
    ...     target = hr.task_folder() / "film.raw"
    ...     target.write_bytes(bytes(10))
    ...     return hr.File(target)
    """

    path: str | os.PathLike[str]


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

    def __init__(self, parent: Callable[[], Path | None] = lambda: None) -> None:
        self._parent = parent
        """Says where it is made; None: where temporary files are."""
        self._root: Path | None = None
        self._taken: set[str] = set()
        self._linked: list[tuple[str, Path, Tree, tuple[tuple[int, int], ...]]] = []

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
            self._root = Path(tempfile.mkdtemp(prefix="headrace-", dir=self._parent()))
            self.folder.mkdir()
        return self._root

    @property
    def folder(self) -> Path:
        return self.root / "items"

    def place(self, name: str, *, literal: bool = False) -> Path:
        """A path in the folder for an item of this name; requesting a name twice gives two paths.

        With `literal`, the path is the name itself, in sub-folders if it has slashes; BadFile if it cannot be.
        """
        if literal:
            path = self.folder / safe_path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            return path
        plain = name
        if not _PLAIN_NAME.match(name) or name in self._taken:
            plain = f"{len(self._taken)}_{_NOT_PLAIN.sub('_', name)[-100:]}"
            while plain in self._taken:
                plain = f"0{plain}"
        self._taken.add(plain)
        return self.folder / plain

    def write(self, name: str, value: Any, *, literal: bool = False) -> Path:
        """Write a value as a read-only file."""
        path = self.place(name, literal=literal)
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
        path.chmod(0o555 if isinstance(value, FileData) and value.executable else 0o444)
        return path

    def link(self, name: str, source: Path, tree: Tree, *, owned: bool, literal: bool = False) -> Path:
        """Show a stored file or folder under a name: hard links, or a symbolic link to what is not `owned`."""
        path = self.place(name, literal=literal)
        if owned:
            link_tree(source, tree, path)
        else:
            path.symlink_to(source.absolute())
        self._linked.append((name, source, tree, signature(source, tree)))
        return path

    def require_unchanged(self) -> None:
        """Raise TaskFailed if a linked file is not what it was: others read the same file."""
        for name, source, tree, before in self._linked:
            try:
                same = signature(source, tree) == before
            except OSError:
                same = False
            if not same:
                raise TaskFailed(
                    f"the file of its input {name!r} has changed while it ran",
                    hint="inputs are read-only: let the task change a copy",
                )


_current = threading.local()


def set_current_scratch(scratch: Scratch | None) -> None:
    """What `task_folder` returns in this thread."""
    _current.scratch = scratch


def task_folder() -> Path:
    """In a Python task: an empty folder of its own, removed when it ends.

    Raises
    ------
    UsageError
        Outside a task.

    >>> task_folder()
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: no task runs in this thread (try: call it in the function of a task)
    """
    scratch = getattr(_current, "scratch", None)
    if scratch is None:
        raise UsageError("no task runs in this thread", hint="call it in the function of a task")
    folder: Path = scratch.root / "own"
    folder.mkdir(exist_ok=True)
    return folder


def scan_output(path: Path, item: str) -> Tree:
    """What a task has left at a path; TaskFailed if it cannot be an item."""
    try:
        return scan(path)
    except OSError as error:
        raise TaskFailed(f"its output {item!r} cannot be read: {error.strerror}: {path}") from None
    except HeadraceError as error:
        raise TaskFailed(f"its output {item!r}: {error.problem}", hint=error.hint) from None


def is_small(tree: Tree) -> bool:
    """Whether contents travel with the value."""
    return not tree.is_folder and tree.size <= INLINE


def taken_over(path: Path, tree: Tree, target: Path, *, move: bool) -> str:
    """Put a file or folder at a new place, by renaming it or else by a copy; returns its checksum.

    What has other names, or is a symbolic link, is copied: it is made read-only here.
    """
    if not (move and _has_one_name(path, tree) and _renamed(path, target)):
        copy_tree(path, tree, target)
    make_read_only(target, tree)
    return checksum_of_tree(target, tree)


def _has_one_name(path: Path, tree: Tree) -> bool:
    return not path.is_symlink() and all((path / e.path).stat().st_nlink == 1 for e in tree.files)


def _renamed(path: Path, target: Path) -> bool:
    try:
        path.rename(target)
    except OSError:  # another file system
        return False
    return True
