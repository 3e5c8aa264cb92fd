"""Functions that may take only so long.

A thread cannot be ended from outside. A function with a time-out is called in a thread of its own; if it does not
return in time, the task fails and the thread is left behind. A local worker is then started again, which ends it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.model.errors import TaskFailed
from headrace.model.units import show_time
from headrace.runtime import crash_notes
from headrace.runtime.task_logs import current_log, join_log
from headrace.runtime.worker_report import join_task, task_is_reported

_LEAST_REPORTING = 0.3
_MOST_REPORTING = 20.0
"""Seconds until a local worker is restarted, at least and, if its failure has not been reported before, at most."""


def call_within(body: Callable[..., Any], arguments: Sequence[Any], timeout: float) -> tuple[Any, float]:
    """Call a function; return its value and the CPU seconds of its thread.

    >>> call_within(divmod, (7, 2), 10.0)[0]
    (3, 1)
    """
    if timeout == math.inf:
        began = time.thread_time()
        value = body(*arguments)
        return value, time.thread_time() - began
    call = _Call(body, arguments)
    call.thread.start()
    call.thread.join(timeout)
    if call.thread.is_alive():
        if crash_notes.NOTES is not None:
            threading.Thread(target=_restart, args=(task_is_reported(),), daemon=True).start()
        raise timed_out(timeout)
    if call.error is not None:
        raise call.error
    return call.value, call.cpu


def _restart(is_reported: Callable[[], bool]) -> None:
    """Restart this worker as soon as its failure is known, or the task would be taken for lost and tried for ever."""
    time.sleep(_LEAST_REPORTING)
    end = time.monotonic() + _MOST_REPORTING
    while not is_reported() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.05)  # a message may just be on its way
    crash_notes.restart_worker()


def timed_out(timeout: float) -> TaskFailed:
    """The error of a task that took too long."""
    return TaskFailed(f"it did not finish within {show_time(timeout)}", hint="allow more time with timeout=")


class _Call:
    """One call in a thread of its own, on behalf of the task of the thread that makes it."""

    def __init__(self, body: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.cpu = 0.0
        self.thread = threading.Thread(
            target=self._run, args=(body, arguments, current_log(), join_task()), daemon=True
        )

    def _run(
        self, body: Callable[..., Any], arguments: Sequence[Any], log: Any, join: Callable[[], None]
    ) -> None:
        join_log(log)
        join()
        began = time.thread_time()
        try:
            self.value = body(*arguments)
        except BaseException as error:  # raised again by the thread of the task
            self.error = error
        self.cpu = time.thread_time() - began
