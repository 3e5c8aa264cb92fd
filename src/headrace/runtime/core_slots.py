"""Cores and memory of a worker: a task waits until there is enough of both for it, and then holds them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.model.errors import TaskFailed
from headrace.model.units import show_size


@dataclass(frozen=True, slots=True)
class Room:
    """What a task needs, or a worker has."""

    cores: int = 1
    memory: float = 0.0
    """Bytes."""


class CoreSlots:
    """Cores and memory of this process, given out in the order in which they were asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cores = 0
        self._memory = 0.0
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
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._cores -= needed.cores
                # What is left of sums and differences of fractions must not add up.
                self._memory = max(0.0, self._memory - needed.memory) if self._cores else 0.0
                self._changed.notify_all()

    def _has_room(self, needed: Room, total: Room) -> bool:
        return self._cores + needed.cores <= total.cores and self._memory + needed.memory <= total.memory


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


CORES = CoreSlots()
"""The cores and the memory of this process."""
