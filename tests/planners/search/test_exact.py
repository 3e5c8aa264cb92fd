"""The exact model of small problems, against a plain constraint program that shares no code with it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.bound import Bound
from headrace.model.check import require_valid
from headrace.model.constraints import Constraints
from headrace.model.plan import Plan
from headrace.model.platform import Host, Pairs, Platform, Site
from headrace.model.program import Program
from headrace.planners.bounds import lower_bound
from headrace.planners.list.heft import Heft
from headrace.planners.search.best import Best
from headrace.planners.search.exact import NAME, can_solve, solved_exactly
from headrace.testing import random_platform, random_program
from headrace.testing.exact_links import linked_case, proven_optimum


def solved(problem: Problem, seconds: float = 5.0, plan: Plan | None = None) -> tuple[Plan, Bound]:
    """From the plan of HEFT, if none is given."""
    plan = Heft().plan(problem) if plan is None else plan
    return solved_exactly(
        problem, plan, lower_bound(problem), seconds, work_clock() + 3 * seconds + 10, lambda: False
    )


def covered_cases(count: int) -> list[Problem]:
    """Cases that the model covers, and for which HEFT, which knows no releases, gives a plan to start from."""
    found: list[Problem] = []
    for seed in range(10 * count):
        problem = linked_case(seed, "fifo" if seed % 2 else "none")
        if can_solve(problem) and not problem.graph.release.any():
            found.append(problem)
    return found[:count]


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(problem, id=problem.platform.name, marks=pytest.mark.slow if number % 2 else ())
        for number, problem in enumerate(covered_cases(20))
    ],
)
def test_plan_and_bound_meet_at_the_optimum(problem: Problem) -> None:
    optimum = proven_optimum(problem)
    assert optimum is not None
    plan, bound = solved(problem)
    require_valid(problem.graph, problem.platform, plan)
    low, high = optimum
    assert low <= plan.makespan * (1 + 1e-9)
    assert plan.makespan <= high + 1e-4 * plan.makespan
    assert bound <= high
    assert plan.makespan <= bound * (1 + 1e-4)


def detour() -> Problem:
    """Two tasks whose best hosts are joined by a slow link, and by two quick ones through a third host."""
    program = Program("detour")
    made = program.task(None, work=10.0, kind="a", outputs={"x": 1e6})
    program.task(None, inputs=[made], work=10.0, kind="b", outputs=["y"])
    hosts = (Host("a", 0.1, kinds={"a": 10.0}), Host("b", 0.1, kinds={"b": 10.0}), Host("c", 0.1))
    bandwidth = np.array([[1.0, 1e4, 1e6], [1e4, 1.0, 1e6], [1e6, 1e6, 1.0]])
    return Problem(program.graph, Platform((Site("all", hosts),), pairs=Pairs(bandwidth, 0.0)))


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_data_takes_a_detour_that_no_list_scheduler_takes(contention: str) -> None:
    problem = detour()
    problem = replace(problem, platform=replace(problem.platform, contention=contention))  # type: ignore[arg-type]
    plan, bound = solved(problem)
    require_valid(problem.graph, problem.platform, plan)
    assert plan.makespan == pytest.approx(4.0)
    assert len(plan.move_item) == 2
    assert bound == pytest.approx(4.0, rel=1e-4)
    assert bound.name == NAME


def test_same_answer_twice() -> None:
    problem = Problem(random_program(3, 24).graph, random_platform(3, "ports", contention="fifo", hosts=4))
    first, second = (solved(problem, seconds=1.0) for _ in range(2))
    assert first[1] == second[1]
    assert np.array_equal(first[0].host, second[0].host)
    assert np.array_equal(first[0].start, second[0].start)


def test_never_worse_than_the_given_plan() -> None:
    problem = Problem(random_program(5, 20).graph, random_platform(5, "uplinks", contention="fifo"))
    best, bound = solved(problem)
    again, same = solved(problem, seconds=1e-3, plan=best)
    require_valid(problem.graph, problem.platform, again)
    assert again.makespan <= best.makespan
    assert same <= again.makespan
    assert bound <= best.makespan


def test_stop_ends_it() -> None:
    problem = Problem(random_program(7, 60).graph, random_platform(7, contention="fifo", hosts=6))
    began = time.perf_counter()
    plan, _ = solved_exactly(
        problem, Heft().plan(problem), lower_bound(problem), 300.0, work_clock() + 300.0, lambda: True
    )
    assert time.perf_counter() - began < 60
    require_valid(problem.graph, problem.platform, plan)


def test_what_it_does_not_cover() -> None:
    graph, platform = random_program(1).graph, random_platform(1)
    assert can_solve(Problem(graph, platform))
    several = graph.with_fields(cores=np.full(graph.n_tasks, 2, np.int32))
    assert not can_solve(Problem(several, platform))
    assert not can_solve(Problem(graph, platform, constraints=Constraints.none(graph.n_tasks, 4)))
    assert not can_solve(Problem(graph, platform, free_at={0: 1.0}))
    assert not can_solve(Problem(graph, replace(platform, contention="fair")))
    assert not can_solve(Problem(random_program(1, 2000).graph, platform))


def test_best_ends_with_a_proof() -> None:
    problem = Problem(random_program(11, 20).graph, random_platform(11, "ports", contention="fifo", hosts=3))
    told: list[float] = []
    plan = Best(time=5.0, tell=lambda seconds, makespan, bound: told.append(makespan / bound)).plan(problem)
    require_valid(problem.graph, problem.platform, plan)
    assert plan.makespan <= plan.bound * (1 + 1e-4)
    assert told[-1] == min(told)


@pytest.mark.slow
def test_fair_links_are_no_worse_than_fifo_links() -> None:
    graph, network = random_program(12, 16).graph, random_platform(12, "uplinks", contention="fifo", hosts=3)
    fifo = Best(time=3.0).plan(Problem(graph, network))
    problem = Problem(graph, replace(network, contention="fair"))
    fair = Best(time=3.0).plan(problem)
    require_valid(problem.graph, problem.platform, fair)
    assert fair.makespan <= fifo.makespan * (1 + 1e-4)
