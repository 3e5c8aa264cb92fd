"""A cluster for one run: its scheduler in this process, its workers on hosts that are reached by ssh."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.formats.hosts_toml import SshHost, SshHosts, read_hosts
from headrace.model.errors import RunStopped, UsageError, WorkerStartFailed
from headrace.runtime.certificates import material_of, read_material, role_material
from headrace.runtime.cluster import RESTART_PATIENCE, Cluster, start_scheduler
from headrace.runtime.measured import measured_platform, workers_of
from headrace.runtime.probe import probe_speeds
from headrace.runtime.ssh_connection import SshConnection

_START_SECONDS = 60.0


def open_ssh(file: str | Path) -> Cluster:
    """Start workers on the hosts of a hosts file, and make a cluster of them; they end when it is closed.

    The scheduler runs in this process. Workers get their certificates over the connection of ssh, and connect to the
    scheduler and to each other by TLS. A worker that dies is started again under the same name.

    Raises
    ------
    WorkerStartFailed
        If a host cannot be reached or does not let this user in, or headrace is missing there or of another version.
    """
    hosts = read_hosts(file)
    material = role_material() if hosts.certificates is None else read_material(hosts.certificates)
    opened = _SshEngine()
    try:
        opened.connect(hosts.hosts)
        host = f"tls://{_bracketed(hosts.listen or _own_address(hosts))}"
        engine, client = _listening(hosts, host, material)
        opened.engine = engine
        opened.client = client
        opened.start_workers(engine.scheduler_address, material_of("worker", material))
        platform = measured_platform(workers_of(client), probe_speeds(client), (), hosts.file)
        return Cluster(client, platform, engine=opened, patience=RESTART_PATIENCE, links_assumed=True)
    except BaseException as error:
        opened.close()
        if isinstance(error, KeyboardInterrupt):
            raise RunStopped("interrupted", where="starting workers", hint="run it again") from None
        raise


class _SshEngine:
    """What is closed together: the scheduler and the connections."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.client: Any = None
        self._connections: list[SshConnection] = []

    def connect(self, hosts: Sequence[SshHost]) -> None:
        """Connect to all hosts at the same time, and wait until headrace has started there."""
        for host in hosts:
            self._connections.append(SshConnection(host))
        deadline = time.monotonic() + _START_SECONDS
        problems: list[WorkerStartFailed] = []
        for connection in self._connections:
            try:
                connection.await_versions(deadline - time.monotonic())
            except WorkerStartFailed as error:
                problems.append(error)
        if problems:
            first, others = problems[0], len(problems) - 1
            if others:
                first.problem += f"; {others} of the other {len(hosts) - 1} hosts failed, too"
            raise first

    def start_workers(self, scheduler: str, security: dict[str, str]) -> None:
        """Start the workers, and wait until all have joined."""
        for connection in self._connections:
            connection.instruct({"scheduler": scheduler, "security": security})
        deadline = time.monotonic() + _START_SECONDS
        while missing := self._missing():
            for connection in self._connections:
                connection.require_running(scheduler)
            if time.monotonic() > deadline:
                raise WorkerStartFailed(
                    f"worker {missing[0]} did not join in time",
                    where=scheduler,
                    hint="check that hosts can connect to this address",
                )
            time.sleep(0.05)
        for connection in self._connections:
            connection.pass_output()

    def _missing(self) -> list[str]:
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        present = {str(worker["name"]) for worker in workers}
        return [name for each in self._connections for name in each.host.worker_names if name not in present]

    def close(self) -> None:
        """End the workers, then the scheduler."""
        for opened in (*self._connections, self.client, self.engine):
            if opened is not None:
                opened.close()


def _listening(hosts: SshHosts, host: str, material: dict[str, str]) -> tuple[Any, Any]:
    try:
        return start_scheduler(host, material, hosts.listen_port)
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"cannot listen at {host}, port {hosts.listen_port or 'any'}: {error}",
            where=hosts.file,
            hint="set `listen` to an address of this machine and `listen_port` to a free port, or leave them out",
        ) from None


def _own_address(hosts: SshHosts) -> str:
    """The address of this machine from which it reaches the first host."""
    first = hosts.hosts[0]
    try:
        found = socket.getaddrinfo(_target(first), first.port or 22, type=socket.SOCK_DGRAM)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # sends nothing: only a route is chosen
            return str(probe.getsockname()[0])
    except OSError:
        raise UsageError(
            f"the address at which {first.address!r} can reach this machine is not known",
            where=hosts.file,
            hint='set it, such as listen = "192.168.1.10"',
        ) from None


def _target(host: SshHost) -> str:
    """The host name that ssh connects to, which its configuration may change."""
    config = ["-F", str(host.config)] if host.config is not None else []
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ["ssh", *config, "-G", "--", host.address], capture_output=True, text=True, timeout=10, check=True
        )
        for line in told.stdout.splitlines():
            key, _, value = line.partition(" ")
            if key == "hostname":
                return value
    return host.address.rpartition("@")[2]


def _bracketed(address: str) -> str:
    """
    >>> _bracketed("::1"), _bracketed("10.0.0.1")
    ('[::1]', '10.0.0.1')
    """
    return f"[{address}]" if ":" in address and not address.startswith("[") else address
