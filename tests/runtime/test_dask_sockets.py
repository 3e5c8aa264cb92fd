"""Unix sockets between the processes of a local cluster: they work, and nobody else can use them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed.comm import CommClosedError, connect, listen
from distributed.protocol import to_serialize

from headrace.execution import run
from headrace.model.errors import UsageError
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster
from headrace.runtime.dask_sockets import register_sockets
from headrace.runtime.local_workers import spawn_workers
from headrace.runtime.transport import Transport, host_of, open_transport

from .tasks import alive

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")

STRANGER = """
import os, socket, sys
from pathlib import Path
os.setgroups([]); os.setgid(65534); os.setuid(65534)
kind = sys.argv[1]
for path in sys.argv[2:]:
    try:
        if kind == "connect":
            with socket.socket(socket.AF_UNIX) as made:
                made.settimeout(10)
                made.connect(path)
                print("answer" if made.recv(1) else "hung up")
        elif os.path.isdir(path):
            print("listed", len(os.listdir(path)))
        else:
            print("read", len(Path(path).read_bytes()))
    except OSError as error:
        print("refused")
"""


def as_nobody(kind: str, paths: list[str]) -> list[str]:
    """What another user is told who tries to connect to sockets, or to read files and folders."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", STRANGER, kind, *paths],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
    )
    return done.stdout.split("\n")[:-1]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder with a short path."""
    register_sockets()
    with tempfile.TemporaryDirectory(prefix="hr-") as name:
        yield Path(name)


def with_listener(folder: Path, use: Any) -> Any:
    """The result of `use(address)` while a process listens that sends back all that it receives."""

    async def echo(comm: Any) -> None:
        try:
            while True:
                await comm.write(await comm.read())
        except CommClosedError:
            pass

    async def main() -> Any:
        async with listen(f"{host_of(folder)}:0", echo) as listener:
            return await use(listener.contact_address)

    return asyncio.run(main())


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
def test_messages_of_any_size(folder: Path, size: int) -> None:
    sent = {"x": to_serialize(np.arange(size)), "text": "é" * (size % 1000)}

    async def use(address: str) -> Any:
        comm = await connect(address, timeout=10)
        await comm.write(sent)
        answer = await comm.read()
        await comm.close()
        return answer

    answer = with_listener(folder, use)
    assert answer["text"] == sent["text"]
    assert np.array_equal(answer["x"], np.arange(size))


def test_many_connections_at_once(folder: Path) -> None:
    async def ask(address: str, number: int) -> Any:
        comm = await connect(address, timeout=20)
        await comm.write({"n": number})
        answer = await comm.read()
        await comm.close()
        return answer["n"]

    async def use(address: str) -> list[int]:
        return list(await asyncio.gather(*(ask(address, n) for n in range(200))))

    assert with_listener(folder, use) == list(range(200))


def test_a_taken_number_is_left_alone(folder: Path) -> None:
    taken = folder / str(os.getpid())
    taken.write_text("not a socket")

    async def use(address: str) -> str:
        return address

    address = with_listener(folder, use)
    assert address == f"unix://127.0.0.1{folder}:{os.getpid() + 1}"
    assert taken.read_text() == "not a socket"
    assert [path.name for path in folder.iterdir()] == [taken.name]  # what was made is gone


def test_a_listener_that_stopped_cannot_be_reached(folder: Path) -> None:
    async def use(address: str) -> str:
        return address

    address = with_listener(folder, use)
    with pytest.raises(OSError, match="Timed out"):
        asyncio.run(connect(address, timeout=0.2))


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o770])
def test_an_open_folder_is_refused(folder: Path, mode: int) -> None:
    async def use(address: str) -> None:
        folder.chmod(mode)
        await connect(address, timeout=1)

    with pytest.raises(OSError, match="for this user alone"):
        with_listener(folder, use)
    with pytest.raises(PermissionError):
        with_listener(folder, use)


@as_root
def test_the_other_end_is_looked_at(folder: Path) -> None:
    """If the folder were open by mistake, a process of another user would still be hung up on."""

    async def use(address: str) -> list[str]:
        folder.chmod(0o755)
        path = folder / address.rpartition(":")[2]
        path.chmod(0o777)
        return await asyncio.to_thread(as_nobody, "connect", [str(path)])

    assert with_listener(folder, use) == ["hung up"]


@as_root
def test_another_user_cannot_connect_or_read_anything(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("secret")
    program.task(bytes, inputs=[program.input("n", value=200_000)], outputs=["x"], name="t")
    before = os.umask(0)
    try:
        done = run(program, on=cluster, scheduler="heft", record=tmp_path / "home", output=tmp_path / "out")
    finally:
        os.umask(before)
    assert done.failure is None
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
            parent.chmod(0o755)
    workers = cluster._workers.folder  # type: ignore[union-attr]
    sockets = [str(path) for path in workers.iterdir() if path.is_socket()]
    assert len(sockets) == 4  # the scheduler and three workers
    assert as_nobody("connect", sockets) == 4 * ["refused"]
    found = [workers, *workers.rglob("*"), tmp_path / "home", *(tmp_path / "home").rglob("*")]
    names = {path.name for path in found}
    assert {"record.sqlite", "key", "kept", "results"} <= names
    assert set(as_nobody("read", [str(path) for path in found if not path.is_socket()])) == {"refused"}


def test_nothing_listens_elsewhere(cluster: Cluster) -> None:
    import psutil

    for pid in cluster.pids.values():
        open_to_others = psutil.Process(pid).net_connections(kind="inet")
        assert not [found for found in open_to_others if found.status == psutil.CONN_LISTEN]
    assert not cluster.client.run_on_scheduler(_listening_port)


def _listening_port(dask_scheduler: Any) -> list[Any]:
    """The sockets of the scheduler's pages; other clusters of this process are none of its business."""
    return [made for made in dask_scheduler.http_server._sockets.values() if made.fileno() >= 0]


def test_data_moves_between_workers(cluster: Cluster) -> None:
    client = cluster.client
    first, second = sorted(client.scheduler_info()["workers"])[:2]
    assert first.startswith("unix://127.0.0.1/")
    made = client.submit(np.arange, 300_000, workers=[first], pure=False)
    read = client.submit(np.sum, made, workers=[second], pure=False)
    assert read.result(timeout=30) == 300_000 * 299_999 // 2
    assert set(client.who_has(made)[made.key]) == {first, second}
    assert len(client.gather(made)) == 300_000


def kinds(**setting: Any) -> Transport:
    made = open_transport(**setting)
    assert Path(made.folder).stat().st_mode & 0o777 == 0o700
    Path(made.folder).rmdir()
    return made


def test_tls_where_there_are_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kinds().host.startswith("unix:")
    assert not kinds().security
    assert kinds(kind="tls").host.startswith("tls:")
    monkeypatch.delattr(socket, "AF_UNIX")
    other = kinds()
    assert other.host.startswith("tls:")
    assert "tls_ca_file" in other.security
    with pytest.raises(UsageError, match="no Unix socket"):
        open_transport("unix")


def test_a_long_path_is_avoided(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / (60 * "x")
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    made = kinds()
    assert made.host.startswith("unix:")
    assert Path(made.folder).parent == Path("/tmp")


def test_workers_that_wait_for_a_cluster_end_with_their_parent() -> None:
    """Their parent may die, or be interrupted, before it has a cluster for them."""
    spawned = spawn_workers(1)
    pids = spawned.pids
    assert all(alive(pid) for pid in pids.values())
    spawned.end()
    assert not any(alive(pid) for pid in pids.values())
    assert not spawned.folder.exists()


@pytest.mark.slow
def test_workers_that_wait_end_when_their_parent_is_killed() -> None:
    code = (
        "import sys, time\n"
        "from headrace.runtime.local_workers import spawn_workers\n"
        "spawned = spawn_workers(2)\n"
        "print(*spawned.pids.values(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)
