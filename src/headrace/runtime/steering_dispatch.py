"""Which ready task of a Dask cluster goes to which worker, and when: earliest finish, decided as late as possible.

Ready tasks wait in the order of their priorities. A task is for the worker on which it finishes first, counting what
that worker still has to do, the transfer of the task's inputs and the task's own time there. If that worker has enough
to do for the moment, the task waits, and counts as work of that worker when the tasks after it are looked at: a slow
worker gets a task only if the task would finish there before it finishes behind all that waits for the fast ones. There
is neither a clock nor I/O in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.runtime.steering_times import Delays

MOST = 64
"""Tasks that a thread may have waiting, however short they are."""
_WORTH = 3.0
"""A transfer must gain this many times the cost of starting one, which also occupies both workers."""
_LOOKED_AT = 16
"""Tasks per worker that one decision may look at."""
_UNSURE = 0.05
"""Of a task that should be over by now, at least this share of its time is left."""
_EXACT_PARTS = 16
"""Inputs of a task up to which each transfer is computed by itself."""


@dataclass(slots=True)
class Assigned:
    """A task that a worker has."""

    seconds: float
    priority: Any
    started: float | None = None
    """When a thread was free for it."""
    sent: float = 0.0
    guessed: str = ""
    """The prefix, if nothing was known of it."""

    def left(self, now: float) -> float:
        """Seconds until it ends: one that lasts longer than expected is expected to last as long again.

        >>> task = Assigned(2.0, 0, started=10.0)
        >>> [task.left(now) for now in (10.0, 11.5, 15.0)]
        [2.0, 0.5, 3.1]
        """
        if self.started is None:
            return self.seconds
        passed = now - self.started
        if passed < self.seconds:
            return max(self.seconds - passed, _UNSURE * self.seconds)
        return passed - self.seconds + _UNSURE * self.seconds


class Slot:
    """A worker: its threads and the tasks that it has."""

    __slots__ = ("name", "running", "tasks", "threads")

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = max(threads, 1)
        self.tasks: dict[Any, Assigned] = {}
        self.running = 0

    def add(self, key: Any, seconds: float, priority: Any, now: float, guessed: str = "") -> None:
        begun = self.running < self.threads
        self.tasks[key] = Assigned(seconds, priority, now if begun else None, now, guessed)
        self.running += begun

    def learn(self, prefix: str, seconds: float) -> None:
        """The first task of a prefix has ended: the others are no longer guessed. O(tasks of the worker)."""
        for task in self.tasks.values():
            if task.guessed == prefix:
                task.seconds, task.guessed = seconds, ""

    def remove(self, key: Any, now: float) -> Assigned | None:
        """Take a task away; if it ran, the next one begins. O(tasks of the worker)."""
        gone = self.tasks.pop(key, None)
        if gone is not None and gone.started is not None:
            self.running -= 1
            waiting = [task for task in self.tasks.values() if task.started is None]
            if waiting:
                min(waiting, key=_priority).started = now
                self.running += 1
        return gone

    def busy(self, now: float) -> float:
        """Seconds until a thread is free, if nothing is added."""
        if len(self.tasks) < self.threads:
            return 0.0
        return sum([task.left(now) for task in self.tasks.values()]) / self.threads


def _priority(task: Assigned) -> Any:
    return task.priority


class Part(NamedTuple):
    """An input of a task."""

    size: float
    holders: tuple[str, ...]


@dataclass(slots=True)
class Ready:
    """A task whose inputs are there."""

    key: Any
    priority: Any
    prefix: str
    work: float
    parts: list[Part] = field(default_factory=list)
    known: bool = True
    """Whether the work is more than a guess."""
    held: dict[str, float] | None = None
    """With many inputs: the bytes that each worker has."""
    total: float = 0.0

    def transfer(self, worker: str, rate: Callable[[str, str], float], latency: float) -> float:
        """Seconds until all inputs are at a worker; O(inputs) for up to 16 of them, otherwise O(1)."""
        if self.held is not None:
            missing = self.total - self.held.get(worker, 0.0)
            return latency + missing / rate("", worker) if missing > 0 else 0.0
        seconds = 0.0
        for size, holders in self.parts:
            if worker not in holders:
                seconds += size / rate(holders[0] if holders else "", worker)
        return seconds and seconds + latency


def ready_task(
    key: Any, priority: Any, prefix: str, work: float, parts: list[Part], known: bool = True
) -> Ready:
    """A task with its inputs. O(inputs and their copies)."""
    task = Ready(key, priority, prefix, work, parts, known)
    if len(parts) > _EXACT_PARTS:
        task.held = {}
        for size, holders in parts:
            task.total += size
            for holder in holders:
                task.held[holder] = task.held.get(holder, 0.0) + size
    return task


class _Load:
    """What a worker has and what waits for it, while a decision is made."""

    __slots__ = ("busy", "count", "left", "slot")

    def __init__(self, slot: Slot, now: float) -> None:
        self.slot = slot
        self.count = len(slot.tasks)
        self.left = sum([task.left(now) for task in slot.tasks.values()])
        self.busy = self._busy()

    def _busy(self) -> float:
        return self.left / self.slot.threads if self.count >= self.slot.threads else 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.left += seconds
        self.busy = self._busy()

    def open(self, ahead: float) -> bool:
        return self.busy < ahead and self.count < MOST * self.slot.threads


def dispatch(
    queue: Iterable[Ready],
    slots: Mapping[str, Slot],
    now: float,
    seconds: Callable[[str, float, str], float],
    rate: Callable[[str, str], float],
    delays: Delays,
) -> list[tuple[Ready, str]]:
    """The tasks to send now, each with its worker, in the order of the queue.

    `seconds(prefix, work, worker)` is the run time on a worker, `rate(source, target)` a bandwidth. O(workers) for each
    task that is looked at, and at most 16 tasks are looked at for each worker beyond those that are sent.
    """
    ahead, latency, between = delays.ahead, delays.latency, delays.between.value
    loads = {name: _Load(slot, now) for name, slot in slots.items()}
    free = {name for name, load in loads.items() if load.open(ahead)}
    sent: list[tuple[Ready, str]] = []
    looks = _LOOKED_AT * len(slots)
    for task in queue:
        if not free or looks <= 0:
            break
        best, finish, spent = "", float("inf"), 0.0
        for name, load in loads.items():
            if load.busy < finish:
                lasts = seconds(task.prefix, task.work, name) + between
                moves = task.transfer(name, rate, latency)
                ends = max(load.busy, moves) + lasts + (_WORTH * latency if moves else 0.0)
                if ends < finish:
                    best, finish, spent = name, ends, lasts
        if best in free:
            sent.append((task, best))
        else:
            looks -= 1
        # A worker gets one task of unknown length at a time.
        loads[best].add(spent if task.known else max(spent, ahead * loads[best].slot.threads))
        if not loads[best].open(ahead):
            free.discard(best)
    return sent
