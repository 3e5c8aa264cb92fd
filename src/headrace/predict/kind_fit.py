"""The fit of one kind of task: run times of its tasks and speeds of hosts for it, from executions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.model.platform import Platform
from headrace.predict.power_law import LEAST_POINTS, PowerLaw, deviation, fit_power_law
from headrace.predict.robust import Deviations, fit_two_way, spread

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
_MOST_PARAMETERS = 8


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
    @property
    def parameters(self) -> Mapping[str, float]: ...


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
    logs: Floats
    """Logarithms of the features of a regression; see `features`."""
    own_hosts: int
    hosts: int

    @staticmethod
    def of(
        observed: Sequence[Execution], platform: Platform, rate: Floats, names: Sequence[str] = ()
    ) -> Rows:
        number = {host.name: j for j, host in enumerate(platform.hosts)}
        own = len(number)
        host = np.array([number.setdefault(o.host, len(number)) for o in observed], np.int32)
        speed = np.concatenate((rate, np.ones(len(number) - own)))
        seconds = np.maximum([o.seconds for o in observed], _SHORTEST)
        size = np.array([o.size for o in observed])
        return Rows(
            np.array([o.task for o in observed], np.int32),
            host,
            np.log(seconds * speed[host]),
            size,
            np.array([o.figure for o in observed]),
            np.array([o.first for o in observed]),
            features(size, [o.parameters for o in observed], names),
            own,
            len(number),
        )

    def only(self, chosen: Bools) -> Rows:
        """Some of the rows."""
        arrays = ("task", "host", "value", "size", "figure", "first", "logs")
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})


def parameter_names(tasks: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Names of parameters that all of these tasks have and that are positive: the others cannot be used for all.

    >>> parameter_names([{"n": 3.0, "seed": 0.0}, {"n": 4.0, "k": 1.0, "seed": 1.0}])
    ('n',)
    """
    if not tasks:
        return ()
    return tuple(name for name in sorted(tasks[0]) if all(task.get(name, 0.0) > 0 for task in tasks))[
        :_MOST_PARAMETERS
    ]


def features(sizes: Floats, parameters: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    """[tasks, 1 + names] the logarithms of input sizes and of these parameters; nan: unknown, or not positive."""
    values = [
        [size, *(of.get(name, 0.0) for name in names)] for size, of in zip(sizes, parameters, strict=True)
    ]
    array = np.array(values, np.float64).reshape(len(parameters), 1 + len(names))
    return np.asarray(np.log(np.where(array > 0, array, np.nan)), np.float64)


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
    def of(rows: Rows, figures: Floats, logs: Floats, tasks: Ints) -> KindFit | None:
        """For tasks with these figures and features; None if none of them was executed."""
        same = rows.only(rows.task != OTHER)
        if not len(same.task):
            return None
        law = fit_power_law(rows.logs, rows.value)
        at = np.searchsorted(tasks, same.task).astype(np.int32)
        value = same.value + _resized(same, figures[at], logs[at, 0], law.growth)
        prior = _prior(value, at, same.host, figures, logs, law)
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


def _resized(rows: Rows, figures: Floats, log_size: Floats, growth: float) -> Floats:
    """What to add to the logarithms of work of tasks whose inputs have grown since.

    If the user's figure has changed with the size, it knows best how the run time depends on it.
    """
    ratio = np.nan_to_num(log_size - rows.logs[:, 0])
    ratio[np.abs(ratio) < _RESIZED] = 0.0
    known = (rows.figure > 0) & (figures > 0)
    change = np.log(np.where(known, figures, 1.0) / np.where(known, rows.figure, 1.0))
    grown = np.where(np.abs(change) > 1e-9, change, growth * ratio)
    return np.where(ratio != 0.0, grown, 0.0)


def _prior(value: Floats, at: Ints, host: Ints, figures: Floats, logs: Floats, law: PowerLaw) -> Floats:
    """The logarithm of each task's figure up to a factor: the user's, or the law of input sizes and parameters.

    The latter only where it explains the measured run times clearly better.
    """
    given = np.log(np.maximum(figures, _SHORTEST))
    if len(np.unique(at)) < LEAST_POINTS or law.is_constant or not law.applies_to(logs):
        return given
    by_law = law.predict(logs)
    left_given, left_law = (_within(value - prior[at], host)[0] for prior in (given, by_law))
    constant = float(np.ptp(given)) < 1e-9
    return by_law if left_law < (0.9 if constant else 0.5) * left_given else given


def work_from_others(rows: Rows, figures: Floats, logs: Floats) -> Floats:
    """The work of tasks of which none was executed in this program, from other executions of the same function.

    If the user's figures for them varied, they are scaled, unless the law of input sizes and parameters explains the
    run times clearly better. Otherwise the law counts if there is one, or else the typical run time.
    """
    given = np.log(np.maximum(figures, _SHORTEST))
    if (~rows.first).sum() > _TELLING_ROWS:
        rows = rows.only(~rows.first)
    law = fit_power_law(rows.logs, rows.value)
    usable = not law.is_constant and law.applies_to(logs)
    known = rows.figure > 0
    if known.any():
        ratio = rows.value[known] - np.log(rows.figure[known])
        varied = float(np.ptp(np.log(rows.figure[known]))) > 1e-9
        same_figures = float(np.ptp(given)) < 1e-9
        if (varied or same_figures) and not (
            usable and law.left < (0.5 if varied else 1.0) * deviation(ratio)
        ):
            return np.exp(given + float(np.median(ratio)))
    if usable:
        return np.exp(law.predict(logs))
    if float(np.ptp(given)) < 1e-9:
        return np.full(len(figures), math.exp(float(np.median(rows.value))))
    return figures.copy()


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
