"""The file store of a worker: the contents of the `StagedFile` values that the worker has, for one run.

A content is held by the keys of the engine whose values refer to it. When the worker has released the last of them, the
content is removed; the whole store is removed with its run.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.model.errors import TaskFailed
from headrace.runtime.file_trees import (
    Tree,
    TreeWriter,
    checksum_of_tree,
    link_tree,
    remove_tree,
    scan,
    signature,
)
from headrace.runtime.files import FileData, Scratch, StagedFile, is_small, scan_output, taken_over


@dataclass(slots=True)
class Content:
    """A file or folder in a store."""

    path: Path
    tree: Tree
    owned: bool
    """Whether it is the store's own, rather than an original that is read in place."""
    checksum: str = ""
    before: tuple[tuple[int, int], ...] = ()
    """Sizes and times of change of its files when it came."""

    def is_unchanged(self) -> bool:
        """Whether it looks as it did when it came: O(entries)."""
        try:
            return signature(self.path, self.tree) == self.before
        except OSError:
            return False

    def is_intact(self) -> bool:
        """Whether its checksum is right: O(bytes)."""
        try:
            found = checksum_of_tree(self.path, self.tree)
        except OSError:
            return False
        return not self.checksum or found == self.checksum


@dataclass(slots=True)
class Arrival:
    """An input that the client sends to this worker."""

    done: threading.Event = field(default_factory=threading.Event)
    progress: int = 0
    """Messages so far, to see that something moves."""
    problem: str = ""
    writer: TreeWriter | None = None


class FileStore:
    """The contents that one worker has of one run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileStore("0run", Path(folder) / "store")
    ...     made = Path(folder) / "big"
    ...     _ = made.write_bytes(bytes(100_000))
    ...     staged = store.adopt(made, "big", "item", move=True)
    ...     store.hold(staged.token, "key")
    ...     before = store.find(staged.token) is not None
    ...     store.release("key")
    ...     before, store.find(staged.token)
    (True, None)
    """

    def __init__(self, run: str, folder: Path) -> None:
        self.run = run
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._contents: dict[str, Content] = {}
        self._keys: dict[str, set[Any]] = {}
        """By token: the keys that hold it."""
        self._tokens: dict[Any, set[str]] = {}
        self._lock = threading.Lock()
        self.arrivals: dict[str, Arrival] = {}

    def new_token(self) -> str:
        return f"{self.run}-{secrets.token_hex(8)}"

    def new_path(self) -> Path:
        """A name in the store's folder that is used once."""
        return self.folder / secrets.token_hex(8)

    def find(self, token: str) -> Content | None:
        return self._contents.get(token)

    def tokens_of(self, key: Any) -> set[str]:
        return set(self._tokens.get(key, ()))

    def keys_of(self, token: str) -> set[Any]:
        return set(self._keys.get(token, ()))

    def adopt(self, path: Path, name: str, item: str, *, move: bool) -> FileData | StagedFile:
        """Take over what a task has made; small files become values. O(bytes): the checksum is computed."""
        tree = scan_output(path, item)
        if is_small(tree):
            return FileData(name, path.read_bytes(), tree.entries[0].executable)
        target = self.new_path()
        try:
            checksum = taken_over(path, tree, target, move=move)
        except OSError as error:
            remove_tree(target)
            raise TaskFailed(f"its output {item!r} cannot be stored: {error.strerror}") from None
        return self.add(self.new_token(), name, target, tree, checksum)

    def add(
        self, token: str, name: str, path: Path, tree: Tree, checksum: str, *, owned: bool = True
    ) -> StagedFile:
        """Enter what is at a path already."""
        content = Content(path, tree, owned, checksum, signature(path, tree))
        with self._lock:
            self._contents[token] = content
        return StagedFile(name, tree.size, token, checksum, tree.is_folder)

    def refer(self, path: Path, name: str, token: str = "", checksum: str = "") -> StagedFile:
        """Enter an original that is read in place."""
        return self.add(token or self.new_token(), name, path, scan(path), checksum, owned=False)

    def hold(self, token: str, key: Any) -> None:
        """A value of this key refers to a content."""
        with self._lock:
            self._keys.setdefault(token, set()).add(key)
            self._tokens.setdefault(key, set()).add(token)

    def release(self, key: Any) -> None:
        """The worker no longer has the value of this key."""
        if key not in self._tokens:
            return
        gone = []
        with self._lock:
            for token in self._tokens.pop(key, ()):
                holders = self._keys[token]
                holders.discard(key)
                if not holders:
                    del self._keys[token]
                    gone.append(self._contents.pop(token, None))
        for content in gone:
            if content is not None and content.owned:
                remove_tree(content.path)

    def show(self, scratch: Scratch, staged: StagedFile, *, name: str = "", literal: bool = False) -> Path:
        """A content as a file or folder for a task."""
        content = self.find(staged.token)
        if content is None or not content.is_unchanged():
            problem = "is not on this worker" if content is None else "has changed since it was stored"
            raise TaskFailed(
                f"the file {staged.name!r} {problem}", hint="inputs are read-only: change a copy"
            )
        return scratch.link(
            name or staged.name, content.path, content.tree, owned=content.owned, literal=literal
        )

    def take_link(self, token: str, name: str, source: Path, tree: Tree, checksum: str) -> bool:
        """Enter a content of another worker on this file system by hard links; False if it is not intact."""
        target = self.new_path()
        try:
            link_tree(source, tree, target)
            found = checksum_of_tree(target, tree)
        except OSError:
            remove_tree(target)
            return False
        if checksum and found != checksum:
            remove_tree(target)
            return False
        self.add(token, name, target, tree, found)
        return True

    def remove(self) -> None:
        """Remove everything: the run is over."""
        shutil.rmtree(self.folder, ignore_errors=True)


def staged_in(value: Any) -> Iterator[StagedFile]:
    """The staged files of a value of the engine: the value itself, or outputs of a task with several."""
    if isinstance(value, StagedFile):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            if isinstance(each, StagedFile):
                yield each
