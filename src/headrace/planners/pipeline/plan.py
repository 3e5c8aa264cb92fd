"""Deploy a pipeline on a platform: by the strict form of the linear program, then by its relaxations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.deployment import Deployment, Form
from headrace.model.errors import NoPlan, UsageError
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.classes import Classes, find_classes
from headrace.planners.pipeline.compact import Compact, Weights, build_compact
from headrace.planners.pipeline.disaggregate import HostFlows, disaggregate, flows, placements
from headrace.planners.pipeline.explain import find_limits, find_prices, shortage
from headrace.planners.pipeline.heuristics import (
    even_flows,
    near_reader,
    place,
    powerful_first,
    proportional_counts,
    trial_work,
)
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.rates import Rates, find_rates
from headrace.planners.pipeline.search import Found, search
from headrace.planners.pipeline.shared import build_shared
from headrace.planners.pipeline.tie_break import break_ties

SECONDS = 10.0
GAP = 1e-4
STRICT_SHARE = 0.6
"""Share of the time for the strict form."""

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class _Case:
    problem: PipelineProblem
    rates: Rates
    classes: Classes
    weights: Weights
    seconds: float
    gap: float
    tell: Tell | None
    began: float

    def build(self, *, strict: bool) -> Compact:
        build = build_shared if self.problem.several_per_host else build_compact
        return build(self.rates, self.classes, self.weights, strict=strict)


def deploy_lpsched(
    problem: PipelineProblem, *, seconds: float = SECONDS, gap: float = GAP, tell: Tell | None = None
) -> Deployment:
    """The best deployment within a relative gap, or the best found in the time.

    The strict form is tried first, in which the reader runs at its full rate. If it is infeasible, the first relaxation
    is used, in which the reader may be throttled; if the network alone could not carry the full rate either, the second
    relaxation is solved too, and the better of the two is returned.
    """
    case = _make_case(problem, seconds, gap, tell)
    strict = case.build(strict=True)
    found = search(strict, seconds=seconds * STRICT_SHARE, gap=gap, tell=tell)
    if found.x is not None:
        return _deployment(case, strict, found, "strict", ())
    notes = (
        [] if found.proven else ["no deployment at the reader's full rate was found within the time limit"]
    )
    loose = case.build(strict=False)
    left = max(seconds - (time.monotonic() - case.began), 0.3 * seconds)
    found = search(loose, seconds=left, gap=gap, tell=tell)
    first = None
    if found.x is not None and float(found.x[loose.read].sum()) > 0:
        notes.append(shortage(problem, loose, found.x))
        first = _deployment(case, loose, found, "first relaxation", tuple(notes))
    if first is not None and (problem.several_per_host or _network_suffices(case)):
        return first
    second = None if problem.several_per_host else _second(case)
    return _better(case, first, second)


def deploy_trivial(problem: PipelineProblem) -> Deployment:
    """Deploy each filter on one host: those near the reader, in platform order."""
    return _by_rule(problem, "trivial")


def deploy_total(problem: PipelineProblem) -> Deployment:
    """Deploy on all hosts, those near the reader first, in proportion to the filters' trial times."""
    return _by_rule(problem, "total")


PLANNERS: dict[str, Callable[..., Deployment]] = {
    "lpsched": deploy_lpsched,
    "trivial": deploy_trivial,
    "total": deploy_total,
}


def _make_case(problem: PipelineProblem, seconds: float, gap: float, tell: Tell | None) -> _Case:
    if not (seconds > 0 and 0 <= gap < 1):
        raise UsageError(f"time {seconds} s, gap {gap}", hint="use a time above 0, and a gap from 0 to 1")
    weights = Weights.of(problem)
    if problem.several_per_host and np.any(weights.least > 0):
        raise UsageError(
            "W_MIN cannot be combined with filters that share hosts",
            where=f"pipeline {problem.pipeline.name!r}",
            hint="set W_MIN to 0: it applies only to hosts that run one filter",
        )
    rates = find_rates(problem)
    _require_hosts(problem, rates)
    return _Case(problem, rates, find_classes(rates), weights, seconds, gap, tell, time.monotonic())


def _require_hosts(problem: PipelineProblem, rates: Rates) -> None:
    """Raise NoPlan unless there is a separate host for every filter besides the readers."""
    if problem.several_per_host:
        return
    n_hosts, others = len(rates.zone), rates.n_filters - 1
    readers = int((rates.share > 0).sum(axis=1).min())
    if readers + others > n_hosts:
        raise NoPlan(
            f"{readers} reading hosts and {others} more filters need {readers + others} hosts, but there are {n_hosts}",
            where=f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}",
            hint="add hosts, or let filters share hosts (--several-per-host)",
        )


def _network_suffices(case: _Case) -> bool:
    """Whether the network could carry the reader's full rate if hosts were fast enough."""
    rates = replace(
        case.rates, core=np.vstack([case.rates.core[:1], np.full_like(case.rates.core[1:], np.inf)])
    )
    weights = replace(case.weights, least=np.zeros_like(case.weights.least), spare=0.0)
    program = build_compact(rates, find_classes(rates), weights, strict=True)
    return solve(program.linear, whole=False).x is not None


def _second(case: _Case) -> Deployment | None:
    """Second relaxation: hosts in proportion to trial times, the powerful ones to the filters with most work; then the
    best flows."""
    rates, classes = case.rates, case.classes
    weights = replace(case.weights, least=np.zeros_like(case.weights.least))
    program = build_compact(rates, classes, weights, strict=False)
    linear = program.linear
    work = trial_work(case.problem)
    best: Found | None = None
    for option in range(len(rates.readable)):
        hosts = powerful_first(rates, option)
        if len(hosts) < rates.n_filters - 1:
            continue
        order = 1 + np.argsort(-work[1:], kind="stable")
        placed = place(rates, option, hosts, proportional_counts(work[1:], len(hosts)), order)
        low, high = linear.low.copy(), linear.high.copy()
        high[program.option] = 0.0
        low[program.option[option]] = high[program.option[option]] = 1.0
        for k in range(1, rates.n_filters):
            count = np.bincount(classes.of_host, placed[k], classes.n)
            low[program.count[k]] = high[program.count[k]] = count
        x = solve(linear.with_bounds(low, high), whole=False).x
        value = -np.inf if x is None else float(linear.cost @ x)
        if x is not None and (best is None or value > best.objective):
            best = Found(x, value, value, True)
    if best is None or best.x is None or float(best.x[program.read].sum()) <= 0:
        return None
    return _deployment(case, program, best, "second relaxation", ())


def _better(case: _Case, first: Deployment | None, second: Deployment | None) -> Deployment:
    """The deployment with the larger objective; its notes mention both."""
    if first is None and second is None:
        raise NoPlan(
            "no data can flow from the reader to all filters",
            where=f"pipeline {case.problem.pipeline.name!r} on {case.problem.platform.name!r}",
            hint="add routes between hosts",
        )
    if first is None or second is None:
        made = first or second
        assert made is not None
        return made
    said = (
        f"neither computing power nor bandwidth suffices: first relaxation {first.throughput:.4g} MB/s with "
        f"{len(first.hosts_used)} hosts, second {second.throughput:.4g} MB/s with {len(second.hosts_used)}"
    )
    made = first if first.objective >= second.objective else second
    return replace(made, notes=(*made.notes, said), seconds=time.monotonic() - case.began)


def _deployment(
    case: _Case, program: Compact, found: Found, form: Form, notes: tuple[str, ...]
) -> Deployment:
    x = found.x
    assert x is not None
    if form != "second relaxation" and found.proven:
        x = break_ties(program, x, seconds=case.seconds)
    where = disaggregate(program, x)
    return _assemble(
        case.problem,
        case.rates,
        where,
        planner="lpsched",
        form=form,
        bound=found.bound,
        limits=find_limits(case.problem, program, x),
        prices=find_prices(case.problem, program, where.option),
        notes=notes,
        began=case.began,
    )


def _assemble(
    problem: PipelineProblem,
    rates: Rates,
    where: HostFlows,
    *,
    bound: float | None,
    began: float,
    **more: object,
) -> Deployment:
    placed = placements(problem, rates, where)
    moved = flows(problem, rates, where)
    objective = _objective(problem, rates, where)
    return Deployment(
        problem=problem,
        source=problem.sources[where.option].name,
        throughput=where.throughput * rates.unit,
        placements=placed,
        flows=moved,
        objective=objective,
        bound=objective if bound is None else max(bound, objective),
        seconds=time.monotonic() - began,
        **more,  # type: ignore[arg-type]
    )


def _objective(problem: PipelineProblem, rates: Rates, where: HostFlows) -> float:
    flow = float((rates.weight[None] * where.zone_flow).sum())
    flow += float((rates.weight[rates.zone, rates.zone][None] * where.local).sum())
    return flow - problem.knobs.host_cost * int(np.any(where.placed > 0, axis=0).sum())


def _by_rule(problem: PipelineProblem, name: Form) -> Deployment:
    began = time.monotonic()
    rates = find_rates(problem)
    _require_hosts(replace(problem, several_per_host=False), rates)
    best: HostFlows | None = None
    work = trial_work(problem)
    order = np.arange(1, rates.n_filters)
    for option in range(len(rates.readable)):
        hosts = near_reader(rates, option)
        if len(hosts) < len(order):
            continue
        counts = (
            np.ones(len(order), np.int64) if name == "trivial" else proportional_counts(work[1:], len(hosts))
        )
        found = even_flows(rates, option, place(rates, option, hosts, counts, order))
        if best is None or found.throughput > best.throughput:
            best = found
    if best is None or best.throughput <= 0:
        raise NoPlan(
            f"{name} places filters on hosts that data cannot reach",
            where=f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}",
            hint="use lpsched",
        )
    return _assemble(problem, rates, best, planner=name, form=name, bound=None, began=began)
