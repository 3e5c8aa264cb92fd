"""Worker processes on this machine: started, tracked and ended by process id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.model.platform import Host
from headrace.runtime.pace import SPEED_VARIABLE, STRETCH_VARIABLE

_START_SECONDS = 60.0
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalWorkers:
    """Worker processes; they end with this object or with this process, whichever comes first."""

    def __init__(self, processes: dict[str, subprocess.Popen[bytes]], folder: str) -> None:
        self._processes = processes
        self._finalizer = weakref.finalize(self, _end_all, processes, folder)

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._processes.items()}

    def wait_for(self, client: Any) -> None:
        """Wait until all workers have joined the cluster."""
        deadline = time.monotonic() + _START_SECONDS
        while len(client.scheduler_info(n_workers=-1)["workers"]) < len(self._processes):
            dead = [name for name, process in self._processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise HeadraceError(
                    f"worker {dead[0]} exited immediately" if dead else "workers did not start in time",
                    where="starting workers",
                    hint="see its output above, or start fewer workers",
                )
            time.sleep(0.02)

    def end(self) -> None:
        """Kill every worker together with the commands it started, and wait until they are gone."""
        self._finalizer()

    close = end


def start_workers(scheduler: str, hosts: Sequence[Host], stretch: float) -> LocalWorkers:
    """Start one process per host; they join the cluster by themselves."""
    from distributed.system import MEMORY_LIMIT

    folder = tempfile.mkdtemp(prefix="headrace-workers-")
    processes: dict[str, subprocess.Popen[bytes]] = {}
    workers = LocalWorkers(processes, folder)
    for host in hosts:
        settings = {
            "scheduler": scheduler,
            "name": host.name,
            "threads": host.cores,
            "memory": int(MEMORY_LIMIT / len(hosts)),
            "folder": folder,
            "path": sys.path,
        }
        environment = dict.fromkeys(_ONE_THREAD_EACH, "1") | dict(os.environ)
        environment["TMPDIR"] = folder  # leftovers of killed tasks are removed with it
        environment[SPEED_VARIABLE] = repr(host.speed)
        environment[STRETCH_VARIABLE] = repr(stretch)
        processes[host.name] = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker_process", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=2,  # output of tasks must not mix with our results
            env=environment,
            # Separate process group: Ctrl-C reaches only us, and its commands can be ended with it.
            start_new_session=True,
        )
    return workers


def _end_all(processes: dict[str, subprocess.Popen[bytes]], folder: str) -> None:
    for process in processes.values():
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for process in processes.values():
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)
