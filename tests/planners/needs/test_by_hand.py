"""Memory and named resources of hosts: cases computed by hand, and tasks that fit on no host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check, require_valid
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.planners.bounds import lower_bound
from headrace.planners.list.heft import Heft
from headrace.planners.registry import ENTRIES
from headrace.planners.timed import plan_with_bound

from .cases import one_host, program_of

PLANNERS = [entry.name for entry in ENTRIES if entry.module.startswith("headrace.planners.")]
ONLINE = [entry.name for entry in ENTRIES if entry.module.startswith("headrace.online.")]


def options(name: str) -> dict[str, float]:
    return {"time": 0.2} if name in ("best", "coschedule") else {}


@pytest.mark.parametrize("name", [*PLANNERS, *ONLINE])
@pytest.mark.parametrize(
    ("tasks", "platform", "makespan"),
    [
        (((4.0, 6.0, 0), (3.0, 5.0, 0)), one_host(4, 10.0), 7.0),  # one after the other
        (((4.0, 6.0, 0), (4.0, 4.0, 0)), one_host(4, 10.0), 4.0),  # just enough for both
        (
            ((4.0, 0.0, 1), (3.0, 0.0, 1), (2.0, 0.0, 0)),
            one_host(4, gpu=1),
            7.0,
        ),  # one GPU; the third needs none
        (((4.0, 0.0, 2), (2.0, 0.0, 1), (2.0, 0.0, 1)), one_host(4, gpu=2), 6.0),
        (((3.0, 9.0, 0), (3.0, 1.0, 1), (3.0, 9.0, 1)), one_host(4, 10.0, gpu=1), 6.0),  # both kinds at once
        (((3.0, 9.0, 0), (3.0, 9.0, 0)), one_host(4), 3.0),  # a memory that is not given is unlimited
    ],
)
def test_what_tasks_need_is_held_together(
    name: str, tasks: tuple[tuple[float, float, int], ...], platform: Platform, makespan: float
) -> None:
    program = program_of(*tasks)
    plan = hr.plan(program, platform, name, **options(name))
    require_valid(program.graph, platform, plan)
    assert plan.makespan == pytest.approx(makespan)


@pytest.mark.parametrize("name", [*PLANNERS, *ONLINE])
def test_tasks_go_where_they_fit(name: str) -> None:
    """The fast host has neither enough memory nor a GPU."""
    lab = Platform(
        (
            Site(
                "a",
                (Host("fast", 9.0, 4, memory=4.0), Host("slow", 1.0, 4, memory=8.0, resources={"gpu": 1})),
            ),
        )
    )
    program = program_of((2.0, 5.0, 0), (2.0, 1.0, 1), (2.0, 4.0, 0))
    plan = hr.plan(program, lab, name, **options(name))
    assert [lab.hosts[h].name for h in plan.host[:2]] == ["slow", "slow"]


@pytest.mark.parametrize("name", [*PLANNERS, *ONLINE])
@pytest.mark.parametrize(
    ("task", "platform", "said"),
    [
        ((1.0, 2e9, 0), one_host(4, 1e9), "'t1' needs 2 GB of memory, but no host has more than 1 GB"),
        ((1.0, 0.0, 2), one_host(4, gpu=1), "'t1' needs 2 of 'gpu', but no host has more than 1"),
        ((1.0, 0.0, 1), one_host(4), "'t1' needs 1 of 'gpu', but no host has more than 0"),
    ],
)
def test_a_task_that_fits_on_no_host(
    name: str, task: tuple[float, float, int], platform: Platform, said: str
) -> None:
    with pytest.raises(NoPlan, match=said):
        hr.plan(program_of((1.0, 0.0, 0), task), platform, name, **options(name))


def test_a_task_whose_needs_are_on_different_hosts() -> None:
    lab = Platform((Site("a", (Host("x", memory=8.0), Host("y", memory=1.0, resources={"gpu": 1}))),))
    with pytest.raises(
        NoPlan, match="'t0' needs 5 B of memory, 1 of 'gpu', 1 cores, but no host has all of it"
    ):
        hr.plan(program_of((1.0, 5.0, 1)), lab)


def test_a_planner_that_ignores_needs_keeps_its_hosts_and_order() -> None:
    """A planner of a user: its plan is made again, with room for every task."""

    class Ignorant:
        name = "ignorant"

        def plan(self, problem: Problem) -> Plan:
            graph = problem.graph.with_fields(needs=type(problem.graph.needs)((), np.zeros((0, 0))))
            return replace(
                Heft().plan(Problem(graph, problem.platform)), graph=problem.graph, scheduler=self.name
            )

    program, lab = program_of((4.0, 6.0, 0), (3.0, 5.0, 0), (1.0, 1.0, 0)), one_host(4, 10.0)
    careless = Ignorant().plan(Problem(program.graph, lab))
    assert {v.rule for v in check(program, lab, careless)} == {"memory"}
    plan = plan_with_bound(Ignorant(), Problem(program.graph, lab))
    require_valid(program.graph, lab, plan)
    assert plan.scheduler == "ignorant"
    assert plan.makespan == 7.0


def test_the_bound_knows_memory_and_resources() -> None:
    program = program_of(*[(3.0, 5.0, 0)] * 4)
    bound = lower_bound(Problem(program.graph, one_host(8, 10.0)))
    assert (float(bound), bound.name) == (6.0, "memory over hosts")
    program = program_of(*[(3.0, 0.0, 1)] * 4)
    bound = lower_bound(Problem(program.graph, one_host(8, gpu=2)))
    assert (float(bound), bound.name) == (6.0, "gpu over hosts")


def test_needs_that_never_bind_change_nothing() -> None:
    """Where all tasks of a host fit at once, planners are called as if tasks needed nothing."""
    program = program_of(*[(3.0, 5.0, 0)] * 4)
    assert Problem(program.graph, one_host(2, 10.0)).constraints is None
    assert Problem(program.graph, one_host(3, 10.0)).constraints is not None
