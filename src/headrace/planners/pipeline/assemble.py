"""A deployment from arrays over hosts."""

from __future__ import annotations

import time

import numpy as np

from headrace.model.deployment import Deployment, Form, Limit
from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.disaggregate import HostFlows, flows, placements
from headrace.planners.pipeline.rates import Rates


def assemble(
    problem: PipelineProblem,
    rates: Rates,
    where: HostFlows,
    *,
    planner: str,
    form: Form,
    bound: float,
    began: float,
    limits: tuple[Limit, ...] = (),
    notes: tuple[str, ...] = (),
) -> Deployment:
    """The deployment, with the bound that holds for the question; `began` is on the monotonic clock."""
    objective = objective_of(problem, rates, where)
    return Deployment(
        problem=problem,
        planner=planner,
        form=form,
        source=problem.sources[where.option].name,
        throughput=where.throughput * rates.unit,
        placements=placements(problem, rates, where),
        flows=flows(problem, rates, where),
        objective=objective,
        bound=max(bound, objective),
        limits=limits,
        seconds=time.monotonic() - began,
        notes=notes,
    )


def objective_of(problem: PipelineProblem, rates: Rates, where: HostFlows) -> float:
    """The weighted flow minus the cost of hosts."""
    flow = float((rates.weight[None] * where.zone_flow).sum())
    flow += float((rates.weight[rates.zone, rates.zone][None] * where.local).sum())
    return flow - problem.knobs.host_cost * int(np.any(where.placed > 0, axis=0).sum())


def require_hosts(problem: PipelineProblem, rates: Rates) -> None:
    """Raise NoPlan unless there is a separate host for every filter besides the readers."""
    n_hosts, others = len(rates.zone), rates.n_filters - 1
    readers = int((rates.share > 0).sum(axis=1).min())
    if readers + others > n_hosts:
        raise NoPlan(
            f"{readers} reading hosts and {others} more filters need {readers + others} hosts, but there are {n_hosts}",
            where=f"pipeline {problem.pipeline.name!r} on {problem.platform.name!r}",
            hint="add hosts, or let filters share hosts (--several-per-host)",
        )
