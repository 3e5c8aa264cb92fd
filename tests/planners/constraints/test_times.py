"""Releases, order and deadlines: obeyed, or refused with the task and the time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.constraints import Constraints, Limit, with_order
from headrace.model.errors import NoPlan
from headrace.planners.list.heft import Heft
from headrace.planners.list.round_robin import RoundRobin
from headrace.planners.registry import make
from headrace.testing.check_constraints import check_constraints
from headrace.testing.generate import cases
from planners.constraints.random_constraints import EVERY, satisfied_by


def independent(works: list[float], speeds: list[float]) -> Problem:
    program = hr.Program()
    for work in works:
        program.task(None, work=work)
    return Problem(
        program.graph,
        hr.Platform.pairwise(speeds, bandwidth=1e6),
        constraints=Constraints.none(len(works), len(speeds)),
    )


def test_a_short_task_with_a_deadline_goes_first() -> None:
    problem = independent([10.0, 1.0], [1.0])
    due = replace(problem.constraints, deadline=np.array([np.inf, 2.0]))
    assert Heft().plan(problem).finish.tolist() == [10.0, 11.0]
    assert Heft().plan(replace(problem, constraints=due)).finish.tolist() == [11.0, 1.0]


def test_predecessors_of_a_task_with_a_deadline_go_first() -> None:
    program = hr.Program()
    program.task(None, work=10.0)
    first = program.task(None, outputs={"x": "1 B"}, work=1.0)
    program.task(None, inputs=[first], work=1.0)
    constraints = replace(Constraints.none(3, 1), deadline=np.array([np.inf, np.inf, 3.0]))
    platform = hr.Platform.pairwise([1.0], bandwidth=1e6)
    plan = Heft().plan(Problem(program.graph, platform, constraints=constraints))
    assert plan.finish.tolist() == [12.0, 1.0, 2.0]


@pytest.mark.parametrize("name", ["heft", "minmin", "best", "auto"])
def test_a_deadline_that_cannot_be_met_is_named(name: str) -> None:
    problem = independent([10.0, 10.0], [1.0])
    due = replace(problem.constraints, deadline=np.array([10.0, 12.0]))
    with pytest.raises(NoPlan, match=r"task '.*' must finish by 1[02] s"):
        make(name, **({"time": 0.1} if name == "best" else {})).plan(replace(problem, constraints=due))


def test_order_that_goes_in_a_circle_is_refused() -> None:
    problem = independent([1.0, 1.0], [1.0])
    circle = replace(problem.constraints, before=np.array([[0, 1], [1, 0]], np.int32))
    with pytest.raises(NoPlan, match="circle"):
        Heft().plan(replace(problem, constraints=circle))


def test_the_plan_speaks_of_the_original_graph() -> None:
    problem = independent([1.0, 1.0], [1.0, 1.0])
    ordered = replace(problem.constraints, before=np.array([[1, 0]], np.int32))
    plan = Heft().plan(replace(problem, constraints=ordered))
    assert plan.graph is problem.graph
    assert plan.start.tolist() == [1.0, 0.0]
    assert with_order(problem.graph, ordered.before).n_items == problem.graph.n_items + 1


def test_at_most_two_at_once_on_four_cores() -> None:
    program = hr.Program()
    for _ in range(6):
        program.task(None, work=1.0)
    platform = hr.Platform.pairwise([1.0], bandwidth=1e6, cores=4)
    limit = Limit(np.ones(6, np.bool_), np.ones(1, np.bool_), at_once=2.0)
    constraints = replace(Constraints.none(6, 1), limits=(limit,))
    for name in ("heft", "minmin", "round-robin"):
        plan = make(name).plan(Problem(program.graph, platform, constraints=constraints))
        assert plan.makespan == 3.0


def test_groups_choose_the_host_that_suits_all() -> None:
    """The small task of the group would finish first on the idle slow host; the large one needs the fast host."""
    problem = independent([100.0, 1.0, 90.0], [10.0, 1.0])
    joined = replace(problem.constraints, together=np.array([-1, 5, 5], np.int32))
    plan = make("minmin").plan(replace(problem, constraints=joined))
    assert plan.host.tolist()[1:] == [0, 0]


@pytest.mark.parametrize("name", ["heft", "cpop", "locality", "sufferage", "auto"])
def test_deadlines_are_met_or_named(name: str) -> None:
    met = 0
    for i, (program, platform) in enumerate(cases(30, seed=12, tasks=12)):
        witness = RoundRobin().plan(Problem(program.graph, platform))
        constraints = satisfied_by(witness, i, ("deadline", "before", "release"), share=0.8)
        plan, why = None, ""
        try:
            plan = make(name).plan(Problem(program.graph, platform, constraints=constraints))
        except NoPlan as refused:
            why = str(refused)
        if plan is None:
            assert "must finish by" in why
        else:
            assert check(program.graph, platform, plan) == []
            assert check_constraints(constraints, plan) == []
            met += 1
    assert met > 20


def test_no_constraint_changes_no_plan() -> None:
    """Constraints that allow everything: the second loop makes the plans of the first, to the bit."""
    for program, platform in cases(15, seed=13, tasks=14):
        none = Constraints.none(program.graph.n_tasks, len(platform.hosts))
        for name in ("heft", "locality", "minmin", "maxmin", "sufferage", "xsufferage", "sufferage2"):
            plain = make(name).plan(Problem(program.graph, platform))
            same = make(name).plan(Problem(program.graph, platform, constraints=none))
            assert np.array_equal(plain.host, same.host), (program.name, name)
            assert np.array_equal(plain.start, same.start)
            assert np.array_equal(plain.move_start, same.move_start)


def test_kinds_are_all_drawn() -> None:
    """The generator of the other tests reaches every field."""
    program, platform = next(iter(cases(1, seed=14, tasks=14)))
    made = satisfied_by(RoundRobin().plan(Problem(program.graph, platform)), 1, EVERY, share=2.0)
    assert len(made.limits) == 3
