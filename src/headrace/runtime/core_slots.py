"""Cores, memory and named resources of a worker: a task waits until there is enough of all, and then holds them."""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from headrace.model.errors import TaskFailed
from headrace.model.units import show_size


@dataclass(frozen=True, slots=True)
class Room:
    """What a task needs, or a worker has."""

    cores: int = 1
    memory: float = 0.0
    """Bytes."""
    resources: tuple[tuple[str, int], ...] = ()


HostRoom: TypeAlias = tuple[tuple[str, float, tuple[tuple[str, int], ...]], ...]
"""Hosts with their memory and resources."""


class CoreSlots:
    """Cores, memory and resources of this process, given out in the order in which they were asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cores = 0
        self._memory = 0.0
        self._resources: Counter[str] = Counter()
        self._waiting: deque[object] = deque()

    @contextmanager
    def occupied(self, needed: Room, total: Room, task: str) -> Iterator[None]:
        """Context in which this thread has so much of `total`.

        >>> with CoreSlots().occupied(Room(2), Room(1), "t"):
        ...     pass
        Traceback (most recent call last):
            ...
        headrace.model.errors.TaskFailed: task 't': it needs 2 cores, but this worker has 1 (try: use workers with...
        """
        _require(needed, total, task)
        if total.cores == 1:
            yield
            return
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket and self._has_room(needed, total))
            self._waiting.popleft()
            self._cores += needed.cores
            self._memory += needed.memory
            self._resources.update(dict(needed.resources))
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._cores -= needed.cores
                self._resources.subtract(dict(needed.resources))
                # What is left of sums and differences of fractions must not add up.
                self._memory = max(0.0, self._memory - needed.memory) if self._cores else 0.0
                self._changed.notify_all()

    def _has_room(self, needed: Room, total: Room) -> bool:
        has = dict(total.resources)
        return (
            self._cores + needed.cores <= total.cores
            and self._memory + needed.memory <= total.memory
            and all(self._resources[name] + count <= has.get(name, 0) for name, count in needed.resources)
        )


def whole_resources(given: Mapping[str, float] | None) -> dict[str, int]:
    """Resources of a worker as whole numbers, rounded down; names that mean something else here are left out."""
    found = {name: math.floor(count) for name, count in (given or {}).items() if 0 <= count <= 10**9}
    return {name: count for name, count in found.items() if name not in ("memory", "cores") and name.strip()}


def _require(needed: Room, total: Room, task: str) -> None:
    if needed.cores > total.cores:
        raise TaskFailed(
            f"it needs {needed.cores} cores, but this worker has {total.cores}",
            where=f"task {task!r}",
            hint="use workers with more threads",
        )
    if needed.memory > total.memory:
        raise TaskFailed(
            f"it needs {show_size(needed.memory)} of memory, but this worker has {show_size(total.memory)}",
            where=f"task {task!r}",
            hint="use workers with more memory",
        )
    has = dict(total.resources)
    for name, count in needed.resources:
        if count > has.get(name, 0):
            raise TaskFailed(
                f"it needs {count} of {name!r}, but this worker has {has.get(name, 0)}",
                where=f"task {task!r}",
                hint="name the resources of hosts in a platform file, or start workers with them",
            )


CORES = CoreSlots()
"""The cores, memory and resources of this process."""
