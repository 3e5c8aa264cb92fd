"""Files that are there as a whole or not at all, on a disk that may be full."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors after which a write may succeed later, when there is room again."""
_CHUNK = 1 << 20


def write_whole(
    path: Path, parts: Iterable[bytes | memoryview], *, mode: int = 0o666, durable: bool = True
) -> str:
    """Write a file by a temporary one in the same folder; returns the checksum of its contents.

    Parameters
    ----------
    mode
        Permissions, less the umask.
    durable
        Flush the contents to the disk first, so that the name never stands for half a file, whatever happens.

    Raises
    ------
    OSError
        If it cannot be written; the temporary file is removed and an existing file stays as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checksum = write_whole(Path(folder) / "x", [b"ab", b"c"])
    ...     checksum == checksum_of(Path(folder) / "x"), os.listdir(folder)
    (True, ['x'])
    """
    digest = hashlib.blake2b(digest_size=32)
    scratch = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for part in parts:
                digest.update(part)
                _write_all(file.fileno(), memoryview(part).cast("B"))
            if durable:
                os.fsync(descriptor)
        scratch.replace(path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
    return digest.hexdigest()


def checksum_of(path: Path) -> str:
    """BLAKE2b-256 of a file's contents, as `b2sum -l 256` prints it."""
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with suppress(OSError):  # not every file system can, and then it need not
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def has_no_room(error: OSError) -> bool:
    return error.errno in NO_ROOM


def _write_all(descriptor: int, part: memoryview) -> None:
    """A single write may be cut short: at 2 GB, or by the end of the disk."""
    while part:
        part = part[os.write(descriptor, part[: 1 << 30]) :]
