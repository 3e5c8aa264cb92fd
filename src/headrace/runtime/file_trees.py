"""Files and folders as one stream of bytes: scanned, read in ranges, written in sequence, linked, and checksummed.

A tree is a file, or a folder with everything in it. Its bytes are those of its files, in the order of its entries.
Nothing here holds more than a chunk in memory. Symbolic links that lead out of a folder are refused, as are devices,
pipes and sockets, and names that are no plain relative paths.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, TypeAlias

from headrace.model.errors import BadFile
from headrace.model.safe_path import safe_path

CHUNK = 1 << 20
"""Bytes per message and per read."""
MOST_ENTRIES = 200_000
_READ_AT_ONCE = 1 << 28
"""Bytes up to which a file is read to see whether it has changed: about a third of a second."""
_CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES})

EntryKind: TypeAlias = Literal["file", "folder", "link"]
Row: TypeAlias = tuple[str, str, int, bool, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or symbolic link of a tree."""

    path: str
    """Relative to the tree, with slashes; "" for a tree that is a single file."""
    kind: EntryKind
    size: int = 0
    executable: bool = False
    target: str = ""
    """Of a symbolic link."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What a file or folder consists of; parents come before what they contain."""

    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    @property
    def is_folder(self) -> bool:
        return not (len(self.entries) == 1 and self.entries[0].path == "")

    @property
    def files(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.kind == "file")

    def rows(self) -> list[Row]:
        """As a message."""
        return [(e.path, e.kind, e.size, e.executable, e.target) for e in self.entries]

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[object]]) -> Tree:
        """Of a message, which is not trusted: every entry lies in a folder that is listed before.

        >>> Tree.of_rows([("../x", "file", 1, False, "")])
        Traceback (most recent call last):
            ...
        headrace.model.errors.BadFile: '../x' leaves its folder (try: use plain relative paths)
        """
        entries: list[Entry] = []
        folders = {"."}
        for path, kind, size, executable, target in rows:
            if not (
                isinstance(path, str) and isinstance(target, str) and isinstance(size, int) and size >= 0
            ):
                raise BadFile("the description of a folder is damaged")
            if kind not in ("file", "folder", "link") or len(entries) >= MOST_ENTRIES:
                raise BadFile("the description of a folder is damaged")
            if path:
                safe_path(path)
                if str(PurePosixPath(path).parent) not in folders:
                    raise BadFile(f"{path!r} is in no folder", hint="use plain relative paths")
            elif kind != "file" or entries:
                raise BadFile("the description of a folder is damaged")
            if kind == "folder":
                folders.add(path)
            entries.append(Entry(path, kind, size if kind == "file" else 0, bool(executable), target))
        if len({entry.path for entry in entries}) < len(entries) or ("" in {e.path for e in entries[1:]}):
            raise BadFile("the description of a folder is damaged")
        return cls(tuple(entries))


def scan(root: Path) -> Tree:
    """What is at a path: O(entries), reads no contents.

    Raises
    ------
    BadFile
        If it is neither a file nor a folder, or contains something that cannot be moved.
    OSError
        If it cannot be read.
    """
    about = root.stat()
    if stat.S_ISREG(about.st_mode):
        return Tree((_file("", about),))
    if not stat.S_ISDIR(about.st_mode):
        raise BadFile("is neither a file nor a folder", where=str(root), hint="give a file or a folder")
    return Tree(tuple(_scan_folder(root, "", root.resolve())))


def _scan_folder(folder: Path, prefix: str, top: Path) -> Iterator[Entry]:
    waiting = [(folder, prefix)]
    count = 0
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as found:
            inside = sorted(found, key=lambda each: each.name)
        for each in inside:
            count += 1
            if count > MOST_ENTRIES:
                raise BadFile(
                    f"more than {MOST_ENTRIES} entries", where=str(top), hint="pack them into a file"
                )
            path = f"{prefix}{each.name}"
            safe_path(path, str(top))
            if each.is_symlink():
                yield _link(Path(each.path), path, top)
            elif each.is_dir(follow_symlinks=False):
                yield Entry(path, "folder")
                waiting.append((Path(each.path), f"{path}/"))
            elif each.is_file(follow_symlinks=False):
                yield _file(path, each.stat(follow_symlinks=False))
            else:
                raise BadFile(f"{path!r} is neither a file nor a folder", where=str(top), hint="remove it")


def _file(path: str, about: os.stat_result) -> Entry:
    return Entry(path, "file", about.st_size, bool(about.st_mode & stat.S_IXUSR))


def _link(link: Path, path: str, top: Path) -> Entry:
    target = link.readlink()
    if target.is_absolute() or not _stays_inside(link, top):
        raise BadFile(
            f"the link {path!r} leads to {str(target)!r}, out of its folder",
            where=str(top),
            hint="replace the link by what it leads to",
        )
    return Entry(path, "link", target=str(target))


def _stays_inside(link: Path, top: Path) -> bool:
    try:
        link.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:  # since Python 3.13, `resolve` does not mind
            return False
    try:
        return link.resolve().is_relative_to(top)
    except (OSError, RuntimeError):
        return False


class TreeReader:
    """Ranges of the bytes of a tree."""

    def __init__(self, root: Path, tree: Tree) -> None:
        self.root = root
        self.tree = tree
        self._files = tree.files
        self._starts = [0, *accumulate(entry.size for entry in self._files)]
        self.size = self._starts[-1]

    def read(self, offset: int, length: int = CHUNK) -> bytes:
        """At most this many bytes from an offset, fewer only at the end. Raises OSError if the tree has changed."""
        parts = []
        end = min(self.size, offset + length)
        index = bisect_right(self._starts, offset) - 1
        while offset < end:
            entry, start = self._files[index], self._starts[index]
            wanted = min(end, start + entry.size) - offset
            if wanted > 0:
                with (self.root / entry.path).open("rb") as file:
                    file.seek(offset - start)
                    part = file.read(wanted)
                if len(part) < wanted:
                    raise OSError(errno.EIO, "the file has become shorter", str(self.root / entry.path))
                parts.append(part)
                offset += wanted
            index += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self) -> Iterator[bytes]:
        """All bytes, in order."""
        for entry in self._files:
            left = entry.size
            with (self.root / entry.path).open("rb") as file:
                while left:
                    part = file.read(min(CHUNK, left))
                    if not part:
                        raise OSError(errno.EIO, "the file has become shorter", str(self.root / entry.path))
                    left -= len(part)
                    yield part


class TreeDigest:
    """The checksum of a tree: of a single file, BLAKE2b-256 of its contents, as `b2sum -l 256` prints it.

    That of a folder also covers names, kinds and sizes.
    """

    def __init__(self, tree: Tree) -> None:
        self._digest = hashlib.blake2b(digest_size=32)
        if tree.is_folder:
            self._digest.update(json.dumps(sorted(tree.rows()), ensure_ascii=True).encode())

    def update(self, data: bytes) -> None:
        self._digest.update(data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def checksum_of_tree(root: Path, tree: Tree | None = None) -> str:
    """The checksum of what is at a path: O(bytes). Raises OSError or BadFile if it cannot be read."""
    tree = scan(root) if tree is None else tree
    digest = TreeDigest(tree)
    for part in TreeReader(root, tree).chunks():
        digest.update(part)
    return digest.hexdigest()


class TreeWriter:
    """Writes a tree to a new place from its bytes, in order; what is written is read-only at the end."""

    def __init__(self, root: Path, tree: Tree) -> None:
        self.root = root
        self.tree = tree
        self._digest = TreeDigest(tree)
        self._files = iter(tree.files)
        self._file: BinaryIO | None = None
        self._left = 0
        self.checksum = ""
        """When it is complete."""
        _make_folders(root, tree)
        self._next()

    def write(self, data: bytes) -> None:
        """Append bytes, which may end one file and begin the next."""
        self._digest.update(data)
        rest = memoryview(data)
        while rest:
            if self._file is None:
                raise OSError(errno.EFBIG, "more bytes than announced")
            part = rest[: self._left]
            self._file.write(part)
            self._left -= len(part)
            rest = rest[len(part) :]
            if not self._left:
                self._next()

    def finish(self) -> str:
        """Complete the tree and return its checksum. Raises OSError if bytes are missing."""
        if self._file is not None:
            raise OSError(errno.EIO, "fewer bytes than announced")
        _add_links(self.root, self.tree)
        make_read_only(self.root, self.tree)
        self.checksum = self._digest.hexdigest()
        return self.checksum

    def close(self) -> None:
        """Give up."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next(self) -> None:
        """Open the next file that has contents."""
        self.close()
        for entry in self._files:
            self._file = (self.root / entry.path).open("xb")
            self._left = entry.size
            if entry.size:
                return
            self.close()


def link_tree(source: Path, tree: Tree, target: Path) -> None:
    """Make a tree of hard links to another one; files that cannot be linked are copied."""
    _make_folders(target, tree)
    for entry in tree.files:
        link_file(source / entry.path, target / entry.path)
    _add_links(target, tree)


def copy_tree(source: Path, tree: Tree, target: Path) -> None:
    """Make a copy of a tree that can be changed without changing the original."""
    _make_folders(target, tree)
    for entry in tree.files:
        shutil.copyfile(source / entry.path, target / entry.path)
        if entry.executable:
            (target / entry.path).chmod(0o755)
    _add_links(target, tree)


def link_file(source: Path, target: Path) -> None:
    """A hard link, or a copy if the file system does not allow one."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def make_read_only(root: Path, tree: Tree) -> None:
    """Files of a tree that belongs to us; folders stay writable, so that they can be removed."""
    for entry in tree.files:
        (root / entry.path).chmod(0o555 if entry.executable else 0o444)


def flush_tree(root: Path, tree: Tree) -> None:
    """Put a tree on the disk."""
    for entry in tree.files:
        descriptor = os.open(root / entry.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_tree(root: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if root.is_dir() and not root.is_symlink():
        shutil.rmtree(root, ignore_errors=True)
    else:
        with suppress(OSError):
            root.unlink()


def signature(root: Path, tree: Tree) -> tuple[tuple[int, int], ...]:
    """Size and time of change of every file: O(entries)."""
    found = [(root / entry.path).stat() for entry in tree.files]
    return tuple((about.st_size, about.st_mtime_ns) for about in found)


def identity_of(root: Path) -> str:
    """What changes when a file or folder does: its checksum, or sizes and times if it is a folder or too large to read.

    Raises OSError or BadFile if it cannot be read.
    """
    tree = scan(root)
    if not tree.is_folder and tree.size <= _READ_AT_ONCE:
        return checksum_of_tree(root, tree)
    told = json.dumps([sorted(tree.rows()), signature(root, tree)], ensure_ascii=True)
    return f"stat:{hashlib.blake2b(told.encode(), digest_size=32).hexdigest()}"


def _make_folders(root: Path, tree: Tree) -> None:
    if tree.is_folder:
        root.mkdir()
    for entry in tree.entries:
        if entry.kind == "folder":
            (root / entry.path).mkdir()


def _add_links(root: Path, tree: Tree) -> None:
    """Last, so that nothing is written through them."""
    top = root.resolve()
    for entry in tree.entries:
        if entry.kind == "link":
            link = root / entry.path
            link.symlink_to(entry.target)
            if Path(entry.target).is_absolute() or not _stays_inside(link, top):
                link.unlink()
                raise BadFile(f"the link {entry.path!r} leads out of its folder", where=str(root))
