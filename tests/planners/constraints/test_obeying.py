"""Every planner keeps constraints that some plan satisfies, and its plans stay valid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound
from headrace.testing.check_constraints import check_constraints
from headrace.testing.generate import cases
from planners.constraints.random_constraints import EVERY, satisfied_by

PLANNERS = (
    "heft", "cpop", "peft", "wu-gajski", "locality", "subset", "single-host", "round-robin",
    "minmin", "maxmin", "sufferage", "xsufferage", "random-minmin", "random-maxmin", "random-sufferage",
    "random-xsufferage", "sufferage2", "auto", "best", "coschedule",
)  # fmt: skip
TIMED = ("best", "coschedule")


def random_problem(program, platform, seed: int, kinds=EVERY) -> Problem:  # type: ignore[no-untyped-def]
    """A problem whose constraints a random placement satisfies."""
    rng = np.random.default_rng([seed, 6])
    problem = Problem(program.graph, platform, seed=seed)
    hosts = rng.integers(0, len(platform.hosts), program.graph.n_tasks).astype(np.int32)
    arrays = problem_arrays(problem)
    witness = list_plan(problem, program.graph.order, "random", host_constraints(arrays, fixed=hosts), arrays)
    return replace(problem, constraints=satisfied_by(witness, seed, kinds))


@pytest.mark.parametrize("name", PLANNERS)
def test_constraints_are_kept(name: str) -> None:
    timed = name in TIMED
    for i, (program, platform) in enumerate(cases(15 if timed else 45, seed=11, tasks=14)):
        problem = random_problem(program, platform, i)
        plan = plan_with_bound(make(name, **({"time": 0.05} if timed else {})), problem)
        assert check(program.graph, platform, plan) == [], (i, name)
        assert check_constraints(problem.constraints, plan) == [], (i, name)
        assert plan.graph is program.graph
