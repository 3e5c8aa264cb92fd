"""Measure the speeds of a cluster's workers, relative to the slowest."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from headrace.model.errors import HeadraceError
from headrace.runtime.asking import ask_workers
from headrace.runtime.pace import PACE, SPEED_VARIABLE, set_speed


def probe_speeds(client: Any) -> dict[str, float]:
    """Speed of each worker by address; the slowest has 1. Workers then emulate tasks at that speed.

    Every worker runs the same short loop; CPU time is measured, so that workers on the same machine do not
    disturb each other. Workers that were started with an emulated speed are measured and stay as they are. Workers that
    do not answer have no speed.
    """
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    seconds = ask_workers(client, emulated_seconds, addresses)
    if not seconds:
        raise HeadraceError("no worker answers", where="cluster", hint="see that workers run")
    slowest = max(seconds.values())
    speeds = {address: round(slowest / taken, 3) for address, taken in sorted(seconds.items())}
    ask_workers(client, _adopt_speed, {address: (speed,) for address, speed in speeds.items()})
    return speeds


def emulated_seconds() -> float:
    """Seconds that the computation of `calibrate` lasts on this worker at the speed that it emulates."""
    return calibrate() * (PACE.stretch / PACE.speed if _emulating() else 1.0)


def _adopt_speed(speed: float) -> None:
    if not _emulating():
        set_speed(speed)


def _emulating() -> bool:
    return SPEED_VARIABLE in os.environ


def calibrate(rounds: int = 3) -> float:
    """CPU seconds of a fixed numpy computation, the minimum over some rounds.

    >>> calibrate(1) > 0
    True
    """
    values = np.linspace(0.0, 1.0, 20_000)
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        for shift in range(40):
            np.sort(np.sin(values + shift))
        best = min(best, time.thread_time() - began)
    return best
