"""Hosts of a stream run: an agent on each, commands to them, events from them.

`LocalHosts` starts the agents as child processes; `dask_hosts.DaskHosts` as long-running tasks of Dask workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from headrace.runtime.streams.faults import lost_host
from headrace.runtime.streams.tls import Certificates

Event = dict[str, Any]
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(64 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(128 * 2**20)}
"""glibc keeps the memory of large buffers, instead of mapping and clearing pages for each of them."""
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Hosts(Protocol):
    """What the supervisor needs of the hosts."""

    names: tuple[str, ...]
    tls: Certificates | None

    def send(self, host: str, command: dict[str, Any]) -> None:
        """Give a command to the agent of a host; nothing happens if the host is lost."""

    def receive(self, timeout: float) -> Event | None:
        """The next event of any host, `lost` among them; None after this many seconds."""

    def address(self, host: str) -> str:
        """Where the copies of a host can be reached."""

    def fetch(self, host: str, file: str) -> bytes:
        """The content of a file of results. Raises a Fault if the host is lost."""

    def abandon(self, host: str) -> None:
        """Do without a host: end what still runs there, if that is possible without waiting."""

    def close(self) -> None:
        """End all agents and their copies."""


def start_agent(name: str, listen: str) -> subprocess.Popen[bytes]:
    """An agent as a child process, in a session of its own, so that Ctrl-C does not reach it."""
    settings = {"name": name, "listen": listen, "path": sys.path}
    return subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.agent", json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=MALLOC | dict(os.environ) | dict.fromkeys(ONE_THREAD, "1"),
        start_new_session=True,
    )


def end_agent(process: subprocess.Popen[bytes], patience: float = 5.0) -> None:
    """Close its standard input, which ends it and all its copies; kill it if that does not help."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class LocalHosts:
    """Agents on this machine, each standing for one host."""

    tls: Certificates | None = None

    def __init__(self, names: Sequence[str], tls: Certificates | None = None) -> None:
        self.names = tuple(names)
        self.tls = tls
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._agents = {name: start_agent(name, "127.0.0.1") for name in self.names}
        self._folders: dict[str, str] = {}
        self._threads = [
            threading.Thread(target=self._listen, args=(name, agent), daemon=True)
            for name, agent in self._agents.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the agents."""
        return {name: agent.pid for name, agent in self._agents.items()}

    def send(self, host: str, command: dict[str, Any]) -> None:
        pipe = self._agents[host].stdin
        assert pipe is not None
        with contextlib.suppress(OSError):  # the loss of the agent is an event of its own
            pipe.write(json.dumps(command).encode() + b"\n")
            pipe.flush()

    def receive(self, timeout: float) -> Event | None:
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return None

    def address(self, host: str) -> str:
        return "127.0.0.1"

    def fetch(self, host: str, file: str) -> bytes:
        try:
            return Path(file).read_bytes()
        except OSError:
            raise lost_host(host) from None

    def abandon(self, host: str) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._agents[host].pid, signal.SIGKILL)

    def close(self) -> None:
        for agent in self._agents.values():
            if agent.stdin is not None:
                with contextlib.suppress(OSError):
                    agent.stdin.close()
        for agent in self._agents.values():
            end_agent(agent)
        for thread in self._threads:
            thread.join(5.0)
        for folder in self._folders.values():  # a killed agent leaves it
            shutil.rmtree(folder, ignore_errors=True)

    def _listen(self, name: str, agent: subprocess.Popen[bytes]) -> None:
        assert agent.stdout is not None
        with agent.stdout as lines:
            for line in lines:
                event = json.loads(line)
                if event["event"] == "agent":
                    self._folders[name] = event["folder"]
                else:
                    self._events.put(event)
        self._events.put({"event": "lost", "host": name})

    def __enter__(self) -> LocalHosts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
