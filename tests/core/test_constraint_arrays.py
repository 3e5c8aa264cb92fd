"""Constraints in the coordinator: stealing, duplicates, and limits on tasks at once, also in queues of workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.core.coordinator import Coordinator
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan import Replan
from headrace.core.scheduler import Assign
from headrace.model.constraints import Constraints, Limit
from headrace.model.events import Started, TaskFinished
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.list.heft import Heft
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.check_constraints import check_constraints
from headrace.testing.wild import Wild

TWO = Platform(sites=(Site("a", hosts=(Host("a1", 1.0), Host("a2", 1.0))),), name="two")
"""Two hosts that share storage."""


def tasks(count: int) -> Graph:
    return make_graph(work=[4.0] * count, size=[], producer=[], read_ptr=[0] * (count + 1), reads=[])


class AllOnFirst:
    """Puts every task on the first host; the coordinator may steal or duplicate."""

    name = "all-on-first"
    wake = Wild(0).wake

    def __init__(self, constraints: Constraints | None = None) -> None:
        self.constraints = constraints

    def react(self, view, events):  # type: ignore[no-untyped-def]
        names = view.graph.task_names
        return [Assign(names[t], view.platform.hosts[0].name, float(t)) for t in view.ready().tolist()]


def pinned(count: int, which: list[int]) -> Constraints:
    """Some tasks may run only on the first host."""
    number = np.zeros(count, np.int32)
    number[which] = 1
    rows = np.array([[True, True], [True, False]])
    return replace(Constraints.none(count, 2), allowed=rows, allowed_class=number)


STEAL = ExecutionPolicy(steal=True)


def test_without_constraints_the_idle_host_steals() -> None:
    run = simulate_scheduler(tasks(4), TWO, AllOnFirst(), policy=STEAL)
    assert run.executed.host.tolist() == [0, 0, 1, 1]
    assert run.stolen == 2


def test_tasks_with_one_host_are_not_stolen() -> None:
    run = simulate_scheduler(tasks(4), TWO, AllOnFirst(pinned(4, [2, 3])), policy=STEAL)
    assert run.executed.host.tolist() == [0, 1, 0, 0]
    assert run.stolen == 1


def test_tasks_together_and_apart_are_not_stolen() -> None:
    none = Constraints.none(4, 2)
    together = replace(none, together=np.zeros(4, np.int32))
    assert simulate_scheduler(tasks(4), TWO, AllOnFirst(together), policy=STEAL).stolen == 0
    apart = replace(none, apart=(np.array([2, 3], np.int32),))
    run = simulate_scheduler(tasks(4), TWO, AllOnFirst(apart), policy=STEAL)
    assert run.executed.host[2:].tolist() == [0, 0]
    assert run.stolen == 1


def test_tasks_are_not_stolen_by_a_host_with_a_limit_on_them() -> None:
    limit = Limit(np.array([False, True, True, True]), np.array([False, True]), count=0)
    run = simulate_scheduler(
        tasks(4), TWO, AllOnFirst(replace(Constraints.none(4, 2), limits=(limit,))), policy=STEAL
    )
    assert run.executed.host.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("free", [True, False])
def test_a_task_with_one_host_is_not_duplicated(free: bool) -> None:
    late = tasks(2).with_work(np.array([40.0, 1.0]))
    scheduler = AllOnFirst(pinned(2, [] if free else [0, 1]))
    run = simulate_scheduler(
        tasks(2), TWO, scheduler, real=late, policy=ExecutionPolicy(duplicate=True, steal=True)
    )
    assert (run.duplicates + run.stolen > 0) == free


def test_a_limit_at_once_holds_queued_tasks_back() -> None:
    limit = Limit(np.ones(4, np.bool_), np.ones(2, np.bool_), at_once=1)
    constraints = replace(Constraints.none(4, 2), limits=(limit,))
    platform = Platform(sites=(Site("a", hosts=(Host("a1", 1.0, cores=2), Host("a2", 1.0))),), name="wide")
    run = simulate_scheduler(tasks(4), platform, AllOnFirst(constraints))
    assert check_constraints(constraints, run.executed) == []
    assert run.makespan == 16.0
    assert simulate_scheduler(tasks(4), platform, AllOnFirst()).makespan == 8.0


def test_workers_with_queues_are_told_as_many_as_the_limit() -> None:
    limit = Limit(np.array([True, True, True, False]), np.ones(2, np.bool_), at_once=1)
    scheduler = Replan(Heft())
    scheduler.obey(replace(Constraints.none(4, 2), limits=(limit,)))
    coordinator = Coordinator(scheduler, tasks(4), TWO, workers_queue=True)
    answer = coordinator.handle([Started(0.0)])
    told: list[str] = []
    while True:
        new = [c for c in answer if isinstance(c, Assign)]
        told += [c.task for c in new]
        counted = [c for c in new if c.task != "t3"]
        assert len(counted) <= 1
        if not counted:
            break
        coordinator.validate_state()
        now = 4.0 * len(told)
        answer = coordinator.handle([TaskFinished(now, counted[0].task, counted[0].host, now - 4.0)])
    assert sorted(told) == sorted(coordinator.view.graph.task_names)
