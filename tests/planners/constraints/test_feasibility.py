"""On tiny problems a planner refuses constraints on hosts exactly if no assignment of hosts satisfies them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints, Limit
from headrace.model.errors import NoPlan
from headrace.model.plan import NO_MOVES, Plan
from headrace.planners.registry import make
from headrace.testing.check_constraints import check_constraints
from headrace.testing.generate import SHAPES, random_platform, random_program

HOSTS = 3


def tiny(seed: int) -> Problem:
    """4 to 6 tasks on 3 hosts at two sites, under constraints on hosts of any kind, feasible or not."""
    rng = np.random.default_rng([seed, 8])
    n = int(rng.integers(4, 7))
    graph = random_program(seed, n, SHAPES[seed % len(SHAPES)]).graph
    platform = random_platform(seed, "uplinks", hosts=HOSTS)
    made = Constraints.none(n, HOSTS)
    if rng.random() < 0.7:
        allowed = rng.random((3, HOSTS)) < 0.6
        made = replace(made, allowed=allowed, allowed_class=rng.integers(0, 3, n).astype(np.int32))
    if rng.random() < 0.4:
        made = replace(made, together=rng.integers(-3, 2, n).astype(np.int32))
    if rng.random() < 0.4:
        made = replace(made, together_at_site=rng.integers(-3, 2, n).astype(np.int32))
    if rng.random() < 0.6:
        groups = tuple(rng.permutation(n)[: int(rng.integers(2, 4))].astype(np.int32) for _ in range(2))
        made = replace(made, apart=groups[: int(rng.integers(1, 3))])
    return Problem(graph, platform, constraints=replace(made, limits=limits(graph.work, rng)))


def limits(work: np.ndarray, rng: np.random.Generator) -> tuple[Limit, ...]:  # type: ignore[type-arg]
    made = []
    for _ in range(int(rng.integers(0, 4))):
        limit = Limit(rng.random(len(work)) < 0.8, rng.random(HOSTS) < 0.5)
        if rng.random() < 0.5:
            limit = replace(limit, count=float(rng.integers(0, 3)))
        else:
            limit = replace(limit, seconds=float(work.sum()) * float(rng.uniform(0.05, 0.4)))
        made.append(limit)
    return tuple(made)


def feasible(problem: Problem) -> bool:
    """Whether some assignment of hosts satisfies the constraints, by trying all."""
    graph, constraints = problem.graph, problem.constraints
    assert constraints is not None
    rate = problem.platform.rates(graph)
    begins = 1000.0 * np.arange(graph.n_tasks)  # one after another: only hosts matter
    for hosts in product(range(HOSTS), repeat=graph.n_tasks):
        host = np.array(hosts, np.int32)
        ends = begins + graph.work / rate[graph.speed_class, host]
        plan = Plan(graph, problem.platform, "", host, host * 0, begins, ends, **NO_MOVES)
        if not check_constraints(constraints, plan):
            return True
    return False


@pytest.mark.parametrize("name", ["heft", "sufferage", "round-robin"])
def test_refused_exactly_if_no_assignment_exists(name: str) -> None:
    outcomes = []
    for seed in range(120):
        problem = tiny(seed)
        try:
            plan = make(name).plan(problem)
        except NoPlan:
            plan = None
        outcomes.append(plan is not None)
        if plan is None:
            assert not feasible(problem), seed
        else:
            assert problem.constraints is not None
            assert check_constraints(problem.constraints, plan) == [], seed
    assert 30 < sum(outcomes) < 100
