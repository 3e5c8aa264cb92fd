"""Estimates for the next run, learned from earlier ones: they correct the user's figures instead of replacing them.

For a task, in this order: executions of the same task of the same program; the user's figure times one factor for its
kind; a regression of the kind's run times over input sizes where that explains them better, or where there are no
figures; the kind's typical run time. All is done in logarithms and with robust statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.platform import Host, Platform
from headrace.predict.history import kind_rates
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
_TELLING = 0.2
"""Figures with a larger deviation say less about the speeds of hosts."""
_FADING = 0.8
"""Weight of an execution relative to the next later one of the same task."""
_RESIZED = 0.05
"""Input sizes whose logarithms differ by less are the same."""
_QUANTILE = 1.15
"""Three quarters of normal deviates are smaller than this."""
_MOST_SLOPE = 3.0
_REGRESSION_POINTS = 6


@dataclass(frozen=True, slots=True)
class Observed:
    """One execution in an earlier run."""

    kind: str
    task: int
    """The task's number in the program to be run, or OTHER."""
    host: str
    seconds: float
    size: float
    """Bytes that it read."""
    figure: float = math.nan
    """The user's run time for it in that run; nan: not known."""

    def __post_init__(self) -> None:
        for what, value in (("seconds", self.seconds), ("size", self.size)):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(
                    f"{what} is {value}",
                    where=f"execution of {self.kind!r} on {self.host!r}",
                    hint="give a finite number, 0 or more",
                )


@dataclass(frozen=True, eq=False)
class Learned:
    """A program and a platform with learned figures, and where each figure comes from."""

    graph: Graph
    platform: Platform
    same_task: int = 0
    """Tasks whose run time is from executions of the same task."""
    by_kind: int = 0
    """Other tasks whose run time is from executions of the same kind."""
    factors: Mapping[str, float] | None = None
    """By what the user's figures were multiplied, for each kind: the median over its tasks."""


def learn(graph: Graph, platform: Platform, observed: Sequence[Observed]) -> Learned:
    """The program and platform with figures learned from executions, oldest first.

    Without executions of a kind its figures stay as they are, times the median factor of the other kinds: figures for
    one program are usually wrong in the same way. O(executions * hosts + tasks * hosts^2).

    >>> from headrace.model.graph import make_graph
    >>> graph = make_graph(work=[3.0, 6.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[], kinds=("fft",))
    >>> lab = Platform.pairwise([1.0, 2.0], bandwidth=1e6)
    >>> learned = learn(graph, lab, [Observed("fft", 0, "h0", 1.0, 0.0), Observed("fft", 1, "h1", 1.0, 0.0)])
    >>> [round(float(w), 3) for w in learned.graph.work]
    [1.0, 2.0]
    """
    by_kind: dict[str, list[Observed]] = {}
    for one in observed:
        by_kind.setdefault(one.kind, []).append(one)
    if not set(by_kind) & set(graph.kinds):
        return Learned(graph, platform)
    sizes, rates = input_sizes(graph), kind_rates(graph, platform.rates(graph))
    work, corrections, factors = graph.work.copy(), {}, {}
    seen = np.zeros(graph.n_tasks, np.bool_)
    for number, kind in enumerate(graph.kinds):
        if kind not in by_kind:
            continue
        tasks = np.flatnonzero(graph.kind == number)
        rows = _Rows.of(by_kind[kind], graph, platform, rates[number], sizes)
        work[tasks], corrections[kind] = _fit_kind(rows, graph.work[tasks], sizes[tasks], tasks, bool(kind))
        seen[tasks] = np.isin(tasks, rows.task)
        factors[kind] = _factor(work[tasks], graph.work[tasks])
    rest = ~np.isin(graph.kind, [n for n, kind in enumerate(graph.kinds) if kind in by_kind])
    if rest.any():
        work[rest] *= float(np.median(list(factors.values())))
    learned = graph.with_work(work)
    return Learned(
        learned,
        _with_corrections(platform, corrections),
        int(seen.sum()),
        int((~seen & ~rest).sum()),
        factors,
    )


def input_sizes(graph: Graph) -> Floats:
    """Bytes that each task reads, counting known sizes only."""
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    return np.bincount(reader, weights=graph.known_size[graph.reads], minlength=graph.n_tasks)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Executions of one kind as arrays; hosts that the platform does not have are numbered after its own."""

    task: Ints
    host: Ints
    value: Floats
    """Logarithm of the work: seconds times the host's speed."""
    size: Floats
    figure: Floats
    own_hosts: int
    hosts: int

    @staticmethod
    def of(
        observed: Sequence[Observed], graph: Graph, platform: Platform, rate: Floats, sizes: Floats
    ) -> _Rows:
        number = {host.name: j for j, host in enumerate(platform.hosts)}
        own = len(number)
        host = np.array([number.setdefault(o.host, len(number)) for o in observed], np.int32)
        speed = np.concatenate((rate, np.ones(len(number) - own)))
        seconds = np.maximum([o.seconds for o in observed], _SHORTEST)
        return _Rows(
            np.array([o.task for o in observed], np.int32),
            host,
            np.log(seconds * speed[host]),
            np.array([o.size for o in observed]),
            np.array([o.figure for o in observed]),
            own,
            len(number),
        )

    @property
    def same(self) -> Floats:
        return self.task != OTHER


def _fit_kind(
    rows: _Rows, figures: Floats, sizes: Floats, tasks: Ints, hosts_differ: bool
) -> tuple[Floats, Floats]:
    """The work of a kind's tasks, and the logarithm by which each host is faster than the platform says."""
    same = rows.task != OTHER
    growth = _growth(rows)
    if not same.any():
        return np.exp(_from_others(rows, figures, sizes, growth)), np.zeros(rows.own_hosts)
    at = np.searchsorted(tasks, rows.task[same])
    value = rows.value[same] + _resized(rows, same, figures[at], sizes[at], growth)
    prior = _prior(value, at, rows.host[same], figures, sizes, growth)
    noise = _noise(value, at, rows.host[same])
    off = _figure_deviation(value - prior[at], at, rows.host[same], noise)
    # Planners choose hosts by the length of tasks: while figures are poor, a host with long tasks looks slow.
    known = Deviations(noise, off, _SPEEDS * min(1.0, _TELLING / off) if hosts_differ else 1e-6)
    shape = (len(tasks), rows.hosts)
    fit = fit_two_way(value - prior[at], at, rows.host[same], _recency(at), shape, known)
    return np.exp(prior + fit.level + fit.task), fit.host[: rows.own_hosts]


def _resized(rows: _Rows, same: Floats, figures: Floats, sizes: Floats, growth: float) -> Floats:
    """What to add to the logarithms of work of tasks whose inputs have grown since.

    If the user's figure has changed with the size, it knows best how the run time depends on it.
    """
    then, figure = rows.size[same], rows.figure[same]
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


def _growth(rows: _Rows) -> float:
    """The exponent with which run times of the kind grow with input size; 1 if the executions cannot tell."""
    read = rows.size > 0
    if read.sum() < _REGRESSION_POINTS:
        return 1.0
    x = np.log(rows.size[read])
    if np.ptp(x) < math.log(1.5):
        return 1.0
    return min(max(slope(x, rows.value[read]), 0.0), _MOST_SLOPE)


def _from_others(rows: _Rows, figures: Floats, sizes: Floats, growth: float) -> Floats:
    """Logarithms of work when no task of this program was executed: from other programs with the same function."""
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
    left = np.empty(len(value))
    for one in np.unique(host).tolist():
        left[host == one] = value[host == one] - np.median(value[host == one])
    return left, len(value) - len(np.unique(host))


def _noise(value: Floats, at: Ints, host: Ints) -> float:
    """Deviation of executions of the same task on the same host."""
    pair = at.astype(np.int64) * (int(host.max()) + 1) + host
    deviation, spare = _within(value, pair)
    if spare < 3:
        return _NOISE
    return min(max(deviation, _LEAST_NOISE), _MOST_NOISE)


def _figure_deviation(value: Floats, at: Ints, host: Ints, noise: float) -> float:
    """Deviation of the tasks' true figures from their prior ones, apart from noise."""
    _, last = np.unique(at[::-1], return_index=True)
    latest = len(at) - 1 - last
    left, spare = _around_hosts(value[latest], host[latest])
    if spare < 3:
        return _FIGURES
    # A high quantile: where many tasks are alike and run on one host, the median would be 0.
    deviation = float(np.quantile(np.abs(left), 0.75)) / _QUANTILE
    return max(math.sqrt(max(deviation**2 - noise**2, 0.0)), _AGREEMENT * noise)


def _recency(at: Ints) -> Floats:
    """The weight of each execution, given oldest first: the latest of a task counts most."""
    later: dict[int, int] = {}
    weight = np.empty(len(at))
    for row in range(len(at) - 1, -1, -1):
        age = later.get(int(at[row]), 0)
        weight[row] = _FADING**age
        later[int(at[row])] = age + 1
    return weight


def _factor(learned: Floats, given: Floats) -> float:
    positive = given > 0
    return float(np.median(learned[positive] / given[positive])) if positive.any() else 1.0


def _with_corrections(platform: Platform, corrections: Mapping[str, Floats]) -> Platform:
    """The platform with speeds for these kinds multiplied by the exponentials of these corrections."""
    number = {host.name: j for j, host in enumerate(platform.hosts)}

    def changed(host: Host) -> Host:
        own = {
            kind: host.kinds.get(kind, host.speed) * math.exp(of[number[host.name]])
            for kind, of in corrections.items()
            if kind
        }
        return replace(host, kinds={**host.kinds, **own})

    sites = tuple(replace(site, hosts=tuple(changed(h) for h in site.hosts)) for site in platform.sites)
    return replace(platform, sites=sites)
