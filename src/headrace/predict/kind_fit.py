"""The fit of one kind of task: run times of its tasks and speeds of hosts for it, from executions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.model.platform import Platform
from headrace.predict.robust import Deviations, fit_two_way, slope, spread

OTHER = -1
"""The task number of an execution that was of another program, or of a task that has changed since."""
_SHORTEST = 1e-4
"""Shorter run times count as this long, in seconds: below it clocks and start-up dominate."""
_NOISE, _LEAST_NOISE, _MOST_NOISE = 0.1, 0.05, 0.3
_FIGURES = 0.7
"""Deviation of user's figures while too few executions of a kind tell."""
_AGREEMENT = 0.7
"""Least deviation of figures in units of the noise: one wild execution is an outlier, two that agree are believed."""
_SPEEDS = 0.15
"""Deviation of true speeds for a kind from the platform's."""
_TELLING_ROWS = 3
"""Executions of different tasks, beyond one per host, from which a kind's figures can be judged."""
_TELLING = 0.2
"""Figures with a larger deviation say less about the speeds of hosts."""
_FIRST = 0.3
"""Weight of the first execution of a kind on a host in a run."""
_FADING = 0.8
"""Weight of an execution relative to the next later one of the same task."""
_RESIZED = 0.05
"""Input sizes whose logarithms differ by less are the same."""
_QUANTILE = 1.15
"""Three quarters of normal deviates are smaller than this."""
_MOST_SLOPE = 3.0
_REGRESSION_POINTS = 6


class Execution(Protocol):
    """What the fit reads of an execution; see `learning.Observed`."""

    @property
    def task(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def size(self) -> float: ...
    @property
    def figure(self) -> float: ...
    @property
    def first(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Rows:
    """Executions of one kind as arrays; hosts that the platform does not have are numbered after its own."""

    task: Ints
    host: Ints
    value: Floats
    """Logarithm of the work: seconds times the host's speed."""
    size: Floats
    figure: Floats
    first: Bools
    own_hosts: int
    hosts: int

    @staticmethod
    def of(observed: Sequence[Execution], platform: Platform, rate: Floats) -> Rows:
        number = {host.name: j for j, host in enumerate(platform.hosts)}
        own = len(number)
        host = np.array([number.setdefault(o.host, len(number)) for o in observed], np.int32)
        speed = np.concatenate((rate, np.ones(len(number) - own)))
        seconds = np.maximum([o.seconds for o in observed], _SHORTEST)
        return Rows(
            np.array([o.task for o in observed], np.int32),
            host,
            np.log(seconds * speed[host]),
            np.array([o.size for o in observed]),
            np.array([o.figure for o in observed]),
            np.array([o.first for o in observed]),
            own,
            len(number),
        )

    def only(self, chosen: Bools) -> Rows:
        """Some of the rows."""
        arrays = ("task", "host", "value", "size", "figure", "first")
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})


@dataclass(frozen=True, eq=False)
class KindFit:
    """Executions of the tasks of one kind, and what is believed of the tasks before."""

    rows: Rows
    """Executions of tasks of this program only."""
    at: Ints
    """The position of each row's task among those of the kind."""
    value: Floats
    """Logarithm of the work of each row, as of today's input sizes."""
    prior: Floats
    """Logarithm of each task's figure, up to a factor."""
    noise: float

    @staticmethod
    def of(rows: Rows, figures: Floats, sizes: Floats, tasks: Ints) -> KindFit | None:
        """For tasks with these figures and input sizes; None if none of them was executed."""
        same = rows.only(rows.task != OTHER)
        if not len(same.task):
            return None
        growth = _growth(rows)
        at = np.searchsorted(tasks, same.task).astype(np.int32)
        value = same.value + _resized(same, figures[at], sizes[at], growth)
        prior = _prior(value, at, same.host, figures, sizes, growth)
        return KindFit(same, at, value, prior, _noise(value, at, same.host))

    def figure_residuals(self) -> Floats:
        """Differences between executions and figures of a host's tasks, one per task; empty if they tell nothing.

        First executions are left out, and so are differences between hosts if some have several executions.
        """
        usual = np.flatnonzero(~self.rows.first)
        _, last = np.unique(self.at[usual][::-1], return_index=True)
        latest = usual[len(usual) - 1 - last]
        value = (self.value - self.prior[self.at])[latest]
        left, spare = _around_hosts(value, self.rows.host[latest])
        if spare >= _TELLING_ROWS:
            return left
        return value - np.median(value) if len(value) > _TELLING_ROWS else value[:0]

    def fit(self, figure_deviation: float, hosts_differ: bool) -> tuple[Floats, Floats]:
        """The work of the kind's tasks, and the logarithm by which each host is faster than the platform says."""
        off = max(math.sqrt(max(figure_deviation**2 - self.noise**2, 0.0)), _AGREEMENT * self.noise)
        # Planners choose hosts by the length of tasks: while figures are poor, a host with long tasks looks slow.
        known = Deviations(self.noise, off, _SPEEDS * min(1.0, _TELLING / off) if hosts_differ else 1e-6)
        weight = _recency(self.at) * np.where(self.rows.first, _FIRST, 1.0)
        shape = (len(self.prior), self.rows.hosts)
        fit = fit_two_way(self.value - self.prior[self.at], self.at, self.rows.host, weight, shape, known)
        return np.exp(self.prior + fit.level + fit.task), fit.host[: self.rows.own_hosts]


def figure_deviation(residuals: Iterable[Floats]) -> float:
    """The deviation of figures from the truth, from the residuals of one or more kinds.

    A high quantile: where many tasks are alike and run on one host, the median would be 0.
    """
    left = np.concatenate([np.zeros(0), *residuals])
    return float(np.quantile(np.abs(left), 0.75)) / _QUANTILE if len(left) else _FIGURES


def _resized(rows: Rows, figures: Floats, sizes: Floats, growth: float) -> Floats:
    """What to add to the logarithms of work of tasks whose inputs have grown since.

    If the user's figure has changed with the size, it knows best how the run time depends on it.
    """
    then, figure = rows.size, rows.figure
    comparable = (then > 0) & (sizes > 0)
    ratio = np.log(np.where(comparable, sizes, 1.0) / np.where(comparable, then, 1.0))
    ratio[np.abs(ratio) < _RESIZED] = 0.0
    known = (figure > 0) & (figures > 0)
    change = np.log(np.where(known, figures, 1.0) / np.where(known, figure, 1.0))
    grown = np.where(np.abs(change) > 1e-9, change, growth * ratio)
    return np.where(ratio != 0.0, grown, 0.0)


def _prior(value: Floats, at: Ints, host: Ints, figures: Floats, sizes: Floats, growth: float) -> Floats:
    """The logarithm of each task's figure up to a factor: the user's, or a power of the input size.

    The latter only where it explains the measured run times clearly better.
    """
    given = np.log(np.maximum(figures, _SHORTEST))
    by_size = growth * np.log(np.where(sizes > 0, sizes, 1.0))
    measured = np.unique(at)
    if len(measured) < _REGRESSION_POINTS or not (sizes[measured] > 0).all():
        return given
    left_given, left_size = (_within(value - prior[at], host)[0] for prior in (given, by_size))
    constant = float(np.ptp(given)) < 1e-9
    return by_size if left_size < (0.9 if constant else 0.5) * left_given else given


def _growth(rows: Rows) -> float:
    """The exponent with which run times of the kind grow with input size; 1 if the executions cannot tell."""
    read = rows.size > 0
    if read.sum() < _REGRESSION_POINTS:
        return 1.0
    x = np.log(rows.size[read])
    if np.ptp(x) < math.log(1.5):
        return 1.0
    return min(max(slope(x, rows.value[read]), 0.0), _MOST_SLOPE)


def work_from_others(rows: Rows, figures: Floats, sizes: Floats) -> Floats:
    """The work of tasks of which none was executed in this program, from other programs with the same function."""
    return np.exp(_log_from_others(rows, figures, sizes, _growth(rows)))


def _log_from_others(rows: Rows, figures: Floats, sizes: Floats, growth: float) -> Floats:
    given = np.log(np.maximum(figures, _SHORTEST))
    known = rows.figure > 0
    varied = known.any() and float(np.ptp(np.log(rows.figure[known]))) > 1e-9
    if varied or (known.any() and float(np.ptp(given)) < 1e-9):
        ratio = rows.value[known] - np.log(rows.figure[known])
        left = rows.value - growth * np.log(np.where(rows.size > 0, rows.size, 1.0))
        if varied or not (sizes > 0).all() or spread(ratio) <= spread(left):
            return given + float(np.median(ratio))
    read = rows.size > 0
    if read.sum() >= _REGRESSION_POINTS and (sizes > 0).all():
        left = rows.value[read] - growth * np.log(rows.size[read])
        return float(np.median(left)) + growth * np.log(sizes)
    if float(np.ptp(given)) < 1e-9:
        return np.full(len(figures), float(np.median(rows.value)))
    return given


def _within(value: Floats, host: Ints) -> tuple[float, int]:
    """Spread of values around the median of their host, and how many values beyond one per host there are."""
    left, spare = _around_hosts(value, host)
    return spread(left) * math.sqrt(len(value) / max(spare, 1)), spare


def _around_hosts(value: Floats, host: Ints) -> tuple[Floats, int]:
    """Differences from the median of each host, and the number of values beyond one per host: O(n log n)."""
    order = np.lexsort((value, host))
    ordered = value[order]
    _, start, count = np.unique(host[order], return_index=True, return_counts=True)
    median = (ordered[start + (count - 1) // 2] + ordered[start + count // 2]) / 2
    left = np.empty(len(value))
    left[order] = ordered - np.repeat(median, count)
    return left, len(value) - len(count)


def _noise(value: Floats, at: Ints, host: Ints) -> float:
    """Deviation of executions of the same task on the same host."""
    pair = at.astype(np.int64) * (int(host.max()) + 1) + host
    deviation, spare = _within(value, pair)
    if spare < 3:
        return _NOISE
    return min(max(deviation, _LEAST_NOISE), _MOST_NOISE)


def _recency(at: Ints) -> Floats:
    """The weight of each execution, given oldest first: the latest of a task counts most."""
    later: dict[int, int] = {}
    weight = np.empty(len(at))
    for row in range(len(at) - 1, -1, -1):
        age = later.get(int(at[row]), 0)
        weight[row] = _FADING**age
        later[int(at[row])] = age + 1
    return weight
