"""Measure the speeds of a cluster's workers, relative to the slowest."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from headrace.model.errors import HeadraceError
from headrace.runtime.pace import set_speed


def probe_speeds(client: Any) -> dict[str, float]:
    """Speed of each worker by address; the slowest has 1. Workers then emulate tasks at that speed.

    Every worker runs the same short loop; CPU time is measured, so that workers on the same machine do not
    disturb each other.
    """
    try:
        seconds = client.run(calibrate)
        slowest = max(seconds.values())
        speeds = {address: round(slowest / taken, 3) for address, taken in sorted(seconds.items())}
        for address, speed in speeds.items():
            client.run(set_speed, speed, workers=[address])
    except ImportError as error:
        raise HeadraceError(
            f"a worker cannot load headrace: {error}",
            where="cluster",
            hint="install the same version of headrace for the scheduler and the workers",
        ) from error
    return speeds


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
