"""What a worker adds to the engine's message that a task has ended: a measurement, and the data that arrived.

A worker sends its task's `metadata` with that message, and logs incoming transfers in `transfer_incoming_log`. Neither
is public in distributed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from headrace.runtime.core_slots import whole_resources

METADATA = "headrace"
ATTEMPT = "headrace-attempt"
"""The annotation of a task that is tried again."""
_CLOCK_NOISE = 0.1
_shipping = threading.Lock()
_last_shipped: dict[str, Any] | None = None
"""The last entry of this worker's transfer log that was reported to the scheduler."""


def moves_of(log: Iterable[Mapping[str, Any]], shift: float) -> list[tuple[float, float, str, list[Any]]]:
    """Start, end, sender, and the keys with their sizes, of each transfer in a worker's log.

    A worker logs no size for a key that it no longer needed when it arrived; such keys are left out.

    >>> entry = {"start": 1.0, "stop": 2.0, "who": "tcp://a:1", "keys": {"x": 5, "y": None}}
    >>> moves_of([entry], 0.5)
    [(1.5, 2.5, 'tcp://a:1', [('x', 5)])]
    """
    return [
        (
            entry["start"] + shift,
            entry["stop"] + shift,
            entry["who"],
            [(key, size) for key, size in entry["keys"].items() if size is not None],
        )
        for entry in log
    ]


def attach_measurement(measured: dict[str, Any]) -> None:
    """On a worker, in a task: report a measurement and incoming transfers when the task ends."""
    global _last_shipped
    from distributed.comm import get_address_host
    from distributed.worker import get_worker, thread_state

    worker = get_worker()
    with _shipping:
        arrived = list(
            takewhile(lambda entry: entry is not _last_shipped, list(worker.transfer_incoming_log)[::-1])
        )
        arrived.reverse()
        if arrived:
            _last_shipped = arrived[-1]
    # The engine's estimate of the clock offset is only as exact as its messages are fast: a small offset is
    # noise, and could make a task start before its predecessor ended. On one machine there is one clock.
    delay = worker.scheduler_delay
    apart = get_address_host(worker.address) != get_address_host(worker.scheduler.address)
    shift = delay if apart and abs(delay) > _CLOCK_NOISE else 0.0
    measured["start"] += shift
    measured["finish"] += shift
    measured["moves"] = moves_of(arrived, shift - delay)
    state = worker.state.tasks.get(thread_state.key)
    if state is not None:
        state.metadata[METADATA] = measured


@dataclass(frozen=True, slots=True)
class RunningTask:
    """The task that this thread executes, as the engine knows it."""

    key: str
    host: str
    threads: int
    """Threads of this worker."""
    attempt: int
    memory: float
    """Bytes that the engine lets this worker have."""
    resources: tuple[tuple[str, int], ...]
    """What it was started with of named resources."""


def running_task() -> RunningTask:
    """On a worker, in a task: what it is and where."""
    from distributed.worker import get_worker, thread_state

    worker, key = get_worker(), thread_state.key
    state = worker.state.tasks.get(key)
    annotations = (state.annotations if state is not None else None) or {}
    limit = worker.memory_manager.memory_limit or math.inf
    resources = tuple(whole_resources(worker.state.total_resources).items())
    name, threads = str(worker.name), worker.state.nthreads
    return RunningTask(str(key), name, threads, annotations.get(ATTEMPT, 1), limit, resources)


def ship(topic: str, message: dict[str, Any]) -> None:
    """On a worker, in a task: send a message to the clients that listen to a topic, before the task ends."""
    from distributed.worker import get_worker

    get_worker().log_event(topic, message)


def join_task() -> Callable[[], None]:
    """On a worker, in a task: a function that makes another thread part of this task."""
    from distributed.worker import thread_state

    here = dict(thread_state.__dict__)
    return lambda: thread_state.__dict__.update(here)


def task_is_reported() -> Callable[[], bool]:
    """On a worker, in a task: a function that says whether its end has been sent to the scheduler."""
    from distributed.worker import get_worker, thread_state

    worker, key = get_worker(), thread_state.key

    def is_reported() -> bool:
        state, stream = worker.state.tasks.get(key), worker.batched_stream
        if (state is not None and state.state == "executing") or stream.buffer:
            return False
        sending = getattr(stream.comm, "stream", None)
        return sending is None or not sending.writing()

    return is_reported


def reported() -> dict[str, Any] | None:
    """On a worker, in a task: what it has reported so far."""
    state = _own_state()
    return None if state is None else state.metadata.get(METADATA)


def add_to_report(more: dict[str, Any]) -> None:
    """On a worker, in a task: add to what it has reported with `attach_measurement`."""
    report = reported()
    if report is not None:
        report.update(more)


def _own_state() -> Any:
    from distributed.worker import get_worker, thread_state

    return get_worker().state.tasks.get(thread_state.key)
