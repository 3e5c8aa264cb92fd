"""The best deployment with one source: branch and bound for few hosts, rounding from the relaxation for many."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.pipeline.classes import Classes, find_classes
from headrace.planners.pipeline.column_generation import Relaxed, relax
from headrace.planners.pipeline.compact import Compact, build_compact
from headrace.planners.pipeline.disaggregate import HostFlows, disaggregate, spread
from headrace.planners.pipeline.groups import Groups, class_groups
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.rounding import exact, round_relaxed
from headrace.planners.pipeline.shared import build_shared
from headrace.planners.pipeline.tie_break import break_ties
from headrace.planners.pipeline.weights import Weights

DIRECT = 400
"""Up to this many integer columns, branch and bound is used alone."""
FINISH = 1600
"""Up to this many, it is used to improve what rounding found."""
NODES = 300
"""Branch and bound first looks for the optimum itself, within this many nodes, then for a solution within the gap."""
TIGHT = 1e-9
RELAXED_SHARE = 0.4
"""Share of the time that the relaxation may take."""
WHOLE = 1e-6
MORE_HOSTS = 2
"""Number of idle hosts per class that rounding may use in addition, where filters share hosts."""

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Found:
    """The best solution; flows are None if there is none."""

    flows: HostFlows | None
    objective: float
    bound: float
    proven: bool
    """Whether it is proven optimal within the requested gap, or proven that none exists."""
    solved: tuple[Compact, Floats] | None = None
    """The program over classes and its solution, if it was solved directly."""


@dataclass(frozen=True, eq=False)
class SourceCase:
    """A deployment problem with one of its source options."""

    option: int
    rates: Rates
    """Of this option alone."""
    weights: Weights
    several_per_host: bool
    extra_cost: Floats | None
    """[filters, hosts] cost of running a filter on a host, besides W_X."""

    @staticmethod
    def of(
        rates: Rates,
        option: int,
        weights: Weights,
        *,
        several_per_host: bool = False,
        extra_cost: Floats | None = None,
    ) -> SourceCase:
        """`rates` are those of all options."""
        return SourceCase(option, rates.only(option), weights, several_per_host, extra_cost)

    @cached_property
    def classes(self) -> Classes:
        return find_classes(self.rates, self.extra_cost)

    @property
    def groups(self) -> Groups:
        return class_groups(self.rates, self.classes, self.weights)

    def build(self) -> Compact:
        if self.several_per_host:
            return build_shared(self.rates, self.classes, self.weights)
        return build_compact(self.rates, self.groups, self.weights)

    @property
    def integers(self) -> int:
        """Integer columns of the program."""
        return self.classes.n * (1 if self.several_per_host else self.rates.n_filters - 1)


def quick_bound(case: SourceCase) -> float:
    """A bound from the reader's rate and the smallest number of hosts alone."""
    rates = case.rates
    flow = float(rates.stream_rate.sum()) * float(rates.readable[0]) * max(float(rates.weight.max()), 0.0)
    if not case.several_per_host:
        flow *= min(1.0, float(rates.reader_rate[0] / rates.readable[0]))
    hosts = int((rates.share[0] > 0).sum())
    gain = np.maximum(-case.classes.extra_cost.min(axis=0), 0.0) * case.classes.size
    return (
        flow
        + float(gain.sum())
        - case.weights.host_cost * (hosts if case.several_per_host else hosts + rates.n_filters - 1)
    )


def relax_first(case: SourceCase, *, end: float, gap: float) -> Relaxed | None:
    """The relaxation, for problems that are rounded from it; None for others."""
    if case.several_per_host or case.integers <= DIRECT:
        return None
    return relax(case.rates, case.groups, case.weights, end=end, gap=min(gap / 4, 1e-4))


def search(
    case: SourceCase,
    *,
    end: float,
    gap: float,
    tell: Tell | None = None,
    floor: float = -np.inf,
    relaxed: Relaxed | None = None,
) -> Found:
    """The best solution until `end` on the monotonic clock, or within a relative gap of the bound.

    Without flows if its relaxation shows that it cannot exceed `floor`. `relaxed` is the relaxation if it is known.
    """
    top = quick_bound(case)
    if case.integers <= DIRECT:
        program = case.build()
        if floor > -np.inf:
            loose = solve(program.linear, whole=False)
            if loose.status != "stopped" and loose.objective + program.constant <= floor:
                return Found(None, -np.inf, loose.objective + program.constant, True)
        return _limited(_branch(case, program, end=end, gap=gap), top, gap)
    if case.several_per_host:
        return _limited(_round_shared(case, end=end, gap=gap, tell=tell), top, gap)
    if relaxed is None:
        now = time.monotonic()
        relaxed = relax_first(case, end=now + RELAXED_SHARE * (end - now), gap=gap)
    if relaxed is None or relaxed.bound <= floor:
        return Found(None, -np.inf, np.inf if relaxed is None else relaxed.bound, True)
    return _limited(_round(case, relaxed, end=end, gap=gap, tell=tell), top, gap)


def _limited(found: Found, top: float, gap: float) -> Found:
    return _with_bound(found, min(found.bound, top), gap) if found.flows is not None else found


def _branch(
    case: SourceCase, program: Compact, *, end: float, gap: float, start: Floats | None = None
) -> Found:
    """Branch and bound: for the optimum itself within a number of nodes, then for the gap within the time."""
    linear = program.linear
    left = end - time.monotonic()
    if left <= 0:
        return Found(None, -np.inf, np.inf, False)
    answer = solve(linear, seconds=left, gap=min(gap, TIGHT), nodes=NODES, start=start)
    bound = answer.bound
    if answer.status == "stopped" and not _close(answer.objective, bound, gap):
        left = end - time.monotonic()
        if left > 0:
            again = solve(linear, seconds=left, gap=gap, start=answer.x if answer.x is not None else start)
            bound = min(bound, again.bound)
            if again.x is not None and again.objective > answer.objective:
                answer = again
    if answer.x is None:
        proven = answer.status == "infeasible"
        return Found(None, -np.inf, -np.inf if proven else bound + program.constant, proven)
    x = exact(linear, answer.x)
    if float(x[program.read[0]]) <= 0:
        more = _some_flow(program, end)
        if more is None:
            return Found(None, -np.inf, -np.inf, True)
        x = more
    value = float(linear.cost @ x) + program.constant
    found = Found(disaggregate(program, case.classes, x), value, np.inf, False, (program, x))
    return _with_bound(found, bound + program.constant, gap)


def _some_flow(program: Compact, end: float) -> Floats | None:
    """A solution with the most data read, where the objective does not ask for any; None if nothing can flow."""
    cost = np.zeros(len(program.linear.cost))
    cost[program.read] = 1.0
    most = replace(program.linear, cost=cost)
    answer = solve(most, seconds=max(end - time.monotonic(), 1.0), gap=0.01)
    if answer.x is None or answer.objective <= 0:
        return None
    return exact(most, answer.x)


def _round(case: SourceCase, relaxed: Relaxed, *, end: float, gap: float, tell: Tell | None) -> Found:
    """Round the relaxation, and improve by branch and bound where the program is not too large."""
    groups = case.groups

    def progress(objective: float) -> None:
        if tell is not None:
            tell(f"objective {objective:.6g}, bound {relaxed.bound:.6g}")

    whole = round_relaxed(case.rates, groups, case.weights, relaxed, end=end, gap=gap, tell=progress)
    best = Found(None, -np.inf, relaxed.bound, False)
    if whole is not None:
        flows = spread(case.rates, case.classes, whole)
        best = _with_bound(Found(flows, whole.objective, relaxed.bound, False), relaxed.bound, gap)
    if best.proven or case.integers > FINISH or time.monotonic() > end:
        return best
    found = _branch(case, case.build(), end=end, gap=gap)
    bound = min(best.bound, found.bound)
    return _with_bound(found if found.objective > best.objective else best, bound, gap)


def _round_shared(case: SourceCase, *, end: float, gap: float, tell: Tell | None) -> Found:
    """Solve the linear relaxation, then a program with numbers of hosts close to it, then the whole program."""
    program = case.build()
    linear = program.linear
    began = time.monotonic()
    relaxed = solve(linear, whole=False, seconds=max(0.6 * (end - began), 0.05))
    if relaxed.status == "infeasible":
        return Found(None, -np.inf, -np.inf, True)
    bound = (relaxed.bound if relaxed.status == "optimal" else np.inf) + program.constant
    if relaxed.x is None or relaxed.status != "optimal":
        return Found(None, -np.inf, bound, False)
    low, high = linear.low.copy(), linear.high.copy()
    used = program.count[0]
    low[used] = np.maximum(np.floor(relaxed.x[used] + WHOLE), low[used])
    high[used] = np.minimum(
        np.ceil(relaxed.x[used] - WHOLE) + MORE_HOSTS * (relaxed.x[used] > WHOLE), high[used]
    )
    best = Found(None, -np.inf, bound, False)
    for limits in ((low, high), (linear.low, linear.high)):
        left = end - time.monotonic()
        if left <= 0 or best.proven:
            break
        answer = solve(linear.with_bounds(*limits), seconds=left, gap=gap)
        if answer.x is None:
            continue
        x = exact(linear, answer.x)
        value = float(linear.cost @ x) + program.constant
        if value > best.objective and float(x[program.read[0]]) > 0:
            best = _with_bound(Found(disaggregate(program, case.classes, x), value, bound, False), bound, gap)
            if tell is not None:
                tell(f"objective {value:.6g}, bound {bound:.6g}")
    return best


def _close(objective: float, bound: float, gap: float) -> bool:
    return bound - objective <= gap * abs(bound) + 1e-9


def _with_bound(found: Found, bound: float, gap: float) -> Found:
    bound = max(bound, found.objective)
    proven = found.flows is not None and _close(found.objective, bound, gap)
    return Found(found.flows, found.objective, bound, proven, found.solved)


def settle_ties(case: SourceCase, found: Found) -> Found:
    """The same with ties broken by a fixed order, if it is an optimum that was found directly."""
    if found.solved is None or not found.proven:
        return found
    program, x = found.solved
    x = break_ties(program, case.classes, x)
    value = float(program.linear.cost @ x) + program.constant
    return replace(found, flows=disaggregate(program, case.classes, x), objective=value)
