"""End a run in which nothing moves and nothing runs, and say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed.metrics import time as engine_time

from headrace.model.errors import RunStalled

if TYPE_CHECKING:
    from headrace.runtime.dask_control import Control
    from headrace.runtime.dask_hosts import Hosts
    from headrace.runtime.graph import Layout

_SHOWN = 3
_EXECUTING = ("executing", "long-running", "cancelled", "resumed")
"""States of tasks that occupy a thread of a worker; a task that was cancelled goes on until it ends."""
_SLOWEST = 1e5
"""Bytes per second: a transfer that is slower counts as a standstill."""


class Watchdog:
    """Notices a standstill: for `stall` seconds no task has changed its state or was executed, and no data was sent."""

    def __init__(self, scheduler: Any, layout: Layout, hosts: Hosts, stall: float) -> None:
        self.scheduler = scheduler
        self.layout = layout
        self.hosts = hosts
        self.stall = stall
        self._last = engine_time()
        self._transfers: dict[str, tuple[int, int]] = {}

    def moved(self) -> None:
        """Something has happened."""
        self._last = engine_time()

    @property
    def still(self) -> float:
        """Seconds since something has happened."""
        return float(engine_time() - self._last)

    def check(self, control: Control | None) -> None:
        """Raise RunStalled at a standstill that lasts too long. O(workers), at a standstill O(tasks)."""
        if self._is_busy() or (control is not None and control.waits):
            self.moved()
        under_way = sum(size for _, size in self._transfers.values())
        if self.still > self.stall + under_way / _SLOWEST:
            raise RunStalled(
                f"nothing has happened for {self.stall:g} s: {self._tasks()}; {self._hosts()}",
                where="run",
                hint="see the state of the hosts, then run it again",
            )

    def _is_busy(self) -> bool:
        """Whether a worker that is heard of executes a task, of this run or another, or has received data."""
        for host, address in self.hosts.address.items():
            worker = self.scheduler.workers.get(address)
            if worker is None or self.hosts.told.get(host) == "silent":
                continue
            counts = worker.metrics.get("task_counts") or {}
            if any(counts.get(state, 0) > 0 for state in _EXECUTING):
                return True
        return self._has_received()

    def _has_received(self) -> bool:
        """Whether a worker has begun or finished a transfer since the last call."""
        now = {}
        for address in self.hosts.address.values():
            worker = self.scheduler.workers.get(address)
            figures = {} if worker is None else worker.metrics.get("transfer") or {}
            now[address] = (figures.get("incoming_count_total", 0), figures.get("incoming_bytes", 0))
        before, self._transfers = self._transfers, now
        return before != now

    def _tasks(self) -> str:
        """The first tasks that could go on, and what each waits for."""
        stuck = []
        for key, task in self.layout.tasks.items():
            state = self.scheduler.tasks.get(key)
            if state is None or state.state not in ("processing", "no-worker"):
                continue
            stuck.append(f"task {task!r} {self._why(state)}")
        more = f" and {len(stuck) - _SHOWN} more" if len(stuck) > _SHOWN else ""
        return ", ".join(stuck[:_SHOWN]) + more if stuck else "no task is ready"

    def _why(self, state: Any) -> str:
        if state.state == "no-worker":
            return "has no host"
        worker = state.processing_on
        host = self.hosts.host(worker.address)
        for data in sorted(state.dependencies, key=lambda each: str(each.key)):
            if worker not in (data.who_has or ()):
                at = sorted(self.hosts.host(w.address) for w in data.who_has or ())
                item = self.layout.items.get(data.key, str(data.key))
                return f"waits on {host} for {item!r} from {', '.join(at) or 'nowhere'}"
        return f"waits on {host} to be started"

    def _hosts(self) -> str:
        """The state of every host that is not simply up."""
        told = self.hosts.told
        parts = [
            f"host {host} is {state}"
            + (f" for {self.hosts.silence(host):.0f} s" if state == "silent" else "")
            for host, state in sorted(told.items())
            if state != "up"
        ]
        up = sum(state == "up" for state in told.values())
        return ", ".join([*parts[:8], f"{up} of {len(told)} hosts are up"])
