"""The clusters that `bench.chaos` disturbs: local, or TLS ones of separate processes, also in network namespaces."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from headrace.runtime.certificates import write_certificates
from headrace.runtime.cluster import Cluster, connect, open_local

_START_SECONDS = 60.0


class Ground(Protocol):
    """A cluster with worker processes that can be disturbed."""

    cluster: Cluster

    def pid(self, name: str) -> int:
        """The process of a worker."""

    def names(self) -> list[str]:
        """The workers that were started."""

    def start_worker(self, name: str) -> None:
        """Start one more."""

    def client(self) -> Any:
        """Another client of the cluster."""

    def close(self) -> None:
        """End everything that was started, by process id."""


class LocalGround:
    """Workers of `open_local`; those that die are started again, or not."""

    def __init__(self, workers: int, restart: bool) -> None:
        self.cluster = open_local(workers, restart=restart)

    def pid(self, name: str) -> int:
        return self.cluster.pids[name]

    def names(self) -> list[str]:
        return sorted(self.cluster.pids)

    def start_worker(self, name: str) -> None:
        self.cluster.start_workers(name)

    def client(self) -> Any:
        from distributed import Client

        known = self.cluster.client
        return Client(known.scheduler.address, security=known.security, set_as_default=False)

    def close(self) -> None:
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TlsGround:
    """`dask scheduler` and `dask worker` as separate processes, with certificates of `headrace certificates`."""

    def __init__(self, workers: int, nanny: bool = False, spaces: Namespaces | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-chaos-"))
        self.spaces = spaces
        self.nanny = nanny
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: list[Any] = []
        self._cluster: Cluster | None = None
        write_certificates(self.folder / "tls")
        host = "127.0.0.1" if spaces is None else spaces.address
        contact = self.folder / "scheduler.json"
        self.scheduler = self._start(
            (), "dask_scheduler", "scheduler", "--protocol", "tls", "--host", host, "--port", 0,
            "--scheduler-file", contact,
        )  # fmt: skip
        try:
            for k in range(workers):
                self.start_worker(f"w{k}")
            self.url = str(json.loads(_awaited(lambda: contact.exists() and contact.read_text()))["address"])
            with self.client() as client:
                _awaited(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) >= workers)
        except BaseException:
            self.close()
            raise

    @property
    def tls(self) -> dict[str, str]:
        """The files that a client needs, by the names of `connect`."""
        names = {"ca": "ca.pem", "cert": "client.pem", "key": "client-key.pem"}
        return {name: str(self.folder / "tls" / file) for name, file in names.items()}

    @property
    def cluster(self) -> Cluster:
        """Connected when it is asked for first."""
        if self._cluster is None:
            self._cluster = connect(self.url, **self.tls)
        return self._cluster

    def pid(self, name: str) -> int:
        if not self.nanny:
            return self.workers[name].pid
        with self.client() as client:
            return int(client.run(os.getpid, workers=[address_of(client, name)]).popitem()[1])

    def names(self) -> list[str]:
        return sorted(self.workers)

    def start_worker(self, name: str) -> None:
        inside, host = ((), "127.0.0.1") if self.spaces is None else self.spaces.inside(len(self.workers))
        self.workers[name] = self._start(
            inside, "dask_worker", "worker", "--scheduler-file", self.folder / "scheduler.json", "--name", name,
            "--nthreads", 1, "--host", host, "--local-directory", self.folder / name,
            "--nanny" if self.nanny else "--no-nanny",
        )  # fmt: skip

    def client(self) -> Any:
        from distributed import Client, Security

        files = self.tls
        security = Security(
            require_encryption=True,
            tls_ca_file=files["ca"],
            tls_client_cert=files["cert"],
            tls_client_key=files["key"],
        )
        return Client(self.url, security=security, set_as_default=False, timeout=20)

    def _start(
        self, inside: Sequence[str], module: str, role: str, *arguments: object
    ) -> subprocess.Popen[bytes]:
        tls = self.folder / "tls"
        files = {"--tls-ca-file": "ca.pem", "--tls-cert": f"{role}.pem", "--tls-key": f"{role}-key.pem"}
        given = [str(part) for option, file in files.items() for part in (option, tls / file)]
        return subprocess.Popen(
            [*inside, sys.executable, "-m", f"distributed.cli.{module}", *given, *map(str, arguments),
             "--no-dashboard"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        for process in (*self.workers.values(), self.scheduler):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _awaited(condition: Callable[[], Any]) -> Any:
    """What the condition returns, as soon as it is true."""
    end = time.monotonic() + _START_SECONDS
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("the cluster did not start in time")
        time.sleep(0.02)
    return found


def address_of(client: Any, name: str) -> str:
    """The address of a worker."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return str(next(address for address, info in workers.items() if info["name"] == name))


def can_make_namespaces() -> bool:
    """Whether this process may make network namespaces."""
    return os.geteuid() == 0 and shutil.which("ip") is not None


class Namespaces:
    """Network namespaces on one bridge, a host each; `cut` takes the link of one down. Needs root."""

    def __init__(self, count: int, tag: str) -> None:
        self.tag, number = tag, int(tag, 16)
        self.net = f"10.{150 + number % 90}.{number // 90 % 250}"
        self.address = f"{self.net}.254"
        self.bridge = f"hc{tag}b"
        self.spaces = [f"hc{tag}n{k}" for k in range(count)]
        remove_namespaces(tag)
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        for k, space in enumerate(self.spaces):
            _ip("netns", "add", space)
            _ip("link", "add", f"{space}o", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", f"{space}o", "master", self.bridge)
            _ip("link", "set", f"{space}o", "up")
            _ip("-n", space, "addr", "add", f"{self.net}.{k + 1}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def inside(self, k: int) -> tuple[tuple[str, ...], str]:
        """How to start a process in a namespace, and its address there."""
        return ("ip", "netns", "exec", self.spaces[k]), f"{self.net}.{k + 1}"

    def close(self) -> None:
        remove_namespaces(self.tag)

    def cut(self, k: int) -> None:
        """Nothing reaches the host any more, nor comes from it."""
        _ip("link", "set", f"{self.spaces[k]}o", "down")

    def mend(self, k: int) -> None:
        _ip("link", "set", f"{self.spaces[k]}o", "up")

    def part(self, one: int, other: int) -> None:
        """Two hosts no longer reach each other, but everybody else."""
        for a, b in ((one, other), (other, one)):
            _ip("-n", self.spaces[a], "route", "add", "blackhole", f"{self.net}.{b + 1}/32")

    def join(self, one: int, other: int) -> None:
        for a, b in ((one, other), (other, one)):
            _ip("-n", self.spaces[a], "route", "del", "blackhole", f"{self.net}.{b + 1}/32")


def remove_namespaces(tag: str) -> None:
    """Remove what `Namespaces` has made under this tag, now or in an earlier process."""
    spaces = Path("/run/netns")
    commands = [["link", "del", f"hc{tag}b"]]
    for space in sorted(spaces.glob(f"hc{tag}n*")) if spaces.is_dir() else []:
        # The link by itself too: a namespace lives on while a process in it does.
        commands += [["link", "del", f"{space.name}o"], ["netns", "del", space.name]]
    for command in commands if can_make_namespaces() else []:
        subprocess.run(["ip", *command], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr}")
