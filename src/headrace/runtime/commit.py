"""What a worker keeps of the values it has made, so that a run can be resumed.

The rule of `auto`. A small value is always kept: it travels with the message that reports the end of its task. A larger
one is kept if making it again would take at least 20 times as long as writing it, and a tenth of the disk
stays free: keeping then costs at most 5 % of the time that it can save. Making it again takes the time of its task
and of every task before it, back to values that are kept. A worker knows these times for what it made itself, and
others from notes in the folder, which workers leave for large values that they did not keep.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from headrace.model.errors import TaskFailed
from headrace.runtime.bodies import Job, run_job, size_of
from headrace.runtime.durable import has_no_room
from headrace.runtime.files import StagedFile
from headrace.runtime.kept_files import (
    TOKEN_FILE,
    Keeping,
    Kept,
    Part,
    folder_token,
    load_kept,
    pickled,
    seal,
    size_of_parts,
    write_kept,
)
from headrace.runtime.sealing import Sealed
from headrace.runtime.sealing import seal as as_output
from headrace.runtime.spooled import keep_tree, spool, spool_tree
from headrace.runtime.worker_report import add_to_report, reported

Entry: TypeAlias = tuple[str, str, bytes | None, str, int]
"""Item, file, content, checksum, bytes: the fields of `Kept`."""

SMALL = 4096
"""Pickles of at most this many bytes travel with the report of a task and are kept in the database."""
WORTH = 20.0
"""A value is kept if making it again takes at least this many times as long as writing it."""
FREE_SHARE = 0.1
_WRITE_SECONDS = 0.002
_WRITE_RATE = 100e6
_NOTED_SECONDS = 0.25
"""Least seconds to make a value again that are noted for other workers."""
_REMEMBERED = 100_000


@dataclass(slots=True)
class _Rate:
    """How fast this process has written lately."""

    bytes_per_second: float = _WRITE_RATE

    def cost(self, size: int) -> float:
        return _WRITE_SECONDS + size / self.bytes_per_second

    def learn(self, size: int, seconds: float) -> None:
        if size >= 1 << 20 and seconds > 0:
            self.bytes_per_second += 0.3 * (size / seconds - self.bytes_per_second)


_rate = _Rate()
_seconds_again: OrderedDict[tuple[str, str], float] = OrderedDict()
"""By run and item: seconds to make it again, for values made in this process; 0 if it is kept."""


def run_and_keep(keeping: Keeping, results: tuple[str, ...], job: Job, *values: Any) -> Any:
    """Execute a task and keep its outputs, `results` in any case."""
    output = run_job(job, *values)
    measured = reported()
    seconds = measured["finish"] - measured["start"] if measured else 0.0
    made = (output,) if len(job.outputs) == 1 else output
    again = seconds + sum(
        _again(keeping, name, value) for name, value in zip(job.inputs, values, strict=False)
    )
    kept: list[Entry] = []
    unkept: list[tuple[str, str]] = []
    for name, value in zip(job.outputs, made, strict=True):
        try:
            entry = keep_value(keeping, name, value, again, name in results)
        except Exception as error:  # the run goes on without it: what cannot be kept can be made again
            entry = None
            unkept.append((name, _reason(error)))
        if entry is not None:
            kept.append(entry)
        _remember(keeping, name, 0.0 if entry is not None else again)
    add_to_report({"kept": kept} | ({"unkept": unkept} if unkept else {}))
    return output


def load_here(keeping: Keeping, kept: Kept) -> Any:
    """On a worker: a value that an earlier session of the run has kept."""
    value = load_kept(kept, Path(keeping.folder), keeping.key, keeping.run)
    if isinstance(value, StagedFile):
        return _refer_here(value)
    return as_output(value, "input", kept.item, kept.size)


def _refer_here(kept: StagedFile) -> StagedFile:
    """A kept file as a value: read in place."""
    from headrace.runtime.dask_files import hold_here, store_here

    store = store_here()
    if store is None:
        raise TaskFailed("the worker has no file store", hint="install the same Headrace there")
    staged = store.refer(Path(kept.path), kept.name, checksum=kept.checksum)
    hold_here(staged)
    return staged


def keep_value(keeping: Keeping, item: str, value: Any, again: float, must: bool) -> Entry | None:
    """Keep a value if it is worth it, or `must` be; None if it is not kept.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keeping = Keeping("r", folder, bytes(32), "auto")
    ...     small = keep_value(keeping, "x", 5, again=0.0, must=False)
    ...     large = keep_value(keeping, "y", bytes(10**6), again=0.0, must=False)
    >>> small[:2], large
    (('x', ''), None)
    """
    if keeping.keep == "results" and not must:
        return None
    large = size_of(value) > SMALL
    if large and not (must or keeping.keep == "all" or _worth_it(keeping, size_of(value), again)):
        return None
    if isinstance(value, StagedFile):
        return _keep_staged(keeping, item, value)
    parts = value.parts() if isinstance(value, Sealed) else pickled(value)
    size = size_of_parts(parts)
    if len(parts) == 1 and size <= SMALL:
        return item, "", bytes(parts[0]), seal(keeping.key, keeping.run, item, parts).hex(), size
    began = time.perf_counter()
    entry = _write(keeping, item, parts, size)
    _rate.learn(size, time.perf_counter() - began)
    return entry


@lru_cache(maxsize=64)
def reaches(folder: str, token: str) -> bool:
    """Whether this process sees the record's folder, and not another one of the same name."""
    try:
        return (Path(folder) / TOKEN_FILE).read_text() == token
    except (OSError, ValueError):
        return False


def _write(keeping: Keeping, item: str, parts: Sequence[Part], size: int) -> Entry:
    """Write to the record's folder if it can be reached, or else to this worker's own, where the client fetches it."""
    # Each name is used once: what is committed is never replaced, also if a task runs twice.
    name = f"{_name(item)}-{secrets.token_hex(6)}"
    if not reaches(keeping.folder, folder_token(keeping.key)):
        checksum = seal(keeping.key, keeping.run, item, parts).hex()
        return item, spool(name, keeping.key, keeping.run, item, parts), None, checksum, size
    return (
        item,
        name,
        None,
        write_kept(Path(keeping.folder) / name, keeping.key, keeping.run, item, parts),
        size,
    )


def _keep_staged(keeping: Keeping, item: str, staged: StagedFile) -> Entry:
    """Keep a file or folder by hard links or a copy; its description goes to the database."""
    from headrace.runtime.dask_files import store_here

    store = store_here(staged.run)
    content = None if store is None else store.find(staged.token)
    if content is None:
        raise FileNotFoundError(None, "its contents are not on this worker")
    description = bytes(pickled(staged)[0])
    checksum = seal(keeping.key, keeping.run, item, [description]).hex()
    name = f"{_name(item)}-{secrets.token_hex(6)}"
    if reaches(keeping.folder, folder_token(keeping.key)):
        keep_tree(content.path, content.tree, Path(keeping.folder) / name)
        return item, name, description, checksum, staged.size
    return item, spool_tree(name, content.path, content.tree), description, checksum, staged.size


def _worth_it(keeping: Keeping, size: int, again: float) -> bool:
    if again < WORTH * _rate.cost(size):
        return False
    try:
        about = os.statvfs(keeping.folder)
    except OSError:  # out of reach: the client has its own disk
        return True
    return about.f_bavail * about.f_frsize - size >= FREE_SHARE * about.f_blocks * about.f_frsize


def _again(keeping: Keeping, item: str, value: Any) -> float:
    """Seconds to make an input again; 0 if it is kept or comes from outside."""
    known = _seconds_again.get((keeping.run, item))
    if known is not None:
        return known
    if keeping.keep != "auto" or size_of(value) <= SMALL:
        return 0.0
    try:
        return float((Path(keeping.folder) / f"{_name(item)}.seconds").read_text())
    except (OSError, ValueError):
        return 0.0


def _remember(keeping: Keeping, item: str, seconds: float) -> None:
    _seconds_again[keeping.run, item] = seconds
    if len(_seconds_again) > _REMEMBERED:
        _seconds_again.popitem(last=False)
    if keeping.keep == "auto" and seconds >= _NOTED_SECONDS:
        with suppress(OSError):
            (Path(keeping.folder) / f"{_name(item)}.seconds").write_text(f"{seconds:.3f}")


def _name(item: str) -> str:
    """A file name of any item's name."""
    return hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return "no room" if has_no_room(error) else f"cannot be written: {error.strerror}"
    return f"cannot be pickled: {type(error).__name__}: {error}"[:300]
