"""A planner as a scheduler: when it plans, and how a plan becomes assignments."""

from __future__ import annotations

import numpy as np

from headrace.core.coordinator import Coordinator
from headrace.core.replan import Replan
from headrace.core.scheduler import Assign, Problem, assignments_of
from headrace.model.events import DataMoved, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Platform
from headrace.model.program import Program


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


LAB = Platform.pairwise([1.0, 1.0], bandwidth=1.0)


def test_assignments_follow_the_planned_starts():
    plan = backwards(Problem(three().graph, LAB))
    assert assignments_of(plan) == [
        Assign("c", "h1", 0),
        Assign("b", "h1", 1),
        Assign("a", "h1", 2),
    ]


def test_a_planner_is_asked_at_the_start_and_when_hosts_come_or_go():
    planner = Backwards()
    coordinator = Coordinator(Replan(planner), three().graph, LAB)
    assert coordinator.scheduler.name == "backwards"
    assert [a.task for a in coordinator.handle([Started(0.0)])] == ["c", "b", "a"]
    assert coordinator.handle([TaskFinished(1.0, "c", "h1", 0.0)]) == []
    assert coordinator.handle([DataMoved(1.0, "c.out", "h1", "h0", 0.5, 1.0)]) == []
    assert coordinator.handle([TaskErred(1.0, "a", "h0", "boom")]) == []
    assert len(planner.problems) == 1
    assert coordinator.handle([HostLeft(2.0, "h1")]) == [Assign("b", "h0", 0), Assign("a", "h0", 1)]
    assert planner.problems[1].holders == {2: (0,)}
    assert [a.host for a in coordinator.handle([HostJoined(3.0, "h1")])] == ["h1", "h1"]
    assert len(planner.problems) == 3
