"""Clusters whose workers are in network namespaces with limited links: several hosts on one machine. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace
from headrace.runtime.pace import SPEED_VARIABLE, STRETCH_VARIABLE

_WORKER = """
import asyncio, sys
sys.path[:0] = sys.argv[4].split(":")
import dask
dask.config.set({"distributed.worker.http.routes": []})
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], name=sys.argv[2], host=sys.argv[3], nthreads=1, dashboard=False,
                      local_directory=sys.argv[5]) as worker:
        await worker.finished()
asyncio.run(main())
"""


def available() -> bool:
    """Whether namespaces and limits can be made here."""
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "tc"))


@dataclass
class Lab:
    """A scheduler on a bridge, and one worker in each namespace."""

    client: Any
    address: str
    workers: list[subprocess.Popen[bytes]]
    names: list[str]


@contextmanager
def lab(
    rates: Sequence[str], folder: Path, speeds: Sequence[float] = (), stretch: float = 1.0
) -> Iterator[Lab]:
    """Workers n0, n1, ... whose links have these rates, such as "100mbit", in both directions; emulated speeds."""
    import dask
    from distributed import Client, LocalCluster

    tag = f"{os.getpid() % 100000:x}"
    net = f"10.{60 + os.getpid() % 90}.{os.getpid() // 90 % 250}"
    bridge = f"hb{tag}"
    spaces = [f"hr{tag}n{k}" for k in range(len(rates))]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        _build(bridge, spaces, rates, net)
        with (
            dask.config.set({"distributed.scheduler.http.routes": []}),
            LocalCluster(
                n_workers=0,
                host=f"{net}.254",
                scheduler_kwargs={"dashboard": False, "dashboard_address": f"{net}.254:0"},
            ) as engine,
            Client(engine, set_as_default=False) as client,
        ):
            paths = ":".join(
                [str(Path(headrace.__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(":")]
            )
            for k, space in enumerate(spaces):
                pace = {SPEED_VARIABLE: str(speeds[k]), STRETCH_VARIABLE: str(stretch)} if speeds else {}
                (folder / f"n{k}").mkdir(exist_ok=True)
                workers.append(
                    subprocess.Popen(
                        ["ip", "netns", "exec", space, sys.executable, "-c", _WORKER, engine.scheduler_address, f"n{k}",
                         f"{net}.{k + 1}", paths, str(folder / f"n{k}")],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | pace,
                    )
                )  # fmt: skip
            deadline = time.monotonic() + 60
            while len(client.scheduler_info(n_workers=-1)["workers"]) < len(spaces):
                assert time.monotonic() < deadline, "workers did not start"
                time.sleep(0.05)
            yield Lab(client, engine.scheduler_address, workers, [f"n{k}" for k in range(len(spaces))])
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True)


def _build(bridge: str, spaces: Sequence[str], rates: Sequence[str], net: str) -> None:
    _run("ip", "link", "add", bridge, "type", "bridge")
    _run("ip", "addr", "add", f"{net}.254/24", "dev", bridge)
    _run("ip", "link", "set", bridge, "up")
    for k, (space, rate) in enumerate(zip(spaces, rates, strict=True)):
        outer = f"{space}o"
        _run("ip", "netns", "add", space)
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
        _run("ip", "link", "set", outer, "master", bridge)
        _run("ip", "link", "set", outer, "up")
        inside = ("ip", "netns", "exec", space)
        _run(*inside, "ip", "addr", "add", f"{net}.{k + 1}/24", "dev", "eth0")
        _run(*inside, "ip", "link", "set", "eth0", "up")
        _run(*inside, "ip", "link", "set", "lo", "up")
        limit = ("root", "tbf", "rate", rate, "burst", "32kbit", "latency", "400ms")
        _run(*inside, "tc", "qdisc", "add", "dev", "eth0", *limit)
        _run("tc", "qdisc", "add", "dev", outer, *limit)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


with suppress(ImportError):
    import pytest

    needs_root = pytest.mark.skipif(not available(), reason="needs root, ip and tc")
