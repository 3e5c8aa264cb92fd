"""Remaining time of running tasks, from the estimate at their start or from the load measured since."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.trace import Trace

OVERDUE_SHARE = 0.1
"""By default, an overdue task is assumed to need this share of its estimate more."""


def left_on_time(started: Floats, expected: Floats, now: float, overdue: float | None = None) -> Floats:
    """Remaining seconds of tasks that started at `started` with the estimate `expected`: O(tasks).

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


def work_had(started: float, now: float, measured: Sequence[tuple[float, Trace]]) -> float:
    """Seconds of a whole core that a task has received since it started: O(changes + log measurements).

    `measured` are the shares of the core that were there for it, each with the moment from which it holds, the
    earliest first.

    >>> work_had(2.0, 10.0, [(0.0, Trace.constant(1.0)), (6.0, Trace.constant(0.5))])
    6.0
    """
    ends = [since for since, _ in measured[1:]] + [math.inf]
    return math.fsum(
        trace.work_between(max(started, since), min(now, end))
        for (since, trace), end in zip(measured, ends, strict=True)
    )


def left_by_load(
    core_seconds: float, had: float, ahead: Callable[[float], float], overdue: float | None = None
) -> float:
    """Remaining seconds of a task that needs `core_seconds` of a whole core and has received some of them.

    `ahead` says how long such an amount is expected to take from now on. If by what it has had it should have
    ended, it is overdue: it needs `overdue` seconds more, or as long as a tenth of its work takes.

    >>> left_by_load(10.0, had=6.0, ahead=lambda amount: amount / 0.5)
    8.0
    """
    rest = core_seconds - had
    if rest > 0:
        return ahead(rest)
    return ahead(core_seconds * OVERDUE_SHARE) if overdue is None else overdue
