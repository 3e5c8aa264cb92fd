"""Which events a planner is asked about in a real run, and how a plan becomes assignments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import headrace as hr
from core.programs import Told
from headrace.core.coordinator import Coordinator
from headrace.core.replan import Replan
from headrace.core.scheduler import EVERY_EVENT, Assign, Problem, Scheduler
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.planners.registry import make
from headrace.runtime.warm_up import warm_up

LAB = Platform.pairwise([1.0, 1.0], bandwidth=1.0)


def backwards(problem: Problem) -> Plan:
    """All tasks on the last host, those with high numbers first."""
    n = problem.graph.n_tasks
    start = np.arange(n, dtype=np.float64)[::-1]
    host = np.full(n, len(problem.platform.hosts) - 1, np.int32)
    core = np.zeros(n, np.int32)
    return Plan(problem.graph, problem.platform, "backwards", host, core, start, start + 1, **NO_MOVES)


class Backwards:
    name = "backwards"

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def plan(self, problem: Problem) -> Plan:
        self.problems.append(problem)
        return backwards(problem)


def three() -> Program:
    program = Program()
    for name in "abc":
        program.task(name=name, outputs={f"{name}.out": 1.0})
    return program


def real_run(scheduler: Scheduler) -> Coordinator:
    """Workers with queues of their own."""
    return Coordinator(scheduler, three().graph, LAB, workers_queue=True)


def test_assignments_follow_the_planned_starts() -> None:
    answer = real_run(Replan(Backwards())).handle([Started(0.0)])
    assert answer == [Assign("c", "h1", 0), Assign("b", "h1", 1), Assign("a", "h1", 2)]


def test_a_planner_is_asked_at_the_start_and_when_hosts_come_or_go() -> None:
    planner = Backwards()
    coordinator = real_run(Replan(planner))
    assert coordinator.scheduler.name == "backwards"
    assert [a.task for a in coordinator.handle([Started(0.0)])] == ["c", "b", "a"]  # type: ignore[union-attr]
    assert coordinator.handle([TaskFinished(1.0, "c", "h1", 0.0)]) == []
    assert coordinator.handle([DataMoved(1.0, "c.out", "h1", "h0", 0.5, 1.0)]) == []
    assert len(planner.problems) == 1
    moved = coordinator.handle([HostLeft(2.0, "h1")])
    assert [(a.task, a.host) for a in moved] == [("b", "h0"), ("a", "h0")]  # type: ignore[union-attr]
    assert planner.problems[1].holders == {}, "nothing that is left reads what was made"
    assert coordinator.view.queue(0) == [1, 0]
    answer = coordinator.handle([HostJoined(3.0, "h1")])
    assert [(a.task, a.host) for a in answer] == [("a", "h1")], "b, which may have begun, stays"  # type: ignore[union-attr]
    assert len(planner.problems) == 3


def test_a_first_plan_is_carried_out_as_it_is() -> None:
    planner, graph = Backwards(), three().graph
    coordinator = real_run(Replan(planner, first=backwards(Problem(graph, LAB))))
    assert [a.task for a in coordinator.handle([Started(0.0)])] == ["c", "b", "a"]  # type: ignore[union-attr]
    assert planner.problems == []
    coordinator.handle([HostLeft(1.0, "h1")])
    assert len(planner.problems) == 1


def test_a_first_plan_is_not_used_if_a_host_of_it_is_missing() -> None:
    planner, graph = Backwards(), three().graph
    coordinator = real_run(Replan(planner, first=backwards(Problem(graph, LAB))))
    answer = coordinator.handle([HostLeft(0.0, "h1"), Started(0.0)])
    assert {a.host for a in answer} == {"h0"}  # type: ignore[union-attr]
    assert len(planner.problems) == 1


def test_a_task_that_erred_gets_a_host_again() -> None:
    """By a planner as well: the task is ready and no host has it."""
    coordinator = real_run(Replan(Backwards()))
    coordinator.handle([Started(0.0)])
    answer = coordinator.handle([TaskErred(1.0, "c", "h1", "boom")])
    assert coordinator.view.queue(1) != []
    assert [a.task for a in answer] in (["c"], [])  # type: ignore[union-attr]


class Own:
    """Everything to one host; counts how often it is asked."""

    name = "own"
    wake = EVERY_EVENT

    def __init__(self, host: str) -> None:
        self.host, self.asked = host, 0

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        self.asked += 1
        return [Assign(name, self.host, k) for k, name in enumerate(view.graph.task_names)]


@pytest.mark.parametrize("name", ["lheft", "dheft", "workqueue", "minmin"])
def test_warming_up_leaves_the_scheduler_as_it_was(name: str) -> None:
    scheduler, same = make_scheduler(name), make_scheduler(name)
    warm_up(scheduler)
    answers = [real_run(each).handle([Started(0.0)]) for each in (scheduler, same)]
    assert answers[0] == answers[1]
    assert answers[0]


def test_warming_up_keeps_the_plan_that_was_made_first() -> None:
    program = three()
    scheduler = Replan(make("heft"), first=hr.plan(program, LAB, "heft"))
    warm_up(scheduler)
    assert scheduler.first is not None
    assert scheduler.plans == 0


def test_own_schedulers_see_no_program_but_theirs() -> None:
    own = Own("h0")
    warm_up(own)
    assert own.asked == 0


def test_without_hosts_the_scheduler_is_asked_when_one_is_there_again() -> None:
    own = Own("h0")
    coordinator = real_run(own)
    coordinator.handle([Started(0.0)])
    coordinator.handle([HostLeft(1.0, "h0")])
    asked = own.asked
    assert coordinator.handle([HostLeft(2.0, "h1")]) == []
    assert coordinator.handle([TaskFinished(2.5, "a", "h0", 0.0)]) == []  # too late: it was lost
    assert own.asked == asked
    assert [a.task for a in coordinator.handle([HostJoined(3.0, "h0")])] == ["a", "b", "c"]  # type: ignore[union-attr]


def test_what_happened_while_there_was_no_host_is_told_later() -> None:
    told = Told()
    coordinator = real_run(told)
    lost = [HostLeft(1.0, "h0"), HostLeft(1.0, "h1")]
    coordinator.handle(lost)
    assert told.seen == []
    coordinator.handle([HostJoined(3.0, "h0")])
    assert told.seen == [(3.0, [*lost, HostJoined(3.0, "h0")])]


def test_hosts_that_do_not_exist_are_refused() -> None:
    with pytest.raises(NoPlan, match="'a' was assigned to host 'nowhere', which does not exist"):
        real_run(Own("nowhere")).handle([Started(0.0)])
