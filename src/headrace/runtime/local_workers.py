"""Worker processes on this machine: started, tracked, started again when they die, and ended by process id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError, UsageError
from headrace.model.platform import Host, Platform
from headrace.runtime.crash_notes import Death, digest_of, note_death, out_of_memory_kills, read_trace
from headrace.runtime.pace import SPEED_VARIABLE, STRETCH_VARIABLE
from headrace.runtime.transport import Transport, TransportKind, open_transport

_START_SECONDS = 60.0
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SHORT_LIFE = 10.0
"""A worker that dies sooner after its start is started again after a pause, longer each time."""
_LONGEST_PAUSE = 5.0
CONNECT = "3s"
"""How long a worker tries to reach another one on the same machine; the engine's default is 30 s."""

MOST_WORKERS = 1_000
"""Processes that are started on this machine."""


class LocalWorkers:
    """Worker processes; they end with this object or with this process, whichever comes first."""

    def __init__(self, fleet: _Fleet, platform: Platform) -> None:
        self._fleet = fleet
        self.platform = platform
        self._finalizer = weakref.finalize(self, _Fleet.end, fleet)

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in list(self._fleet.processes.items())}

    @property
    def folder(self) -> Path:
        """The folder of all these workers, readable only by this user; removed at the end."""
        return Path(self._fleet.folder)

    @property
    def transport(self) -> Transport:
        return self._fleet.transport

    def join(self, scheduler: str, memory: int | None = None, connect: str = CONNECT) -> None:
        """Tell the processes where the cluster's scheduler listens; they join it by themselves.

        `memory` is in bytes per worker, by default an equal share of this machine's; `connect` is how long a worker
        tries to reach another one.
        """
        self._fleet.join(scheduler, memory, connect)

    def wait_for(self, client: Any) -> None:
        """Wait until all workers have joined the cluster."""
        deadline = time.monotonic() + _START_SECONDS
        processes = self._fleet.processes
        while len(client.scheduler_info(n_workers=-1)["workers"]) < len(processes):
            dead = [name for name, process in processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise HeadraceError(
                    f"worker {dead[0]} exited immediately" if dead else "workers did not start in time",
                    where="starting workers",
                    hint="see its output above, or start fewer workers",
                )
            time.sleep(0.02)

    def supervise(self, restart: bool) -> None:
        """From now on, note which task a worker executed when it died and, if asked, start it again."""
        self._fleet.restart = restart
        for name in self._fleet.processes:
            self._fleet.supervise(name)

    def add(self, hosts: Sequence[Host]) -> None:
        """Start and supervise more workers; they join the cluster by themselves."""
        for host in hosts:
            self._fleet.add(host)

    def end(self) -> None:
        """Kill every worker together with the commands it started, and wait until they are gone."""
        self._finalizer()

    close = end


class _Fleet:
    """The processes and how to start them; shared with the threads that supervise them."""

    def __init__(self, hosts: Sequence[Host], stretch: float | None, transport: Transport) -> None:
        self.folder = transport.folder
        self.transport = transport
        self.hosts = {host.name: host for host in hosts}
        self.stretch = stretch
        """None: no speed is emulated."""
        self.common: dict[str, Any] | None = None
        """Settings of all workers; None until their cluster is known."""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.restart = False
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def add(self, host: Host) -> None:
        with self.lock:
            if self.ended.is_set():
                return
            self.hosts[host.name] = host
            self.start(host.name)
        self.supervise(host.name)

    def supervise(self, name: str) -> None:
        threading.Thread(target=self.watch, args=(name,), name=f"supervisor of {name}", daemon=True).start()

    def start(self, name: str) -> None:
        host = self.hosts[name]
        environment = dict.fromkeys(_ONE_THREAD_EACH, "1") | dict(os.environ)
        environment["TMPDIR"] = self.folder  # leftovers of killed tasks are removed with it
        if self.stretch is not None:
            environment[SPEED_VARIABLE] = repr(host.speed)
            environment[STRETCH_VARIABLE] = repr(self.stretch)
        process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker_process"],
            stdin=subprocess.PIPE,
            stdout=2,  # output of tasks must not mix with our results
            env=environment,
            # Own session: Ctrl-C reaches only us, and its commands can be ended with it.
            start_new_session=True,
        )
        self.processes[name] = process
        if self.common is not None:
            self._instruct(name, self.common)

    def join(self, scheduler: str, memory: int | None, connect: str) -> None:
        from distributed.system import MEMORY_LIMIT

        self.common = {
            "scheduler": scheduler,
            "memory": memory or int(MEMORY_LIMIT / len(self.hosts)),
            "connect": connect,
            "host": self.transport.host,
            "security": self.transport.security,
        }
        for name in self.processes:
            self._instruct(name, self.common)

    def _instruct(self, name: str, common: Mapping[str, Any]) -> None:
        """Send a worker its settings: through the pipe, since they may contain a key and command lines are public."""
        pipe = self.processes[name].stdin
        assert pipe is not None
        settings = {
            **common,
            "name": name,
            "threads": self.hosts[name].cores,
            "folder": self.folder,
            "path": sys.path,
        }
        with suppress(BrokenPipeError):
            pipe.write(json.dumps(settings).encode() + b"\n")
            pipe.flush()

    def watch(self, name: str) -> None:
        """Wait for the worker's end, note it, start it again if that is wanted; until all are ended."""
        pause = 0.0
        while not self.ended.is_set():
            process, began, kills = self.processes[name], time.monotonic(), out_of_memory_kills()
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its id stays taken
            with self.lock:
                if self.ended.is_set():
                    return
                end_session(process.pid)
                status = process.wait()
                self._note(name, process.pid, status, out_of_memory_kills() > kills)
            if not self.restart:
                return
            short = time.monotonic() - began < _SHORT_LIFE
            pause = min(_LONGEST_PAUSE, 2 * pause + 0.1) if short else 0.0
            if self.ended.wait(pause):
                return
            with self.lock:
                if not self.ended.is_set():
                    assert process.stdin is not None
                    process.stdin.close()
                    self.start(name)

    def _note(self, name: str, pid: int, status: int, short_of_memory: bool) -> None:
        folder, file = Path(self.folder), f"{digest_of(name)}.{pid}"
        killed = short_of_memory and status == -signal.SIGKILL
        note_death(folder, file, Death(name, status, killed, read_trace(folder, file)))

    def end(self) -> None:
        self.ended.set()
        with self.lock:
            for process in self.processes.values():
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    end_session(process.pid)
            for process in self.processes.values():
                process.wait()
                if process.stdin is not None:
                    with suppress(BrokenPipeError):
                        process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def spawn_workers(
    workers: int | None = None,
    *,
    speeds: Sequence[float] | None = None,
    stretch: float = 1.0,
    threads: int = 1,
    transport: TransportKind = "auto",
) -> LocalWorkers:
    """Start worker processes, one per host of `Platform.local`, that load their code and wait to be told their cluster.

    This module does not load the engine: the processes start while their parent still does.
    """
    if workers is not None and speeds is not None and workers != len(speeds):
        raise UsageError(f"{workers} workers with {len(speeds)} speeds", hint="give one speed per worker")
    number = workers or len(speeds or ())
    if number > MOST_WORKERS:
        hint = f"give at most {MOST_WORKERS:,}, or one per core"
        raise UsageError(f"{number:,} workers on one machine, each a process", hint=hint)
    if not stretch > 0:
        raise UsageError(f"stretch is {stretch}", hint="give a number above 0")
    platform = Platform.local(workers, speeds=speeds, cores=threads)
    return start_workers(platform, stretch, open_transport(transport))


def start_workers(platform: Platform, stretch: float | None, transport: Transport) -> LocalWorkers:
    """Start a worker process for each host of a platform; they wait to be told their cluster."""
    fleet = _Fleet(platform.hosts, stretch, transport)
    started = LocalWorkers(fleet, platform)
    for host in platform.hosts:
        fleet.start(host.name)
    return started


def end_session(leader: int, *, spare: int = 0) -> None:
    """Kill all processes of a session, such as the commands of a worker, each in its own process group.

    The leader must not have been waited for: its id could belong to another process. O(processes of the machine).
    """
    import psutil  # type: ignore[import-untyped]

    for pid in psutil.pids():
        with suppress(OSError):
            if pid != spare and os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)
