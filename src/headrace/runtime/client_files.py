"""The client's side of files: inputs are sent to the workers that ask, results are fetched from workers that have them.

Chunks go directly to the worker. If it cannot be reached from here, they go through the engine's scheduler, one by one.
"""

from __future__ import annotations

import asyncio
import tempfile
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError, TaskFailed
from headrace.runtime.file_trees import (
    CHUNK,
    Tree,
    TreeDigest,
    TreeReader,
    TreeWriter,
    remove_tree,
    scan,
    signature,
)
from headrace.runtime.files import StagedFile
from headrace.runtime.input_files import InputFile

_CONNECT_SECONDS = 5.0


class WorkerCalls:
    """Requests from this client to workers."""

    def __init__(self, client: Any) -> None:
        # Held weakly: the client may be a key under which this is stored.
        self._client = weakref.ref(client)
        self._unreachable: set[str] = set()

    async def call(self, address: str, operation: str, **message: Any) -> Any:
        """The answer of a worker; raises OSError if it is gone."""
        client = self._client()
        if client is None:
            raise OSError(None, "the client is closed")
        if address not in self._unreachable:
            try:
                comm = await asyncio.wait_for(client.rpc.connect(address), _CONNECT_SECONDS)
                client.rpc.reuse(address, comm)
            except (TimeoutError, OSError):
                self._unreachable.add(address)
            else:
                return await getattr(client.rpc(address), operation)(**message)
        answers = await client.scheduler.broadcast(
            msg={"op": operation, **message}, workers=[address], on_error="return"
        )
        answer = answers.get(address)
        if not isinstance(answer, dict):
            raise OSError(None, f"worker {address} does not answer")
        return answer


class InputSender:
    """Sends inputs of one run."""

    def __init__(self, client: Any, inputs: Mapping[str, InputFile]) -> None:
        self.client = client
        self.inputs = inputs
        self._calls = WorkerCalls(client)
        self._sending: set[Future[None]] = set()

    def send(self, token: str, address: str) -> None:
        """Begin to send an input to a worker."""
        sending = asyncio.run_coroutine_threadsafe(
            self._send(self.inputs[token], address), self.client.loop.asyncio_loop
        )
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def stop(self) -> None:
        """The run is over."""
        for sending in list(self._sending):
            sending.cancel()

    async def _send(self, source: InputFile, address: str) -> None:
        with suppress(OSError):  # the worker is gone: whoever needs the input asks again
            try:
                await self._send_all(source, address)
            except (_Changed, HeadraceError) as error:
                problem = str(error) or "has changed since the run began"
                await self._calls.call(
                    address, "headrace_file_end", token=source.token, checksum="", problem=problem
                )

    async def _send_all(self, source: InputFile, address: str) -> None:
        path = Path(source.path)
        tree = await asyncio.to_thread(_unchanged, path, source)
        reader, digest = TreeReader(path, tree), TreeDigest(tree)
        answer = await self._calls.call(address, "headrace_file_begin", token=source.token, rows=tree.rows())
        for offset in range(0, tree.size, CHUNK):
            if answer["status"] != "OK":
                return
            data = await asyncio.to_thread(_read, reader, offset)
            digest.update(data)
            answer = await self._calls.call(address, "headrace_file_write", token=source.token, data=data)
        await asyncio.to_thread(_unchanged, path, source)
        await self._calls.call(
            address, "headrace_file_end", token=source.token, checksum=digest.hexdigest(), problem=""
        )


class _Changed(Exception):
    """An input is no longer what it was."""


def _unchanged(path: Path, source: InputFile) -> Tree:
    try:
        tree = scan(path)
        if signature(path, tree) == source.before:
            return tree
    except OSError as error:
        raise _Changed(f"cannot be read: {error.strerror}") from None
    raise _Changed


def _read(reader: TreeReader, offset: int) -> bytes:
    try:
        return reader.read(offset)
    except OSError as error:
        raise _Changed(f"cannot be read: {error.strerror}") from None


async def fetch_staged(client: Any, staged: StagedFile, addresses: list[str], target: Path) -> None:
    """Write the contents of a value that workers have to a new path; TaskFailed if none can give them."""
    calls = WorkerCalls(client)
    for address in addresses:
        try:
            if await _fetched(calls, address, staged, target):
                return
        except (OSError, HeadraceError):
            pass
        await asyncio.to_thread(remove_tree, target)
    raise TaskFailed(f"the file {staged.name!r} cannot be fetched", where="results", hint="run it again")


async def _fetched(calls: WorkerCalls, address: str, staged: StagedFile, target: Path) -> bool:
    token = staged.token
    about = await calls.call(address, "headrace_file_about", token=token)
    if about["status"] != "OK":
        return False
    tree = Tree.of_rows(about["rows"])
    writer = await asyncio.to_thread(TreeWriter, target, tree)
    try:
        for offset in range(0, tree.size, CHUNK):
            part = await calls.call(address, "headrace_file_read", token=token, offset=offset, length=CHUNK)
            if part["status"] != "OK":
                return False
            await asyncio.to_thread(writer.write, part["data"])
        found = await asyncio.to_thread(writer.finish)
    finally:
        writer.close()
    wanted = staged.checksum or (await calls.call(address, "headrace_file_checksum", token=token)).get(
        "checksum"
    )
    return bool(found == wanted)


def folder_for_results() -> Path:
    """A folder for contents that nobody has asked to keep; removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="headrace-results-")
    _folders.append(folder)
    return Path(folder.name)


_folders: list[tempfile.TemporaryDirectory[str]] = []
