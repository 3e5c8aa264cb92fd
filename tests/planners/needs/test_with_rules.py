"""Needs and rules together: both are kept, and needs stay when rules are left out."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check, require_valid
from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.need_limits import with_needs
from headrace.model.platform import Host, Platform, Site
from headrace.rules.relations import Relations

from .cases import program_of

LAB = Platform(
    (
        Site(
            "a",
            (
                Host("x", 4.0, 4, memory=8.0, resources={"gpu": 1}),
                Host("y", 2.0, 4, memory=6.0, resources={"gpu": 1}),
                Host("z", 1.0, 4, memory=8.0),
            ),
        ),
    )
)
PROGRAM = program_of((4.0, 5.0, 0), (4.0, 5.0, 1), (4.0, 5.0, 0), (4.0, 1.0, 1), (4.0, 7.0, 0))


@pytest.mark.parametrize(
    "name", ["heft", "minmin", "auto", "best", "search", "coschedule", "lheft", "workqueue", "dheft"]
)
def test_rules_and_needs_are_both_kept(name: str) -> None:
    """Not on the fastest host: what needs a GPU must go to the second, the largest to the slowest."""
    options = {"time": 0.5} if name in ("best", "coschedule", "search") else {}
    plan = hr.plan(PROGRAM, LAB, name, rules=hr.rules.avoid("x"), **options)
    require_valid(PROGRAM.graph, LAB, plan)
    assert [LAB.hosts[plan.host[t]].name for t in (1, 3, 4)] == ["y", "y", "z"]
    assert 0 not in plan.host


@pytest.mark.parametrize("scheduler", ["lheft", "workqueue", "heft"])
def test_simulated_runs_keep_both(scheduler: str) -> None:
    run = hr.simulate(PROGRAM, LAB, scheduler, rules=hr.rules.avoid("x"))
    assert not check(PROGRAM, LAB, run.executed)
    assert 0 not in run.executed.host


def test_rules_that_leave_no_host_with_room() -> None:
    with pytest.raises(NoPlan):
        hr.plan(PROGRAM, LAB, "heft", rules=[hr.rules.avoid("x"), hr.rules.avoid("z")])


def test_needs_stay_when_rules_are_left_out() -> None:
    graph, hosts = PROGRAM.graph, len(LAB.hosts)
    alone = with_needs(None, graph, LAB)
    assert alone is not None
    assert alone.needs == "all"
    assert alone.only(()).limits == alone.limits
    pinned = Constraints.none(graph.n_tasks, hosts)
    both = with_needs(pinned, graph, LAB)
    assert both is not None
    assert both.needs == "some"
    assert len(both.only(()).limits) == len(alone.limits)
    assert with_needs(both, graph, LAB) is both
    few = both.of_tasks(np.array([0, 4], np.int32), np.array([0, 2], np.int32))
    assert [
        limit.amount.tolist() for limit in few.limits if limit.need == "memory" and limit.hosts.any()
    ] == [[5.0, 7.0]] * 2


def test_the_memory_of_tasks_in_rules() -> None:
    column = Relations(PROGRAM.graph, LAB).column("task", "task-memory")
    assert column.values.tolist() == [5.0, 5.0, 5.0, 1.0, 7.0]
    none = Relations(program_of((1.0, 0.0, 0)).graph, LAB).column("task", "task-memory")
    assert not none.known.any()


def test_a_problem_says_so_once() -> None:
    problem = Problem(PROGRAM.graph, LAB)
    assert problem.constraints is not None
    assert problem.constraints.needs == "all"
    names = [limit.need for limit in problem.constraints.limits]
    assert sorted(names) == ["gpu", "gpu", "memory", "memory", "memory"]
