"""Own schedulers and planners by object and by `file.py:Class`: the same in a plan, a simulation and a real run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.scheduler import EVERY_EVENT, Assign, Problem
from headrace.core.view import RunView
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.events import Event
from headrace.model.plan import Plan
from headrace.planners.registry import make
from headrace.runtime.cluster import Cluster

from .tasks import finished, layered

SOURCE = '''
from headrace.core.scheduler import EVERY_EVENT, Assign
from headrace.planners.registry import make

class LastHost:
    """Ready tasks go to the last host that is there."""

    name = "last-host"
    wake = EVERY_EVENT

    def react(self, view, events):
        up = [host.name for host in view.platform.hosts if host.name not in view.down]
        return [Assign(view.graph.task_names[t], up[-1], t) for t in view.ready().tolist()]

class Mine:
    """A planner."""

    name = "mine"

    def plan(self, problem):
        return make("heft").plan(problem)

class Neither:
    name = "neither"

class Unasked:
    name = "unasked"

    def react(self, view, events):
        return []
'''


class FirstHost:
    """Ready tasks go to the first host that is there."""

    name = "first-host"
    wake = EVERY_EVENT

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        up = [host.name for host in view.platform.hosts if host.name not in view.down]
        return [Assign(view.graph.task_names[t], up[0], t) for t in view.ready().tolist()]


class Mine:
    """A planner."""

    name = "mine"

    def plan(self, problem: Problem) -> Plan:
        return make("minmin").plan(problem)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(SOURCE)
    return path


def chosen(kind: str, file: Path) -> Any:
    return {
        "object": FirstHost(),
        "file": f"{file}:LastHost",
        "planner object": Mine(),
        "planner file": f"{file}:Mine",
    }[kind]


KINDS = ("object", "file", "planner object", "planner file")
USED = {"object": {0}, "file": {2}}
LAB = hr.Platform.pairwise([1.0, 1.0, 1.0], bandwidth=1e6)


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_plan(kind: str, file: Path) -> None:
    program, _ = layered(4, 3, 0.5)
    plan = hr.plan(program, LAB, chosen(kind, file))
    assert check(program.graph, LAB, plan) == []
    assert 0 < plan.bound <= plan.makespan
    assert kind not in USED or set(plan.host.tolist()) == USED[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_simulation(kind: str, file: Path) -> None:
    program, _ = layered(4, 3, 0.5)
    run = hr.simulate(program, LAB, chosen(kind, file), hr.SimulationConfig(faults="kill=h1@1"))
    assert run.scheduler in ("first-host", "last-host", "mine")
    late = run.executed.start >= 1.0
    assert set(run.executed.host[late].tolist()) <= {0, 2}
    assert kind not in USED or set(run.executed.host.tolist()) == USED[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_real_run(kind: str, file: Path, cluster: Cluster, tmp_path: Path) -> None:
    program, answer = layered(4, 3, 0.0)
    record = tmp_path / "record"
    run = hr.run(program, cluster, chosen(kind, file), record=record, output=tmp_path)
    assert run.results == {"answer": answer}
    hosts = {e.host for e in finished(run.outcome.events)}
    names = [host.name for host in cluster.platform.hosts]
    assert kind not in USED or hosts == {names[h] for h in USED[kind]}


def test_the_plan_of_an_online_scheduler_is_what_it_does_when_nothing_changes() -> None:
    program, _ = layered(5, 4, 0.5)
    for name in ("lheft", "workqueue", "dheft"):
        plan, run = hr.plan(program, LAB, name), hr.simulate(program, LAB, name)
        assert plan.makespan == run.makespan
        assert plan.host.tolist() == run.executed.host.tolist()
        assert plan.scheduler == name


@pytest.mark.parametrize("call", [hr.plan, hr.simulate])
def test_what_is_neither_a_planner_nor_a_scheduler_is_refused(call: Any, file: Path) -> None:
    program, _ = layered(2, 2, 0.5)
    with pytest.raises(UsageError, match="neither a planner nor a scheduler"):
        call(program, LAB, f"{file}:Neither")


def test_a_scheduler_that_does_not_say_when_to_ask_it_is_refused(file: Path) -> None:
    program, _ = layered(2, 2, 0.5)
    with pytest.raises(UsageError, match="has no wake conditions"):
        hr.simulate(program, LAB, f"{file}:Unasked")
    with pytest.raises(UsageError, match="has no wake conditions"):
        hr.plan(program, LAB, f"{file}:Unasked")
