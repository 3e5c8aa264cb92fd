"""Robust statistics: weighted medians, slopes that outliers do not move, and a two-way fit of tasks and hosts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.graph import Floats, Ints

_TUNING = 1.5
"""Effects beyond this many standard deviations are outliers: their influence no longer grows (Huber)."""
_SLOWER, _QUICKER = 1.5, 8.0
"""The same for errors: executions are delayed by other things more often than they are quicker than possible."""
_ROUNDS = 25
_MAD_TO_DEVIATION = 1.4826
_MAX_POINTS = 300
"""A slope is the median over all pairs of at most this many points."""


def weighted_median(values: Floats, weights: Floats) -> float:
    """The lower weighted median: O(n log n).

    >>> weighted_median(np.array([1.0, 2.0, 50.0]), np.ones(3))
    2.0
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[int(np.searchsorted(total, 0.5 * total[-1]))]])


def spread(values: Floats) -> float:
    """The standard deviation, estimated from the median absolute deviation.

    >>> round(spread(np.array([1.0, 2.0, 3.0, 4.0, 900.0])), 3)
    1.483
    """
    return _MAD_TO_DEVIATION * float(np.median(np.abs(values - np.median(values))))


def slope(x: Floats, y: Floats) -> float:
    """The median slope over pairs of points (Theil-Sen): right even if a quarter of the points are wild.

    O(n^2) for the latest 300 points; 0 if x hardly varies.

    >>> slope(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 4.0, 6.0, 99.0]))
    2.0
    """
    x, y = x[-_MAX_POINTS:], y[-_MAX_POINTS:]
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    apart = np.abs(run) > 1e-6
    if not apart.any():
        return 0.0
    return float(np.median((y[second] - y[first])[apart] / run[apart]))


class Deviations(NamedTuple):
    """Standard deviations in a two-way fit, of logarithms."""

    noise: float
    """Of repeated executions of one task on one host."""
    task: float
    """Of tasks around their prior figures, after scaling."""
    host: float
    """Of hosts around their prior speeds."""


class TwoWay(NamedTuple):
    """The result of a two-way fit: y is about level + task - host."""

    level: float
    task: Floats
    host: Floats


def fit_two_way(
    y: Floats, task: Ints, host: Ints, weight: Floats, shape: tuple[int, int], known: Deviations
) -> TwoWay:
    """The most likely level, effect of each task and speed of each host, given values y of task-host pairs.

    Effects are believed to be near 0 (`known` says how near), and so are errors; all have Huber's tails, so that
    a wild value counts as an error unless others of the same task confirm it, and a high one sooner than a low one.
    Task effects are eliminated, so that each round solves a system of (1 + hosts) equations: O(values + tasks *
    hosts^2) for each of 25 rounds.

    >>> known = Deviations(noise=0.1, task=0.1, host=0.2)
    >>> fit = fit_two_way(np.array([1.0, 1.0, 1.0]), np.arange(3), np.zeros(3, np.int32), np.ones(3), (3, 1), known)
    >>> bool(abs(fit.level - fit.host[0] - 1.0) < 1e-9)
    True
    """
    tasks, hosts = shape
    prior_task = np.full(tasks, known.task**-2.0)
    precision = weight / known.noise**2
    level, of_task, of_host = 0.0, np.zeros(tasks), np.zeros(hosts)
    for _ in range(_ROUNDS):
        pair = task.astype(np.int64) * hosts + host
        by_pair = np.bincount(pair, weights=precision, minlength=tasks * hosts).reshape(tasks, hosts)
        seen = np.concatenate((by_pair.sum(axis=1, keepdims=True), -by_pair), axis=1)
        level, of_host = _hosts(y, task, host, precision, seen, prior_task, known.host)
        rest = y - level + of_host[host]
        of_task = np.bincount(task, weights=precision * rest, minlength=tasks) / (prior_task + seen[:, 0])
        left = rest - of_task[task]
        precision = weight / known.noise**2 * _huber(left, known.noise, np.where(left > 0, _SLOWER, _QUICKER))
        prior_task = known.task**-2.0 * _huber(of_task, known.task)
    return TwoWay(level, of_task, of_host)


def _hosts(
    y: Floats, task: Ints, host: Ints, precision: Floats, seen: Floats, prior_task: Floats, deviation: float
) -> tuple[float, Floats]:
    """The level and the host effects, for given weights, with the task effects eliminated."""
    hosts = seen.shape[1] - 1
    shrink = 1.0 / (prior_task + seen[:, 0])
    of_host = np.bincount(host, weights=precision, minlength=hosts)
    full = np.zeros((1 + hosts, 1 + hosts))
    full[0, 0] = precision.sum()
    full[0, 1:] = full[1:, 0] = -of_host
    full[1:, 1:] = np.diag(of_host + deviation**-2.0)
    weighted = precision * y
    right = np.concatenate(([weighted.sum()], -np.bincount(host, weights=weighted, minlength=hosts)))
    by_task = np.bincount(task, weights=weighted, minlength=len(seen))
    scaled = seen * shrink[:, None]
    solution = np.linalg.solve(full - scaled.T @ seen, right - scaled.T @ by_task).astype(np.float64)
    return float(solution[0]), solution[1:]


def _huber(residual: Floats, deviation: float, tuning: Floats | float = _TUNING) -> Floats:
    """Weights of the squared residuals: 1 for ordinary ones, falling as 1 / |residual| for outliers."""
    size = np.abs(residual) / deviation
    return np.where(size <= tuning, 1.0, tuning / np.maximum(size, tuning))
