"""What a worker adds to the engine's message that a task has ended: a measurement, and the data that arrived.

A worker sends its task's `metadata` with that message, and logs incoming transfers in `transfer_incoming_log`. Neither
is public in distributed.
"""

from __future__ import annotations

import threading
from itertools import takewhile
from typing import Any

METADATA = "headrace"
_CLOCK_NOISE = 0.1
_shipping = threading.Lock()
_last_shipped: dict[str, Any] | None = None
"""The last entry of this worker's transfer log that was reported to the scheduler."""


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
    measured["moves"] = [
        (
            entry["start"] - delay + shift,
            entry["stop"] - delay + shift,
            entry["who"],
            [*entry["keys"].items()],
        )
        for entry in arrived
    ]
    state = worker.state.tasks.get(thread_state.key)
    if state is not None:
        state.metadata[METADATA] = measured
