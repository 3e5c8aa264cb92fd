"""Kept values of workers that cannot reach the record's folder: written there first, then fetched by the client.

A value stays on its worker until the client has it, whatever the engine does with its copy in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.runtime.asking import ask_workers
from headrace.runtime.kept_files import Part, write_kept

_PREFIX = "spool://"
_CHUNK = 8 << 20
_PATIENCE = 120.0
"""Seconds that a worker may take to send a chunk."""
"""Bytes per message: they pass through the engine's scheduler."""


def spool(name: str, key: bytes, run: str, item: str, parts: Sequence[Part]) -> str:
    """On a worker: write a kept value to the worker's own folder; returns a name that the client can fetch."""
    from distributed.worker import get_worker

    worker = get_worker()
    folder = Path(worker.local_directory) / "headrace-kept"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_kept(folder / name, key, run, item, parts)
    return f"{_PREFIX}{worker.address}/{name}"


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
    with tempfile.NamedTemporaryFile(dir=target, prefix=".fetched-", delete=False) as scratch:
        try:
            offset = 0
            while chunk := _ask(client, address, _read_spooled, name, offset):
                scratch.write(chunk)
                offset += len(chunk)
            scratch.flush()
            Path(scratch.name).replace(target / name)
        except BaseException:
            with suppress(OSError):
                Path(scratch.name).unlink()
            raise
    _ask(client, address, _drop_spooled, name)
    return name


def _ask(client: Any, address: str, function: Any, *arguments: Any) -> Any:
    try:
        answers = ask_workers(client, function, {address: arguments}, _PATIENCE)
    except Exception as error:  # the engine has many ways to say that a worker is gone
        raise OSError(None, f"{type(error).__name__}: {error}") from error
    if address not in answers:
        raise OSError(None, f"{address} is gone or does not answer")
    return answers[address]


def _read_spooled(name: str, offset: int, dask_worker: Any = None) -> bytes:
    with (Path(dask_worker.local_directory) / "headrace-kept" / Path(name).name).open("rb") as file:
        file.seek(offset)
        return file.read(_CHUNK)


def _drop_spooled(name: str, dask_worker: Any = None) -> None:
    (Path(dask_worker.local_directory) / "headrace-kept" / Path(name).name).unlink(missing_ok=True)
