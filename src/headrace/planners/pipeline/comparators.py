"""The two simple rules: one host per filter, or all hosts in proportion to trial times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

import numpy as np

from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.assemble import assemble, objective_of, require_hosts
from headrace.planners.pipeline.disaggregate import HostFlows
from headrace.planners.pipeline.heuristics import (
    even_flows,
    near_reader,
    place,
    proportional_counts,
    trial_work,
)
from headrace.planners.pipeline.rates import Rates, find_rates
from headrace.planners.pipeline.search import SourceCase, quick_bound
from headrace.planners.pipeline.weights import Weights

Rule = Literal["trivial", "total"]


def deploy_trivial(problem: PipelineProblem) -> Deployment:
    """Deploy each filter on one host: those near the reader, in platform order."""
    return _by_rule(problem, "trivial")


def deploy_total(problem: PipelineProblem) -> Deployment:
    """Deploy on all hosts, those near the reader first, in proportion to the filters' trial times."""
    return _by_rule(problem, "total")


def rule_flows(problem: PipelineProblem, rates: Rates, name: Rule) -> Iterator[HostFlows]:
    """What a rule does with each source through which data flows."""
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
        if found.throughput > 0:
            yield found


def _by_rule(problem: PipelineProblem, name: Rule) -> Deployment:
    began = time.monotonic()
    rates = find_rates(problem)
    require_hosts(problem, rates)
    best = max(rule_flows(problem, rates, name), key=lambda found: found.throughput, default=None)
    if best is None:
        raise NoPlan(
            f"{name} places filters on hosts that data cannot reach",
            where=f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}",
            hint="use lpsched",
        )
    weights = Weights.of(problem)
    bound = max(
        quick_bound(SourceCase.of(rates, i, weights, several_per_host=problem.several_per_host))
        for i in range(len(rates.readable))
    )
    return assemble(problem, rates, best, planner=name, form=name, bound=bound, began=began)


def with_wishes(problem: PipelineProblem, rates: Rates, found: HostFlows) -> HostFlows | None:
    """A placement that ignores W_F and W_MIN, slowed down so that W_F is kept; None if it does not keep W_MIN."""
    weights = Weights.of(problem)
    power = (rates.core * rates.cores)[1:]
    placed = found.placed[1:] > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        together = np.where(placed, power, 0.0).sum(axis=1)
        if problem.several_per_host:  # the reserve of every host
            together = np.where(placed, power * found.throughput / found.work[1:], np.inf).min(axis=1)
    factor = min(1.0, float((together / ((1 + weights.spare) * found.throughput)).min()))
    found = found.scaled(factor)
    most = rates.readable[found.option]
    least = weights.least[1:, None] * np.minimum(power, most)
    short = placed & (found.work[1:] < least * (1 - 1e-9)) & (placed.sum(axis=1, keepdims=True) > 1)
    return None if short.any() else found


def best_rule(problem: PipelineProblem, rates: Rates) -> tuple[float, Rule, HostFlows] | None:
    """The better of both rules by the objective, among those that keep the user's wishes."""
    names: tuple[Rule, ...] = ("trivial", "total")
    found = [
        (objective_of(problem, rates, kept), name, kept)
        for name in names
        for flows in rule_flows(problem, rates, name)
        if (kept := with_wishes(problem, rates, flows)) is not None
    ]
    return max(found, key=lambda entry: entry[0], default=None)
