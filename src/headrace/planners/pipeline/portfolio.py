"""LPSched: the best deployment over all sources and forms, with one bound.

The question is always the same: the largest objective of any deployment that keeps the restrictions, where the reader
may be slowed down. The strict form (the reader at its full rate) is a special case, and so are the placements of the
second relaxation and of the simple rules, if they keep W_F and W_MIN. All are candidates, the best objective wins, and
the bound is that of the question: the largest over all sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.deployment import Deployment, Form
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.assemble import assemble, objective_of, require_hosts
from headrace.planners.pipeline.column_generation import Relaxed
from headrace.planners.pipeline.comparators import best_rule
from headrace.planners.pipeline.disaggregate import HostFlows, spread
from headrace.planners.pipeline.explain import find_limits, shortage
from headrace.planners.pipeline.heuristics import place, powerful_first, proportional_counts, trial_work
from headrace.planners.pipeline.rates import Rates, find_rates
from headrace.planners.pipeline.rounding import decide
from headrace.planners.pipeline.search import (
    DIRECT,
    RELAXED_SHARE,
    Found,
    SourceCase,
    quick_bound,
    relax_first,
    search,
    settle_ties,
)
from headrace.planners.pipeline.weights import Weights

SECONDS = 30.0
GAP = 1e-4
FULL = 1e-9
SEARCH_SHARE = 0.85
"""Share of the time for the search; the rest is for writing the deployment down and explaining it."""
APART_SHARE = 0.4
"""Share of the time for deployments in which filters do not share hosts, where they may."""
LEAST_SHARE = 0.1
"""Share of the time that the search for one source has at least; if there are many, the least promising have none."""
NEAR = 0.98
"""A deployment with this part of the bound is not compared with the second relaxation."""
MOST_SECOND = 4
"""Sources for which the second relaxation is tried."""

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Question:
    """A deployment problem in arrays, with what the search may take."""

    problem: PipelineProblem
    rates: Rates
    weights: Weights
    cases: tuple[SourceCase, ...]
    """Sources, the most promising first."""
    seconds: float
    gap: float
    tell: Tell | None
    began: float


@dataclass(frozen=True, eq=False)
class Best:
    """The best of all candidates so far."""

    flows: HostFlows | None = None
    objective: float = -np.inf
    bound: float = -np.inf
    form: Form | None = None
    """None: as its throughput says."""
    found: Found | None = None
    """Where it came from, if from the search."""


def deploy_lpsched(
    problem: PipelineProblem, *, seconds: float = SECONDS, gap: float = GAP, tell: Tell | None = None
) -> Deployment:
    """The best deployment within a relative gap, or the best found in the time."""
    question = ask(problem, seconds=seconds, gap=gap, tell=tell)
    return answer_deployment(question, solve_question(question))


def ask(
    problem: PipelineProblem,
    *,
    seconds: float = SECONDS,
    gap: float = GAP,
    tell: Tell | None = None,
    extra_cost: Floats | None = None,
) -> Question:
    """Check the options and compute the arrays; `extra_cost` is the cost of filters [filters, hosts] besides W_X."""
    began = time.monotonic()
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
    if not problem.several_per_host:
        require_hosts(problem, rates)
    cases = [
        SourceCase.of(rates, i, weights, several_per_host=problem.several_per_host, extra_cost=extra_cost)
        for i in range(len(rates.readable))
    ]
    cases.sort(key=lambda case: (-quick_bound(case), case.option))
    return Question(problem, rates, weights, tuple(cases), seconds, gap, tell, began)


def solve_question(question: Question) -> Best:
    """Search source by source, skip those that cannot be better, then try the simple candidates."""
    best = _apart(question)
    end = question.began + SEARCH_SHARE * question.seconds
    relaxed = _relax_all(question, end)
    tops = {case.option: _top(case, relaxed.get(case.option)) for case in question.cases}
    order = sorted(question.cases, key=lambda case: (-tops[case.option], case.option))
    for rounds in range(2):  # the second for those that need more than their share
        for number, case in enumerate(order):
            now, top = time.monotonic(), tops[case.option]
            done = best.flows is not None and top <= best.objective + question.gap * abs(top)
            if now > end or done or (rounds == 1 and end - now < 0.25 * question.seconds):
                continue
            rivals = sum(tops[c.option] > best.objective for c in order[number:])
            share = min(end, now + max((end - now) / max(rivals, 1), LEAST_SHARE * question.seconds))
            answer = search(
                case,
                end=share,
                gap=question.gap,
                tell=question.tell,
                floor=best.objective,
                relaxed=relaxed.get(case.option),
            )
            tops[case.option] = min(top, answer.bound)
            best = _merge(best, case, answer)
    best = _settled(question, replace(best, bound=max([*tops.values(), best.objective])))
    if best.flows is None or best.bound - best.objective > question.gap * abs(best.bound):
        best = _with_simple(question, best)
    return best


def _apart(question: Question) -> Best:
    """Where filters may share many hosts, the best deployment in which they do not, which is found more easily."""
    problem = question.problem
    large = any(case.integers > DIRECT for case in question.cases)
    if not (problem.several_per_host and large) or question.weights.spare > 0:
        return Best()
    apart = replace(problem, several_per_host=False)
    try:
        alone = ask(apart, seconds=APART_SHARE * question.seconds, gap=question.gap, tell=question.tell)
    except NoPlan:
        return Best()
    best = solve_question(alone)
    return Best(best.flows, best.objective, form=best.form)


def _relax_all(question: Question, end: float) -> dict[int, Relaxed]:
    """Relaxations of large problems, the most promising sources first, in a part of the time."""
    found: dict[int, Relaxed] = {}
    last = question.began + RELAXED_SHARE * (end - question.began)
    for number, case in enumerate(question.cases):
        now = time.monotonic()
        if now > last:
            break
        part = (last - now) / (len(question.cases) - number)
        relaxed = relax_first(
            case, end=now + max(part, LEAST_SHARE * (last - question.began)), gap=question.gap
        )
        if relaxed is not None:
            found[case.option] = relaxed
    return found


def _top(case: SourceCase, relaxed: Relaxed | None) -> float:
    return min(quick_bound(case), np.inf if relaxed is None else relaxed.bound)


def _settled(question: Question, best: Best) -> Best:
    """The same with ties broken by a fixed order."""
    if best.found is None or best.flows is None:
        return best
    option = best.flows.option
    settled = settle_ties(next(c for c in question.cases if c.option == option), best.found)
    assert settled.flows is not None
    return replace(best, flows=replace(settled.flows, option=option), objective=settled.objective)


def _merge(best: Best, case: SourceCase, answer: Found) -> Best:
    if answer.flows is None or answer.objective <= best.objective + 1e-12 * abs(best.objective):
        return best
    flows = replace(answer.flows, option=case.option)
    return Best(flows, answer.objective, best.bound, found=answer)


def _with_simple(question: Question, best: Best) -> Best:
    """The second relaxation and the simple rules, where they are better than what the search found."""
    for objective, form, flows in _simple(
        question, near=best.flows is not None and best.objective >= NEAR * best.bound
    ):
        if objective > best.objective + 1e-9 * abs(objective):
            best = replace(best, flows=flows, objective=objective, form=form)
    return replace(best, bound=max(best.bound, best.objective))


def _simple(question: Question, *, near: bool) -> Iterator[tuple[float, Form, HostFlows]]:
    problem, rates = question.problem, question.rates
    for case in question.cases[:MOST_SECOND]:
        if not problem.several_per_host and not near:
            flows = _second(problem, case)
            if flows is not None:
                yield objective_of(problem, rates, flows), "second relaxation", flows
    rule = best_rule(problem, rates)
    if rule is not None:
        yield rule


def _second(problem: PipelineProblem, case: SourceCase) -> HostFlows | None:
    """Second relaxation: hosts in proportion to trial times, the powerful ones to the filters with most work; then the
    best flows."""
    rates, classes, groups = case.rates, case.classes, case.groups
    work = trial_work(problem)
    hosts = powerful_first(rates, 0)
    if len(hosts) < rates.n_filters - 1:
        return None
    order = 1 + np.argsort(-work[1:], kind="stable")
    placed = place(rates, 0, hosts, proportional_counts(work[1:], len(hosts)), order)
    counts = np.zeros((rates.n_filters, classes.n), np.int64)
    for k in range(1, rates.n_filters):
        counts[k] = np.bincount(classes.of_host, placed[k], classes.n)
    whole = decide(rates, groups, case.weights, counts, end=time.monotonic() + 2.0)
    return None if whole is None else replace(spread(rates, classes, whole), option=case.option)


def answer_deployment(question: Question, best: Best, *, notes: tuple[str, ...] = ()) -> Deployment:
    """The deployment, with its form, what limits it, and notes."""
    problem, rates = question.problem, question.rates
    if best.flows is None:
        raise _no_plan(question, best)
    flows = best.flows
    full = flows.throughput >= float(rates.readable[flows.option]) * (1 - FULL)
    form: Form = best.form or ("strict" if full else "first relaxation")
    case = next(c for c in question.cases if c.option == flows.option)
    gap = (best.bound - best.objective) / max(abs(best.bound), 1e-12)
    said = () if full else (shortage(problem, rates, flows),)
    return assemble(
        problem,
        rates,
        flows,
        planner="lpsched",
        form=form,
        bound=best.bound,
        began=question.began,
        limits=find_limits(problem, case, flows, gap=gap, solved=gap <= question.gap),
        notes=(*said, *notes),
    )


def _no_plan(question: Question, best: Best) -> NoPlan:
    problem = question.problem
    where = f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}"
    if best.bound == -np.inf:
        return NoPlan(
            "no data can flow from the reader to all filters", where=where, hint="add routes between hosts"
        )
    return NoPlan(f"no deployment was found in {question.seconds:g} s", where=where, hint="allow more --time")
