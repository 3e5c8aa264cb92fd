"""Hosts that are Dask workers: each runs an agent in a long-running task pinned to it.

Commands and events go through Dask, so they are authenticated and encrypted as the cluster is; data goes directly
between the copies.
"""

from __future__ import annotations

import contextlib
import json
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from headrace.model.errors import UsageError
from headrace.runtime.asking import ask_workers
from headrace.runtime.cluster import Cluster
from headrace.runtime.streams.faults import lost_host
from headrace.runtime.streams.hosts import Event, end_agent, start_agent
from headrace.runtime.streams.tls import Certificates

_CHUNK = 4 * 2**20
"""Bytes of results fetched at a time: results are the only data that passes Dask's scheduler."""
_CHECK_SECONDS = 0.5
_ANSWER_SECONDS = 30.0
"""A worker that does not answer for so long is lost."""
_LATE_SECONDS = 3600.0
_OWN: Certificates = {}
"""Stands for the certificates of the worker itself: keys do not leave the machine that they belong to."""
_AGENTS: dict[str, subprocess.Popen[bytes]] = {}
"""In a worker: its agents by run and host."""


class DaskHosts:
    """Agents on the workers of a cluster."""

    def __init__(self, cluster: Cluster, workers: Mapping[str, str]) -> None:
        """`workers`: the address of the worker for each host of the plan."""
        self.names = tuple(workers)
        self._client = cluster.client
        self._workers = dict(workers)
        self._run = secrets.token_hex(8)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._lost: set[str] = set()
        self._next_check = 0.0
        encrypted = all(address.startswith("tls://") for address in self._workers.values())
        self.tls: Certificates | None = _OWN if encrypted else None
        self._client.subscribe_topic(self._run, self._hear)
        self._tasks = {
            name: self._client.submit(
                serve_agent,
                self._run,
                name,
                urlsplit(address).hostname,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
                key=f"stream-{self._run}-{name}",
            )
            for name, address in self._workers.items()
        }
        self._await_agents()

    def send(self, host: str, command: dict[str, Any]) -> None:
        self._check_workers()  # asking one that is gone takes long
        if host not in self._lost:
            self._call(host, command_agent, self._run, host, command)

    def receive(self, timeout: float) -> Event | None:
        self._check_workers()
        try:
            return self._events.get(timeout=min(timeout, _CHECK_SECONDS))
        except queue.Empty:
            return None

    def address(self, host: str) -> str:
        return str(urlsplit(self._workers[host]).hostname)

    def fetch(self, host: str, file: str) -> bytes:
        parts: list[bytes] = []
        while not parts or len(parts[-1]) == _CHUNK:
            part = self._call(host, read_results, self._run, host, file, len(parts) * _CHUNK)
            if part is None:
                raise lost_host(host)
            parts.append(part)
        return b"".join(parts)

    def abandon(self, host: str) -> None:
        self._lost.add(host)
        # If the worker wakes up while this client is connected, it ends its agent.
        question = {self._workers[host]: (self._run, host)}
        threading.Thread(
            target=ask_workers, args=(self._client, close_agent, question, _LATE_SECONDS), daemon=True
        ).start()

    def close(self) -> None:
        for host in self.names:
            if host not in self._lost:
                with contextlib.suppress(Exception):  # a worker that is gone has taken its agent along
                    self._call(host, close_agent, self._run, host)
        self._client.unsubscribe_topic(self._run)
        self._client.cancel(list(self._tasks.values()), force=True)

    def _call(self, host: str, function: Any, *args: object) -> Any:
        """Call a function in the worker of a host; None, and the host is lost, if it does not answer."""
        address = self._workers[host]
        answers = ask_workers(self._client, function, {address: args}, _ANSWER_SECONDS)
        if address not in answers:
            self._lose(host)
        return answers.get(address)

    def _hear(self, event: tuple[float, Event]) -> None:
        self._events.put(event[1])

    def _await_agents(self) -> None:
        """Wait until all agents run: a worker may be busy with other tasks."""
        waiting = set(self.names)
        deadline = time.monotonic() + 60.0
        while waiting:
            event = self.receive(1.0)
            if event is not None and event["event"] == "agent":
                waiting.discard(event["host"])
            elif event is not None and event["event"] == "lost":
                raise UsageError("its worker was lost", where=event["host"], hint="check the cluster")
            if time.monotonic() > deadline:
                late = sorted(waiting)[0]
                raise UsageError(
                    "its worker did not start in 60 s", where=late, hint="is it busy with other tasks?"
                )

    def _check_workers(self) -> None:
        """A pinned task whose worker is gone waits for ever: look at the workers, not at the task."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _CHECK_SECONDS
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        for host, address in self._workers.items():
            if address not in known:
                self._lose(host)

    def _lose(self, host: str) -> None:
        if host not in self._lost:
            self._lost.add(host)
            self._events.put({"event": "lost", "host": host})

    def __enter__(self) -> DaskHosts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve_agent(run: str, host: str, address: str) -> None:
    """In a worker: start an agent and pass its events on, until it ends."""
    from distributed import get_worker

    worker = get_worker()
    agent = start_agent(host, address)
    _AGENTS[f"{run} {host}"] = agent
    assert agent.stdout is not None
    try:
        with agent.stdout as lines:
            for line in lines:
                worker.log_event(run, json.loads(line))
    finally:
        _AGENTS.pop(f"{run} {host}", None)
        end_agent(agent)
        worker.log_event(run, {"event": "lost", "host": host})


def command_agent(run: str, host: str, command: dict[str, Any], dask_worker: Any) -> None:
    """In a worker: pass a command to its agent."""
    if command.get("tls") == _OWN:
        command = command | {"tls": worker_certificates(dask_worker)}
    agent = _AGENTS.get(f"{run} {host}")
    if agent is not None and agent.stdin is not None:
        with contextlib.suppress(OSError):
            agent.stdin.write(json.dumps(command).encode() + b"\n")
            agent.stdin.flush()


def close_agent(run: str, host: str) -> None:
    """In a worker: end its agent, in a thread, since that may take seconds."""
    agent = _AGENTS.get(f"{run} {host}")
    if agent is not None:
        threading.Thread(target=end_agent, args=(agent,)).start()


def read_results(run: str, host: str, file: str, offset: int) -> bytes:
    """In a worker: a part of a file of results."""
    with Path(file).open("rb") as data:
        data.seek(offset)
        return data.read(_CHUNK)


def worker_certificates(dask_worker: Any) -> dict[str, str]:
    """In a worker: its certificates, as paths or as text."""
    security = dask_worker.security
    return {
        "ca": security.tls_ca_file,
        "cert": security.tls_worker_cert,
        "key": security.tls_worker_key or "",
    }
