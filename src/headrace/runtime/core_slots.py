"""Cores of a worker: a task that needs several waits until as many of its threads are idle, and keeps them idle."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.model.errors import TaskFailed


class CoreSlots:
    """Cores of this process, given out in the order in which they were asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._used = 0
        self._waiting: deque[object] = deque()

    @contextmanager
    def occupied(self, cores: int, total: int, task: str) -> Iterator[None]:
        """Context in which this thread has so many of `total` cores.

        >>> with CoreSlots().occupied(2, 1, "t"):
        ...     pass
        Traceback (most recent call last):
            ...
        headrace.model.errors.TaskFailed: task 't': it needs 2 cores, but this worker has 1 (try: use workers with...
        """
        if cores > total:
            raise TaskFailed(
                f"it needs {cores} cores, but this worker has {total}",
                where=f"task {task!r}",
                hint="use workers with more threads",
            )
        if total == 1:
            yield
            return
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket and self._used + cores <= total)
            self._waiting.popleft()
            self._used += cores
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._used -= cores
                self._changed.notify_all()


CORES = CoreSlots()
"""The cores of this process."""
