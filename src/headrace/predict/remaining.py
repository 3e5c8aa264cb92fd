"""Time left of running tasks: by the estimate they started with, or by the load that was measured since."""

from __future__ import annotations

import math

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.trace import Trace

OVERDUE_SHARE = 0.1
"""A task that is overdue is taken to need this share of its estimate more, if nothing else is said."""


def left_on_time(started: Floats, expected: Floats, now: float, overdue: float | None = None) -> Floats:
    """Seconds left of tasks that started at `started` and were expected to take `expected`: O(tasks).

    A task that is not overdue ends when it was expected to. One that is will need `overdue` seconds more,
    whatever it has needed so far; without a figure, a tenth of what it was expected to take.

    >>> left_on_time(np.array([0.0, 0.0]), np.array([10.0, 5.0]), now=6.0, overdue=2.0).tolist()
    [4.0, 2.0]
    """
    if overdue is not None and not (math.isfinite(overdue) and overdue >= 0):
        raise UsageError(f"overdue is {overdue}", where="time left", hint="give seconds of 0 or more")
    expected = np.asarray(expected, np.float64)
    left = np.asarray(started, np.float64) + expected - now
    more = expected * OVERDUE_SHARE if overdue is None else np.full_like(expected, overdue)
    return np.where(left > 0, left, more)


def left_by_load(
    started: float,
    core_seconds: float,
    now: float,
    measured: Trace,
    ahead: float,
    overdue: float | None = None,
) -> float:
    """Seconds left of a task that needs `core_seconds` of a whole core: O(log measurements).

    `measured` is the share of the core that was there for it since it started, `ahead` the share that it
    is expected to have from now on. If by that measure it should have ended, it is overdue: it needs
    `overdue` seconds more, or a tenth of its work at the share ahead.

    >>> left_by_load(0.0, 10.0, now=8.0, measured=Trace([0.0, 4.0], [1.0, 0.5]), ahead=0.5)
    8.0
    """
    if not ahead > 0:
        return math.inf
    rest = core_seconds - measured.work_between(started, now)
    if rest > 0:
        return rest / ahead
    return core_seconds * OVERDUE_SHARE / ahead if overdue is None else overdue
