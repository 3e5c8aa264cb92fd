"""Large inputs of a program: read in place where workers see them, fetched from URLs, or sent by the client.

An input is a key of the engine, so that it is loaded again when it is lost. A worker that executes it looks whether it
sees the very file, and otherwise asks the client, which sends it to that worker over a direct connection.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile, HeadraceError, TaskFailed, UsageError
from headrace.model.platform import Platform
from headrace.model.program import Data, Program
from headrace.runtime.file_store import Arrival, FileStore
from headrace.runtime.file_trees import remove_tree, scan, signature
from headrace.runtime.files import FileData, StagedFile, is_small, taken_over
from headrace.runtime.url_files import fetch_url, is_url, name_of_url, require_known

EVERYWHERE = "*"
"""All hosts, as a name in `SharedFolders`."""
SharedFolders = Mapping[str, tuple[str, ...]]
"""By host: folders that it and the client see under the same path."""
_SILENCE_SECONDS = 90.0
"""How long a worker waits for the client to send something."""
_TRIES = 3


def seen_folders(platform: Platform, shared: Sequence[str], *, here: bool) -> dict[str, tuple[str, ...]]:
    """By host: folders that it and the client see under the same path; all of them if it runs `here`.

    >>> from headrace.model.platform import Host, Site
    >>> lab = Platform((Site("uw", (Host("a"),), shared_folders=("/data",)), Site("home", (Host("b"),), 1e6)))
    >>> seen_folders(lab, ["/scratch"], here=False)
    {'*': ('/scratch',), 'a': ('/data',)}
    """
    found = {EVERYWHERE: ("/",) if here else tuple(shared)}
    for site in platform.sites:
        if site.shared_folders:
            found |= {host.name: site.shared_folders for host in site.hosts}
    return found


@dataclass(frozen=True)
class InputFile:
    """An input that is a large file, a folder or a URL, as it is sent to workers."""

    item: str
    name: str
    token: str
    path: str
    """Absolute, on the client; or a URL."""
    size: int = 0
    folder: bool = False
    topic: str = ""
    """Where the client listens."""
    shared: SharedFolders = field(default_factory=dict)
    before: tuple[tuple[int, int], ...] = ()
    """Sizes and times of change of its files when the run began; empty for a URL."""

    def __dask_tokenize__(self) -> str:
        """Keys of the engine are unique without it."""
        return self.token

    def is_seen_by(self, host: str) -> bool:
        """Whether a host reads it in place."""
        path = Path(self.path)
        folders = (*self.shared.get(host, ()), *self.shared.get(EVERYWHERE, ()))
        return any(path.is_relative_to(folder) for folder in folders)

    def here(self) -> StagedFile:
        """On the client: as a value."""
        return StagedFile(self.name, self.size, self.token, folder=self.folder, path=self.path)


def read_input(item: Data, base: Path, token: str, topic: str, shared: SharedFolders) -> FileData | InputFile:
    """The file of an input: small ones with their contents, others as a description.

    Raises
    ------
    BadFile
        If it cannot be read, or contains what cannot be moved.
    """
    assert item.path is not None
    name = f"{token}-{_digest_of(item.name)}"
    if is_url(item.path):
        return InputFile(item.name, name_of_url(item.path), name, item.path)
    path = (base / item.path).absolute()
    try:
        tree = scan(path)
        if is_small(tree):
            return FileData(path.name, path.read_bytes(), tree.entries[0].executable)
        before = signature(path, tree)
        if not tree.is_folder:
            path.open("rb").close()
    except OSError as error:
        raise BadFile(
            f"input {item.name!r} cannot be read: {error.strerror or error}",
            where=str(path),
            hint="check the path",
        ) from None
    return InputFile(
        item.name, path.name, name, str(path), tree.size, tree.is_folder, topic, dict(shared), before
    )


def _digest_of(item: str) -> str:
    return hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def require_inputs(program: Program, base: str | Path = ".") -> None:
    """Raise an error if an input file is missing or results have bad paths, before anything is started.

    O(entries), reads no contents.
    """
    read = {name for task in program.tasks.values() for name in task.inputs}
    for item in program.inputs():
        if item.path is None or item.value is not None or not (item.name in read or item.result):
            continue
        if is_url(item.path):
            require_known(item.path, f"input {item.name!r}")
            continue
        path = Path(base) / item.path
        try:
            scan(path)
        except OSError as error:
            raise BadFile(
                f"input {item.name!r} cannot be read: {error.strerror or error}",
                where=str(path),
                hint="check the path",
            ) from None
    _require_result_paths(program)


def _require_result_paths(program: Program) -> None:
    """Raise an error if a result would be written to a URL, or two of them to the same file."""
    taken: dict[str, str] = {}
    for item in program.results():
        if item.name not in program.producer or item.path is None:
            continue
        where = f"{program.name}: result {item.name!r}"
        if is_url(item.path):
            hint = "give a path, and copy it from there"
            raise UsageError(f"a result cannot be written to {item.path!r}", where=where, hint=hint)
        other = taken.setdefault(os.path.normpath(item.path), item.name)
        if other != item.name:
            raise UsageError(
                f"{item.path!r} is also the path of result {other!r}",
                where=where,
                hint="give each its own path",
            )


def load_input(source: InputFile) -> StagedFile | FileData:
    """On a worker, as the body of a key: have the contents of an input in this worker's store."""
    from distributed.worker import get_worker

    from headrace.runtime.dask_files import hold_here, store_here

    store = store_here()
    if store is None:
        raise TaskFailed(
            "the worker has no file store",
            where=f"input {source.item!r}",
            hint="install the same Headrace there",
        )
    worker = get_worker()
    loaded: StagedFile | FileData
    try:
        if is_url(source.path):
            loaded = _fetched(source, store)
        else:
            loaded = _in_place(source, store, str(worker.name)) or _sent(source, store, worker)
    except (OSError, HeadraceError) as error:
        failed = _failure(error, source)
    else:
        hold_here(loaded)
        return loaded
    # Here: an error of the network would else be pickled with it, as its context, and need not be picklable.
    raise failed


def _failure(error: OSError | HeadraceError, source: InputFile) -> TaskFailed:
    where = f"input {source.item!r}"
    if isinstance(error, OSError):
        return TaskFailed(f"it cannot be stored: {error.strerror or error}", where=where)
    return TaskFailed(error.problem, where=error.where or where, hint=error.hint)


def _fetched(source: InputFile, store: FileStore) -> StagedFile | FileData:
    target = store.new_path()
    try:
        fetch_url(source.path, target)
        tree = scan(target)
        if is_small(tree):
            return FileData(source.name, target.read_bytes())
        stored = store.new_path()
        checksum = taken_over(target, tree, stored, move=True)
        return store.add(store.new_token(), source.name, stored, tree, checksum)
    finally:
        remove_tree(target)


def _in_place(source: InputFile, store: FileStore, host: str) -> StagedFile | None:
    """Read the original, if this host sees the very file and it has not changed."""
    if not source.is_seen_by(host):
        return None
    path = Path(source.path)
    try:
        if signature(path, scan(path)) != source.before:
            return None
        return store.refer(path, source.name, source.token)
    except (OSError, HeadraceError):
        return None


def _sent(source: InputFile, store: FileStore, worker: Any) -> StagedFile:
    """Ask the client for it, and wait."""
    for _ in range(_TRIES):
        arrival = store.arrivals[source.token] = Arrival()
        try:
            worker.log_event(
                source.topic, {"events": (), "measured": (), "wanted": [(source.token, worker.address)]}
            )
            _wait(arrival, source)
        finally:
            del store.arrivals[source.token]
            if arrival.writer is not None:
                arrival.writer.close()
        if not arrival.problem and arrival.writer is not None:
            written = arrival.writer
            return store.add(source.token, source.name, written.root, written.tree, written.checksum)
        if arrival.writer is not None:
            remove_tree(arrival.writer.root)
    raise TaskFailed(f"it {arrival.problem}", hint="check the file and the disk of the worker")


def _wait(arrival: Arrival, source: InputFile) -> None:
    seen, since = 0, time.monotonic()
    while not arrival.done.wait(0.5):
        if arrival.progress != seen:
            seen, since = arrival.progress, time.monotonic()
        elif time.monotonic() - since > _SILENCE_SECONDS:
            raise TaskFailed(
                f"the client has sent nothing of it for {_SILENCE_SECONDS:g} s",
                where=f"input {source.item!r}",
                hint="check the network between you and the workers",
            )
