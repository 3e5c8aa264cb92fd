"""How the contents of files move between workers: over the engine's own connections, in chunks, as values move.

Uses hooks of distributed that are not public: a worker receives values by `distributed.worker.get_data_from_worker`.
Here that function also fetches the contents of the `StagedFile` values among them, before the engine hears that they
have arrived. So a worker that has such a value has its contents, and what the engine does about lost and missing values
holds for files too. A content that cannot be fetched, or has the wrong checksum, counts as a missing value: the engine
tries another copy, or makes the value again.

Each worker answers these requests of others and of the client:

- `headrace_file_about`: what a content consists of, and where it is, so that a worker on the same file system links it;
- `headrace_file_read`: a range of its bytes;
- `headrace_file_checksum`: its checksum, if the value did not have it;
- `headrace_file_damaged`: look at it again, and drop it if it is damaged;
- `headrace_file_begin`, `_write` and `_end`: the client sends an input.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import distributed.metrics
import distributed.worker
from distributed.diagnostics.plugin import WorkerPlugin

from headrace.model.errors import HeadraceError
from headrace.runtime.file_store import Content, FileStore, staged_in
from headrace.runtime.file_trees import CHUNK, Tree, TreeReader, TreeWriter, checksum_of_tree, remove_tree
from headrace.runtime.files import StagedFile

WINDOW = 4
"""Chunks that are requested ahead: they hide the time that a message takes."""
_INSTALL_SECONDS = 5.0
_GONE = {"status": "gone"}

_stores: dict[str, dict[str, FileStore]] = {}
"""By address of a worker in this process, and token of a run."""
_original = distributed.worker.get_data_from_worker


def plugin_name(run: str) -> str:
    return f"headrace-files-{run}"


class FilesPlugin(WorkerPlugin):  # type: ignore[misc]
    """Gives a worker a file store for one run, and removes it with the run."""

    idempotent = True

    def __init__(self, run: str) -> None:
        self.run = run
        self.name = plugin_name(run)

    def setup(self, worker: Any) -> None:
        self.store = FileStore(self.run, Path(worker.local_directory) / "headrace-files" / self.run)
        self.address = worker.address
        stores = _stores.setdefault(self.address, {})
        stores[self.run] = self.store
        worker.handlers.update(_handlers(worker, stores))
        distributed.worker.get_data_from_worker = _get_data_and_files

    def teardown(self, worker: Any) -> None:
        stores = _stores.get(self.address, {})
        stores.pop(self.run, None)
        if not stores:
            _stores.pop(self.address, None)
            for operation in _handlers(worker, stores):
                worker.handlers.pop(operation, None)
        if not _stores:
            distributed.worker.get_data_from_worker = _original
        self.store.remove()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        if start == "memory" or finish in ("released", "forgotten"):
            self.store.release(key)


async def install_stores(scheduler: Any, run: str) -> None:
    """Give all workers of a scheduler, and those that join, a store for a run; a frozen one is not waited for."""
    plugin = FilesPlugin(run)
    scheduler.worker_plugins[plugin.name] = pickle.dumps(plugin)
    message = {"op": "plugin-add", "plugin": pickle.dumps(plugin), "name": plugin.name}
    installing = asyncio.ensure_future(scheduler.broadcast(msg=message, on_error="ignore"))
    await asyncio.wait({installing}, timeout=_INSTALL_SECONDS)


async def remove_stores(scheduler: Any, run: str) -> None:
    """Remove the stores of a run."""
    if scheduler.worker_plugins.pop(plugin_name(run), None) is not None:
        message = {"op": "plugin-remove", "name": plugin_name(run)}
        with suppress(Exception):  # the cluster is closing
            await scheduler.broadcast(msg=message, on_error="ignore")


def store_here(run: str = "") -> FileStore | None:
    """On a worker, in a task: the store of a run, or of the run that the task belongs to; None if there is none."""
    from distributed.worker import get_worker, thread_state

    try:
        stores = _stores.get(get_worker().address, {})
    except ValueError:  # not on a worker
        return None
    if run:
        return stores.get(run)
    key = getattr(thread_state, "key", None)
    token = str(key[0]).rpartition("-")[2] if isinstance(key, tuple) else ""
    return stores.get(token)


def hold_here(value: Any) -> None:
    """On a worker, in a task: the value of the task's key refers to these contents."""
    from distributed.worker import thread_state

    for staged in staged_in(value):
        store = store_here(staged.run)
        if store is not None:
            store.hold(staged.token, thread_state.key)


async def _get_data_and_files(
    rpc: Any, keys: Any, worker: str, *, who: str | None = None, **more: Any
) -> Any:
    response = await _original(rpc, keys, worker, who=who, **more)
    stores = _stores.get(who or "")
    if stores and response["status"] == "OK":
        data = response["data"]
        for key in list(data):
            for staged in staged_in(data[key]):
                store = stores.get(staged.run)
                if store is None:  # the run has ended
                    continue
                store.hold(staged.token, key)
                if not await _arrive(rpc, worker, staged, store):
                    store.release(key)
                    del data[key]
                    break
    return response


async def _arrive(rpc: Any, worker: str, staged: StagedFile, store: FileStore) -> bool:
    """Have the contents of a value here; False if this worker cannot give them."""
    while (arriving := _arriving.get((id(store), staged.token))) is not None:
        await arriving.wait()
    if store.find(staged.token) is not None:
        return True
    done = _arriving[id(store), staged.token] = asyncio.Event()
    try:
        return await _fetched(rpc(worker), staged, store)
    finally:
        del _arriving[id(store), staged.token]
        done.set()


_arriving: dict[tuple[int, str], asyncio.Event] = {}
"""Contents that are on their way, so that two keys with the same one fetch it once."""


async def _fetched(peer: Any, staged: StagedFile, store: FileStore) -> bool:
    about = await peer.headrace_file_about(token=staged.token)
    if about["status"] != "OK":
        return False
    try:
        tree = Tree.of_rows(about["rows"])
    except HeadraceError:
        return False
    if await asyncio.to_thread(_taken_here, about, tree, staged, store):
        return True
    target = store.new_path()
    try:
        found = await _streamed(peer, staged.token, tree, target)
    except _Refused:
        await asyncio.to_thread(remove_tree, target)
        return False
    except BaseException:
        await asyncio.to_thread(remove_tree, target)
        raise
    wanted = staged.checksum or (await peer.headrace_file_checksum(token=staged.token)).get("checksum")
    if found != wanted:
        await asyncio.to_thread(remove_tree, target)
        await peer.headrace_file_damaged(token=staged.token)
        return False
    store.add(staged.token, staged.name, target, tree, found)
    return True


class _Refused(Exception):
    """The other worker no longer has the contents, or this one has no room for them."""


async def _streamed(peer: Any, token: str, tree: Tree, target: Path) -> str:
    """Write contents as they come, with a few chunks requested ahead; returns their checksum."""
    try:
        writer = await asyncio.to_thread(TreeWriter, target, tree)
    except (OSError, HeadraceError) as error:
        raise _Refused from error
    offsets = range(0, tree.size, CHUNK)
    waiting: deque[asyncio.Task[Any]] = deque()
    following = iter(offsets)
    try:
        for _ in offsets:
            for offset in following:
                waiting.append(
                    asyncio.ensure_future(peer.headrace_file_read(token=token, offset=offset, length=CHUNK))
                )
                if len(waiting) >= WINDOW:
                    break
            part = await waiting.popleft()
            if part["status"] != "OK":
                raise _Refused
            try:
                await asyncio.to_thread(writer.write, part["data"])
            except OSError as error:
                raise _Refused from error
        try:
            return await asyncio.to_thread(writer.finish)
        except (OSError, HeadraceError) as error:
            raise _Refused from error
    finally:
        writer.close()
        for request in waiting:
            request.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _taken_here(about: dict[str, Any], tree: Tree, staged: StagedFile, store: FileStore) -> bool:
    """If the contents are on a file system of this worker: link them, or read the original in place."""
    source = Path(about["path"])
    try:
        if [list(each) for each in _inodes(source, tree)] != [list(each) for each in about["inodes"]]:
            return False
        if about["owned"]:
            return store.take_link(staged.token, staged.name, source, tree, staged.checksum)
        store.add(staged.token, staged.name, source, tree, staged.checksum, owned=False)
    except OSError:
        return False
    return True


def _inodes(root: Path, tree: Tree) -> list[tuple[int, int, int]]:
    """What tells whether files of another worker are the very same here: up to 16 of them are looked at."""
    found = [(root / entry.path).stat() for entry in tree.files[:16]]
    return [(about.st_ino, about.st_size, about.st_mtime_ns) for about in found]


def _handlers(worker: Any, stores: dict[str, FileStore]) -> dict[str, Callable[..., Any]]:
    """The requests that a worker answers. Problems are answers too: an error would look like a lost connection."""

    def content(token: str) -> Content | None:
        store = stores.get(token.partition("-")[0])
        return None if store is None else store.find(token)

    async def about(token: str) -> dict[str, Any]:
        found = content(token)
        if found is None or not found.is_unchanged():
            return await damaged(token)
        try:
            inodes = await asyncio.to_thread(_inodes, found.path, found.tree)
        except OSError:
            return _GONE
        return {
            "status": "OK",
            "rows": found.tree.rows(),
            "owned": found.owned,
            "path": os.fspath(found.path.absolute()),
            "inodes": inodes,
        }

    async def read(token: str, offset: int, length: int) -> dict[str, Any]:
        found = content(token)
        if found is None:
            return _GONE
        reader = TreeReader(found.path, found.tree)
        try:
            data = await asyncio.to_thread(reader.read, offset, min(length, CHUNK))
        except OSError:
            return _GONE
        return {"status": "OK", "data": data}

    async def checksum(token: str) -> dict[str, Any]:
        found = content(token)
        if found is None:
            return _GONE
        try:
            found.checksum = found.checksum or await asyncio.to_thread(
                checksum_of_tree, found.path, found.tree
            )
        except OSError:
            return _GONE
        return {"status": "OK", "checksum": found.checksum}

    async def damaged(token: str) -> dict[str, Any]:
        store = stores.get(token.partition("-")[0])
        found = content(token)
        if store is None or (found is not None and await asyncio.to_thread(found.is_intact)):
            return _GONE
        _drop(worker, store, token)
        return _GONE

    return {
        "headrace_file_about": about,
        "headrace_file_read": read,
        "headrace_file_checksum": checksum,
        "headrace_file_damaged": damaged,
        **_receivers(stores),
    }


def _receivers(stores: dict[str, FileStore]) -> dict[str, Callable[..., Any]]:
    """The requests by which the client sends an input that a task on this worker waits for."""

    def arrival(token: str) -> Any:
        store = stores.get(token.partition("-")[0])
        return None if store is None else store.arrivals.get(token)

    async def begin(token: str, rows: Any) -> dict[str, Any]:
        expected = arrival(token)
        if expected is None:
            return _GONE
        store = stores[token.partition("-")[0]]
        try:
            writer = await asyncio.to_thread(TreeWriter, store.new_path(), Tree.of_rows(rows))
        except (OSError, HeadraceError) as error:
            return _ended(expected, f"cannot be written: {error}")
        expected.writer = writer
        expected.progress += 1
        return {"status": "OK"}

    async def write(token: str, data: bytes) -> dict[str, Any]:
        expected = arrival(token)
        if expected is None or expected.writer is None:
            return _GONE
        try:
            await asyncio.to_thread(expected.writer.write, data)
        except OSError as error:
            return _ended(expected, f"cannot be written: {error.strerror}")
        expected.progress += 1
        return {"status": "OK"}

    async def end(token: str, checksum: str, problem: str = "") -> dict[str, Any]:
        expected = arrival(token)
        if expected is None:
            return _GONE
        if problem or expected.writer is None:
            return _ended(expected, problem or "was not sent")
        try:
            found = await asyncio.to_thread(expected.writer.finish)
        except (OSError, HeadraceError) as error:
            return _ended(expected, f"cannot be written: {error}")
        return _ended(expected, "" if found == checksum else "arrived with a wrong checksum")

    return {"headrace_file_begin": begin, "headrace_file_write": write, "headrace_file_end": end}


def _ended(expected: Any, problem: str) -> dict[str, Any]:
    expected.problem = problem
    expected.done.set()
    return _GONE if problem else {"status": "OK"}


def _drop(worker: Any, store: FileStore, token: str) -> None:
    """Have this worker and the engine forget values whose contents are damaged: they are made again."""
    from distributed.worker_state_machine import FreeKeysEvent

    keys = sorted(store.keys_of(token), key=str)
    if keys:
        stimulus = f"headrace-damaged-{distributed.metrics.time()}"
        worker.handle_stimulus(FreeKeysEvent(keys=keys, stimulus_id=stimulus))
