"""Kept values of workers that cannot reach the record's folder: written there first, then fetched by the client.

A value stays on its worker until the client has it, whatever the engine does with its copy in memory.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.runtime.client_files import WorkerCalls
from headrace.runtime.file_trees import (
    CHUNK,
    Row,
    Tree,
    TreeReader,
    TreeWriter,
    flush_tree,
    link_tree,
    remove_tree,
    scan,
)
from headrace.runtime.kept_files import Part, write_kept

_PREFIX = "spool://"
_PATIENCE = 120.0
"""Seconds that a worker may take to send a chunk."""
_calls: weakref.WeakKeyDictionary[Any, WorkerCalls] = weakref.WeakKeyDictionary()


def spool(name: str, key: bytes, run: str, item: str, parts: Sequence[Part]) -> str:
    """On a worker: write a kept value to the worker's own folder; returns a name that the client can fetch."""
    folder, address = _own_folder()
    write_kept(folder / name, key, run, item, parts)
    return f"{_PREFIX}{address}/{name}"


def spool_tree(name: str, source: Path, tree: Tree) -> str:
    """On a worker: the same for a file or folder, by hard links where possible."""
    folder, address = _own_folder()
    keep_tree(source, tree, folder / name)
    return f"{_PREFIX}{address}/{name}"


def keep_tree(source: Path, tree: Tree, target: Path) -> None:
    """Keep a file or folder under a new name, durably; nothing is left of it if there is no room."""
    try:
        link_tree(source, tree, target)
        flush_tree(target, tree)
    except BaseException:
        remove_tree(target)
        raise


def _own_folder() -> tuple[Path, str]:
    from distributed.worker import get_worker

    worker = get_worker()
    folder = Path(worker.local_directory) / "headrace-kept"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder, worker.address


def is_spooled(file: str) -> bool:
    """
    >>> is_spooled("spool://tcp://10.0.0.1:4000/ab-12"), is_spooled("ab-12")
    (True, False)
    """
    return file.startswith(_PREFIX)


def fetch_spooled(client: Any, file: str, target: Path) -> str:
    """On the client: copy a spooled value to a folder, in chunks, and remove it from its worker; returns its name.

    Raises OSError if the worker is gone, or the disk full.
    """
    address, _, name = file.removeprefix(_PREFIX).rpartition("/")
    scratch = target / f".fetched-{secrets.token_hex(8)}"
    tree = Tree.of_rows(_ask(client, address, _about_spooled, name))
    try:
        writer = TreeWriter(scratch, tree)
        try:
            for offset in range(0, tree.size, CHUNK):
                writer.write(_ask(client, address, _read_spooled, name, offset))
            writer.finish()
        finally:
            writer.close()
        flush_tree(scratch, tree)
        scratch.rename(target / name)
    except BaseException:
        remove_tree(scratch)
        raise
    _ask(client, address, _drop_spooled, name)
    return name


def _ask(client: Any, address: str, function: Any, *arguments: Any) -> Any:
    try:
        return client.sync(_asked, client, address, function, arguments)
    except OSError:
        raise
    except Exception as error:  # the engine has many ways to say that a worker is gone
        raise OSError(None, f"{type(error).__name__}: {error}") from error


async def _asked(client: Any, address: str, function: Any, arguments: tuple[Any, ...]) -> Any:
    """Call a function on a worker, over a direct connection if there can be one."""
    from distributed.core import clean_exception
    from distributed.protocol.pickle import dumps

    calls = _calls.setdefault(client, WorkerCalls(client))
    asked = calls.call(address, "run", function=dumps(function), args=dumps(arguments))
    answer = await asyncio.wait_for(asked, _PATIENCE)
    if answer["status"] != "OK":
        raise clean_exception(**answer)[1]
    return answer["result"]


def _path(name: str, worker: Any) -> Path:
    return Path(worker.local_directory) / "headrace-kept" / Path(name).name


def _about_spooled(name: str, dask_worker: Any = None) -> list[Row]:
    return scan(_path(name, dask_worker)).rows()


def _read_spooled(name: str, offset: int, dask_worker: Any = None) -> bytes:
    path = _path(name, dask_worker)
    return TreeReader(path, scan(path)).read(offset)


def _drop_spooled(name: str, dask_worker: Any = None) -> None:
    remove_tree(_path(name, dask_worker))
