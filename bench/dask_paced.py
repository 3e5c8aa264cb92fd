"""Workers of unequal speeds for any Dask code: a task that used c CPU seconds lasts c * stretch / speed.

The engine's own measurements see the whole time, as they would on a slow machine. Workers load this module: it
imports as little as possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_original: list[Callable[..., Any]] = []


def pace_tasks() -> None:
    """On a worker: make all tasks last as long as its emulated speed requires."""
    import distributed.worker

    from headrace.runtime.pace import wait_out

    if _original:
        return
    _original.append(distributed.worker._run_task_simple)

    def paced(task: Any, data: Any, delay: float) -> Any:
        def stretched(given: Any) -> Any:
            began, used = time.perf_counter(), time.thread_time()
            try:
                return task(given)
            finally:
                wait_out(time.thread_time() - used, time.perf_counter() - began)

        return _original[0](stretched, data, delay)

    distributed.worker._run_task_simple = paced


def collect_garbage() -> None:
    """On a worker: leave what is loaded so far out of later collections, whose CPU time would be stretched too."""
    import gc

    gc.collect()
    gc.freeze()


def spin(seconds: float, *inputs: Any) -> float:
    """Use CPU time; returns how much."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return seconds


def spin_list(seconds: list[float]) -> list[float]:
    return [spin(each) for each in seconds]
