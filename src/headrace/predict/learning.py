"""Estimates for the next run, learned from earlier ones: they correct the user's figures instead of replacing them.

For a task, in this order: executions of the same task of the same program; the user's figure times one factor for its
kind; a regression of the kind's run times over input sizes and numeric parameters where that explains them better, or
where there are no figures; the kind's typical run time. All is done in logarithms and with robust statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Host, Platform
from headrace.predict.history import kind_rates
from headrace.predict.kind_fit import (
    KindFit,
    Rows,
    features,
    figure_deviation,
    parameter_names,
    work_from_others,
)

DEFAULT_WORK = 1.0
"""Seconds of a task for which the user gave no figure."""


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
    first: bool = False
    """Whether it was the first of its kind on its host in that run: it may have loaded code and filled caches."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Numbers that it received besides its inputs, by name."""

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
    overridden: Mapping[str, float] = field(default_factory=dict)
    """The same for kinds whose figures the user gave, if history differs from them by more than a quarter."""


def learn(
    graph: Graph,
    platform: Platform,
    observed: Sequence[Observed],
    parameters: Mapping[str, Mapping[str, float]] | None = None,
) -> Learned:
    """The program and platform with figures learned from executions, oldest first.

    `parameters` are the numbers that each task receives besides its inputs, by task and name. Without executions of a
    kind its figures stay as they are, times the median factor of the other kinds: figures for one program are usually
    wrong in the same way. O(executions * hosts + tasks * hosts^2).

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
    tasks_of: dict[str, Ints] = {
        kind: np.flatnonzero(graph.kind == number).astype(np.int32)
        for number, kind in enumerate(graph.kinds)
        if kind in by_kind
    }
    work, corrections, seen = _fitted(graph, platform, by_kind, tasks_of, parameters or {})
    factors = {kind: _factor(work[tasks], graph.work[tasks]) for kind, tasks in tasks_of.items()}
    rest = ~np.isin(graph.kind, [graph.kinds.index(kind) for kind in tasks_of])
    work[rest] *= float(np.median(list(factors.values())))
    changed = _with_corrections(platform, corrections)
    known, guessed = int(seen.sum()), int((~seen & ~rest).sum())
    overridden = {
        kind: factor
        for kind, factor in factors.items()
        if not 0.8 <= factor <= 1.25 and (graph.work[tasks_of[kind]] != DEFAULT_WORK).any()
    }
    return Learned(graph.with_work(work), changed, known, guessed, factors, overridden)


def _fitted(
    graph: Graph,
    platform: Platform,
    by_kind: Mapping[str, Sequence[Observed]],
    tasks_of: Mapping[str, Ints],
    parameters: Mapping[str, Mapping[str, float]],
) -> tuple[Floats, dict[str, Floats], Bools]:
    """The work of all tasks, corrections of speeds for each kind, and which tasks were executed before."""
    sizes, rates = input_sizes(graph), kind_rates(graph, platform.rates(graph))
    work, seen = graph.work.copy(), np.zeros(graph.n_tasks, np.bool_)
    fits: dict[str, KindFit] = {}
    for kind, tasks in tasks_of.items():
        given = [parameters.get(graph.task_names[t], {}) for t in tasks.tolist()]
        names = parameter_names(given)
        rows = Rows.of(by_kind[kind], platform, rates[graph.kinds.index(kind)], names)
        logs = features(sizes[tasks], given, names)
        fit = KindFit.of(rows, graph.work[tasks], logs, tasks)
        if fit is None:
            work[tasks] = work_from_others(rows, graph.work[tasks], logs)
        else:
            fits[kind] = fit
            seen[tasks] = np.isin(tasks, rows.task)
    corrections: dict[str, Floats] = {}
    residuals = {kind: fit.figure_residuals() for kind, fit in fits.items()}
    for kind, fit in fits.items():
        # Figures of a kind with too few executions are taken to be as good as those of all kinds.
        off = figure_deviation([residuals[kind]] if len(residuals[kind]) else residuals.values())
        work[tasks_of[kind]], corrections[kind] = fit.fit(off, bool(kind))
    return work, corrections, seen


def input_sizes(graph: Graph) -> Floats:
    """Bytes that each task reads, counting known sizes only."""
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    sizes = np.bincount(reader, weights=graph.known_size[graph.reads], minlength=graph.n_tasks)
    return sizes.astype(np.float64)


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
