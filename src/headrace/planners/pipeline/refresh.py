"""Refresh a deployment when loads have changed: the fewest moves that keep nearly all of the gain.

A move is a host that starts a filter it did not run before; stopping one is not. Of all deployments whose objective is
within a given share of the best one for the new loads, the one with the fewest moves is taken, and of those the one
with the largest objective. If the old placement with flows divided anew is among them, nothing moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.deployment import Deployment
from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.model.units import plural
from headrace.planners.pipeline.assemble import objective_of
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.disaggregate import HostFlows, disaggregate, spread
from headrace.planners.pipeline.linear import Linear, solve
from headrace.planners.pipeline.portfolio import (
    GAP,
    SECONDS,
    Best,
    Question,
    Tell,
    answer_deployment,
    ask,
    solve_question,
)
from headrace.planners.pipeline.rounding import decide, exact
from headrace.planners.pipeline.search import DIRECT, SourceCase

LOSS = 0.01
PRICES = (1 / 128, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 4.0)
"""Prices of a move that are tried where the exact program is too large, relative to the mean value of a host."""


@dataclass(frozen=True, eq=False)
class Refreshed:
    """The new deployment and what it takes to get there."""

    deployment: Deployment
    moves: tuple[tuple[str, str], ...]
    """The (filter, host) pairs to start."""
    best_moves: int
    """Moves to the best deployment."""
    best_objective: float
    kept_objective: float
    """Of the old placement with flows divided anew; -inf if it cannot be kept."""


def refresh(
    problem: PipelineProblem,
    old: Mapping[str, Set[str]],
    *,
    loss: float = LOSS,
    seconds: float = SECONDS,
    gap: float = GAP,
    tell: Tell | None = None,
) -> Refreshed:
    """The deployment with the fewest moves whose objective is at most `loss` (a share) below the best one.

    `old` has the hosts of each filter; hosts that are not there any more are ignored.

    Raises UsageError if the filters are those of another pipeline, or none of the hosts is known.
    """
    if problem.several_per_host:
        raise UsageError(
            "a deployment in which filters share hosts cannot be refreshed",
            where="--refresh",
            hint="leave out --several-per-host, or plan a new deployment",
        )
    if not 0 <= loss < 1:
        raise UsageError(f"the loss is {loss}", where="--refresh-loss", hint="give a share from 0 to 1")
    _require_same(problem, old)
    before = _before(problem, old)
    question = ask(problem, seconds=seconds / 2, gap=gap, tell=tell)
    best = solve_question(question)
    if best.flows is None:
        answer_deployment(question, best)  # raises NoPlan
    else:
        used = next(case for case in question.cases if case.option == best.flows.option)
        best = replace(best, flows=_at_old_hosts(used, best.flows, before))
    target = best.objective - loss * abs(best.objective)
    kept, candidates = -np.inf, [best]
    for number, found in enumerate(_candidates(question, best, before, target, seconds / 2)):
        candidates.append(found)
        if number == 0:
            kept = found.objective
    enough = [c for c in candidates if c.flows is not None and c.objective >= target - 1e-9 * abs(target)]
    chosen = min(enough, key=lambda c: (_moves(before, c.flows), -c.objective))
    fewest, most = _moves(before, chosen.flows), _moves(before, best.flows)
    note = (
        f"refreshed with {plural(fewest, 'move')}; the best deployment needs {most} for an objective of "
        f"{best.objective:.6g}"
    )
    made = answer_deployment(question, replace(chosen, bound=best.bound), notes=(note,))
    return Refreshed(made, _named_moves(problem, before, chosen.flows), most, best.objective, kept)


def _require_same(problem: PipelineProblem, old: Mapping[str, Set[str]]) -> None:
    """Refuse a deployment of other filters, or of hosts that are all unknown: everything would count as a move."""
    filters = [f.name for f in problem.pipeline.order]
    known = {h.name for h in problem.platform.hosts}
    unknown, missing = [name for name in old if name not in filters], [f for f in filters if f not in old]
    if unknown or missing:
        parts = [
            f"{what} {', '.join(names)}"
            for what, names in (("it has", unknown), ("it does not have", missing))
            if names
        ]
        raise UsageError(
            f"the deployment has other filters than pipeline {problem.pipeline.name!r}: {'; '.join(parts)}",
            where="--refresh",
            hint="give a deployment of this pipeline",
        )
    used = sorted({host for hosts in old.values() for host in hosts})
    if not known.intersection(used):
        more = " and others" * (len(used) > 4)
        raise UsageError(
            f"none of the deployment's hosts is in platform {problem.platform.name!r}: {', '.join(used[:4])}{more}",
            where="--refresh",
            hint="give a deployment on this platform",
        )


def _before(problem: PipelineProblem, old: Mapping[str, Set[str]]) -> Numbers:
    """[filters, hosts] 1 where a filter ran."""
    hosts = {h.name: j for j, h in enumerate(problem.platform.hosts)}
    before = np.zeros((len(problem.pipeline.order), len(hosts)), np.int64)
    for k, f in enumerate(problem.pipeline.order):
        for host in old.get(f.name, ()):
            if host in hosts:
                before[k, hosts[host]] = 1
    return before


def _moves(before: Numbers, flows: HostFlows | None) -> int:
    assert flows is not None
    return int(((flows.placed > 0) & (before == 0)).sum())


def _named_moves(
    problem: PipelineProblem, before: Numbers, flows: HostFlows | None
) -> tuple[tuple[str, str], ...]:
    assert flows is not None
    filters, hosts = problem.pipeline.order, problem.platform.hosts
    return tuple(
        (filters[k].name, hosts[h].name) for k, h in np.argwhere((flows.placed > 0) & (before == 0)).tolist()
    )


def _candidates(
    question: Question, best: Best, before: Numbers, target: float, seconds: float
) -> Iterator[Best]:
    """The old placement first, if it can be kept; then deployments with few moves for each source."""
    kept = _kept(question, before)
    yield kept if kept is not None else Best()
    end = time.monotonic() + seconds
    if kept is not None and kept.objective >= target:
        return
    moved = (before == 0).astype(np.float64)
    moved[0] = 0.0
    cases = [_priced_case(question, case, moved, 1e-9) for case in question.cases]
    if all(case.integers <= 2 * DIRECT for case in cases):
        for case in cases:
            found = _fewest(question, case, target, end)
            if found is not None:
                yield found
        return
    worth = abs(best.objective) / max(int(best.flows.placed.sum()), 1) if best.flows is not None else 1.0
    for price in PRICES:
        left = (end - time.monotonic()) / 2
        if left <= 0:
            return
        again = ask(
            question.problem,
            seconds=left,
            gap=max(question.gap, 0.25 * (best.objective - target) / max(abs(best.objective), 1e-12)),
            extra_cost=moved * price * worth,
        )
        found = solve_question(again)
        if found.flows is None:
            return
        objective = objective_of(question.problem, question.rates, found.flows)
        yield Best(found.flows, objective, best.bound)
        if objective < target:
            return


def _priced_case(question: Question, case: SourceCase, moved: Floats, price: float) -> SourceCase:
    """The case with hosts apart that ran different filters."""
    return SourceCase.of(question.rates, case.option, question.weights, extra_cost=moved * price)


def _kept(question: Question, before: Numbers) -> Best | None:
    """The old placement with the best flows for the new loads."""
    for case in question.cases:
        if not np.array_equal(case.rates.share[0] > 0, before[0] > 0):
            continue
        classes = case.classes
        counts = np.array([np.bincount(classes.of_host, row, classes.n) for row in before]).astype(np.int64)
        counts[0] = 0
        if np.any(counts[1:].sum(axis=1) == 0) or np.any(counts.sum(axis=0) > classes.size):
            return None
        whole = decide(case.rates, case.groups, case.weights, counts, end=time.monotonic() + 5.0)
        if whole is None:
            return None
        flows = _at_old_hosts(case, spread(case.rates, classes, whole), before)
        return Best(flows, objective_of(question.problem, question.rates, flows))
    return None


def _at_old_hosts(case: SourceCase, flows: HostFlows, before: Numbers) -> HostFlows:
    """The same flows with the hosts of each class exchanged so that as many as possible run what they ran."""
    placed, work = flows.placed.copy(), flows.work.copy()
    placed[1:], work[1:] = 0, 0.0
    of_host = case.classes.of_host
    for k in range(1, len(placed)):
        for g in np.unique(of_host[flows.placed[k] > 0]).tolist():
            here = np.flatnonzero(of_host == g)
            number = int(flows.placed[k, here].sum())
            free = here[placed[1:, here].sum(axis=0) == 0]
            others = np.delete(before, k, axis=0)[:, free].any(axis=0)
            order = np.lexsort((free, others, before[k, free] == 0))
            hosts = free[order][:number]
            placed[k, hosts] = 1
            work[k, hosts] = float(flows.work[k, here].sum()) / number
    return replace(flows, option=case.option, placed=placed, work=work)


def _fewest(question: Question, case: SourceCase, target: float, end: float) -> Best | None:
    """The exact program: fewest moves with the objective at least the target, then the largest objective."""
    program = case.build()
    linear = program.linear
    cost = np.zeros(len(linear.cost))
    cost[program.count[1:]] = -(case.classes.extra_cost[1:] > 0).astype(np.float64)
    weighted = linear.cost.copy()
    weighted[program.count[1:]] += case.classes.extra_cost[1:]
    first = _with_row(replace(linear, cost=cost), weighted, target - program.constant)
    answer = solve(first, seconds=max((end - time.monotonic()) / 2, 0.5), gap=1e-9)
    if answer.x is None:
        return None
    moves = float(-(cost @ np.rint(answer.x * (cost != 0))))
    second = _with_row(replace(first, cost=weighted), cost, -moves - 0.5)
    again = solve(second, seconds=max(end - time.monotonic(), 0.5), gap=1e-6, start=answer.x)
    x = exact(second, again.x if again.x is not None else answer.x)
    flows = _read_out(program, case, x)
    objective = objective_of(question.problem, question.rates, flows)
    return Best(flows, objective) if flows.throughput > 0 else None


def _with_row(linear: Linear, coefficients: Floats, low: float) -> Linear:
    used = np.flatnonzero(coefficients)
    row = len(linear.row_low)
    return replace(
        linear,
        row=np.concatenate([linear.row, np.full(len(used), row)]),
        column=np.concatenate([linear.column, used]),
        value=np.concatenate([linear.value, coefficients[used]]),
        row_low=np.append(linear.row_low, low),
        row_high=np.append(linear.row_high, np.inf),
    )


def _read_out(program: Compact, case: SourceCase, x: Floats) -> HostFlows:
    return replace(disaggregate(program, case.classes, x), option=case.option)
