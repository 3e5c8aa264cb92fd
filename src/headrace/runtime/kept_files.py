"""Values kept in a record: pickled, and sealed with the record's key so that no foreign data is ever unpickled.

A seal is keyed BLAKE2b over the run, the item and the contents: it is the checksum too. A file or a row of the database
without a valid seal is not read any further. Pickles hold large buffers, such as arrays, out of band, so that
they are neither copied nor held twice.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from headrace.model.errors import BadFile, HeadraceError
from headrace.runtime.durable import write_whole
from headrace.runtime.file_trees import checksum_of_tree

Keep: TypeAlias = Literal["all", "auto", "results"]
Part: TypeAlias = bytes | memoryview
KEY_BYTES = 32
TOKEN_FILE = "token"
_MAGIC = b"HDRCKEP1"
_HEAD = struct.Struct("<8s32sQ")
_MOST_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept value: in a file, or `content` itself if it is small.

    Of a `StagedFile`, `content` is the description, and the file or folder is the user's own, as it is.
    """

    item: str
    file: str
    """Name in the run's folder of kept files; "" if it is small."""
    content: bytes | None
    checksum: str
    size: int
    """Bytes of the pickle, or of the user's file."""
    run: str = ""
    """The run that has kept it, if it is another one than that which uses it."""

    def home(self, folder: Path, run: str) -> tuple[Path, str]:
        """Its folder and run, given those of the run that uses it: the folders of all runs are side by side."""
        return (folder.parent / self.run, self.run) if self.run else (folder, run)

    @property
    def is_staged(self) -> bool:
        return bool(self.file) and self.content is not None


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a worker needs to know to keep values and to read kept ones."""

    run: str
    folder: str
    key: bytes
    keep: Keep

    def __dask_tokenize__(self) -> str:
        """Keys of the engine are unique without it: the engine need not look into this for each task."""
        return self.run

    def __reduce__(self) -> tuple[Any, ...]:
        """It is pickled with every task, and faster than dataclasses with slots are by themselves."""
        return Keeping, (self.run, self.folder, self.key, self.keep)


def pickled(value: Any) -> list[Part]:
    """A value as a pickle and its large buffers; classes that cannot be imported are pickled by value."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        if b"__main__" not in head:
            return [head, *(buffer.raw() for buffer in buffers)]
    except Exception:  # whatever it was, the next attempt says it
        pass
    import cloudpickle  # type: ignore[import-untyped]

    buffers.clear()
    head = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [head, *(buffer.raw() for buffer in buffers)]


def folder_token(key: bytes) -> str:
    """The content of the file that tells a worker on another machine that it sees the record's folder."""
    return hashlib.blake2b(b"token", key=key, digest_size=16).hexdigest()


def size_of_parts(parts: Sequence[Part]) -> int:
    return sum(memoryview(part).nbytes for part in parts)


def seal(key: bytes, run: str, item: str, parts: Sequence[Part]) -> bytes:
    """The seal of a pickle: only who has the key can make it, and it holds for this item of this run alone."""
    sealed = hashlib.blake2b(key=key, digest_size=32, person=b"headrace kept")
    names = f"{len(run)}:{run}{item}".encode("utf-8", "surrogatepass")
    lengths = [memoryview(part).nbytes for part in parts]
    sealed.update(struct.pack(f"<QQ{len(lengths)}Q", len(names), len(lengths), *lengths) + names)
    for part in parts:
        sealed.update(part)
    return sealed.digest()


def write_kept(path: Path, key: bytes, run: str, item: str, parts: Sequence[Part]) -> str:
    """Write a pickle and its seal, durably; returns the seal in hexadecimal."""
    made = seal(key, run, item, parts)
    lengths = struct.pack(f"<{len(parts)}Q", *(memoryview(part).nbytes for part in parts))
    write_whole(path, [_HEAD.pack(_MAGIC, made, len(parts)) + lengths, *parts], mode=0o600)
    return made.hex()


def load_kept(kept: Kept, folder: Path, key: bytes, run: str) -> Any:
    """The value, if its seal is valid.

    Raises
    ------
    BadFile
        If it is missing, damaged, or not what was committed.

    >>> import tempfile
    >>> key, parts = bytes(32), pickled([1, 2])
    >>> with tempfile.TemporaryDirectory() as name:
    ...     checksum = write_kept(Path(name) / "1", key, "r", "x", parts)
    ...     load_kept(Kept("x", "1", None, checksum, 9), Path(name), key, "r")
    [1, 2]
    """
    parts = sealed_parts(kept, folder, key, run)
    folder, _ = kept.home(folder, run)
    value = pickle.loads(parts[0], buffers=parts[1:])
    return replace(value, path=str((folder / kept.file).absolute())) if kept.is_staged else value


def staged_problem(kept: Kept, folder: Path, key: bytes, run: str) -> str:
    """What is wrong with the contents of a kept file; "" if they are as they were committed. O(bytes)."""
    staged = load_kept(kept, folder, key, run)
    try:
        found = checksum_of_tree(Path(staged.path))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except HeadraceError as error:
        return error.problem
    return "" if found == staged.checksum else "the file is damaged"


def sealed_parts(kept: Kept, folder: Path, key: bytes, run: str) -> list[memoryview]:
    """The pickle of a kept value, with its seal checked: O(bytes)."""
    folder, run = kept.home(folder, run)
    where = str(folder / kept.file) if kept.file else f"run {run}: item {kept.item!r}"
    parts = [memoryview(kept.content or b"")]
    written = kept.checksum
    if kept.file and not kept.is_staged:
        written, parts = _parts_of_file(folder / kept.file)
    if written != kept.checksum or not hmac.compare_digest(
        seal(key, run, kept.item, parts).hex(), kept.checksum
    ):
        raise BadFile("this is not what was committed", where=where, hint="resume the run: it is made again")
    return parts


def _parts_of_file(path: Path) -> tuple[str, list[memoryview]]:
    """The seal and the parts of a file, without any trust in them: lengths must add up to the file's size."""
    try:
        with path.open("rb") as file:
            data = memoryview(bytearray(os.fstat(file.fileno()).st_size))
            size = file.readinto(data)
    except OSError as error:
        raise BadFile(f"cannot be read: {error.strerror}", where=str(path), hint="resume the run") from None
    damaged = BadFile("the file is damaged", where=str(path), hint="resume the run: it is made again")
    if size != len(data) or size < _HEAD.size:
        raise damaged
    magic, made, count = _HEAD.unpack_from(data)
    start = _HEAD.size + 8 * count
    if magic != _MAGIC or not 0 < count <= _MOST_PARTS or start > size:
        raise damaged
    parts = []
    for length in struct.unpack_from(f"<{count}Q", data, _HEAD.size):
        parts.append(data[start : start + length])
        start += length
    if start != size or len(parts[-1]) != length:
        raise damaged
    return made.hex(), parts
