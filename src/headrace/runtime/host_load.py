"""How busy this machine is with the work of others: sampled, forecast, and what is left for workers."""

from __future__ import annotations

import time

from headrace.predict.availability import forecast_loads

SAMPLES = 20
SAMPLE_SECONDS = 0.05


def sample_load(samples: int = SAMPLES, seconds: float = SAMPLE_SECONDS) -> list[tuple[float, float]]:
    """The share of all cores in use, sampled this many times: (time, load). It sleeps between samples."""
    import psutil  # type: ignore[import-untyped]

    series: list[tuple[float, float]] = []
    before = psutil.cpu_times()
    for number in range(samples):
        time.sleep(seconds)
        now = psutil.cpu_times()
        passed = sum(now) - sum(before)
        if passed > 0:
            series.append((float(number), 1.0 - (_idle(now) - _idle(before)) / passed))
        before = now
    return series


def _idle(times: object) -> float:
    """Idle seconds of all cores; waiting for a disk leaves a core free as well."""
    idle: float = getattr(times, "idle", 0.0) + getattr(times, "iowait", 0.0)
    return idle


def load_of_machine() -> tuple[float, int]:
    """The forecast load of this machine, from 0 to 1, and its number of cores."""
    import os

    series = sample_load()
    load = forecast_loads({"here": series})["here"] if series else 0.0
    return load, os.cpu_count() or 1


def load_of_workers(load: float, cores: int, workers: int) -> float:
    """The load that each of a number of workers sees on a machine, when all of them are busy.

    Nobody waits while there are enough cores for the workers and the others; otherwise all get equal parts.

    >>> load_of_workers(0.5, 8, 4), load_of_workers(0.5, 8, 12), load_of_workers(0.0, 2, 8)
    (0.0, 0.5, 0.75)
    """
    return max(0.0, 1.0 - cores / (workers + load * cores))
