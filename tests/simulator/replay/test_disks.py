"""Replays keep limited disks: copies begin in the planned order, after what leaves them room."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.graph import make_graph
from headrace.model.plan import Plan
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.simulator.replay.plan_replay import replay_plan
from headrace.simulator.replay.replay import Replayer, replay
from planners.coschedule.cases import rich_case, small_case

PLATFORM = """
contention = "fifo"
routing = "links"
[[site]]
name = "hub"
[[site]]
name = "s1"
storage = 30
[[site.host]]
name = "h1"
cores = 2
[[link]]
from = "hub"
to = "s1"
bandwidth = 10
"""
TASKS = """name,duration,input_size,sources
a,10,20,hub
b,10,20,hub
c,10,20,hub
"""


def with_storage(plan: Plan, storage: float) -> Plan:
    """The same plan where all disks are that large."""
    sites = tuple(replace(site, storage=storage) for site in plan.platform.sites)
    return replace(plan, platform=replace(plan.platform, sites=sites))


def test_inputs_wait_for_room_on_the_disk(tmp_path: Path) -> None:
    """The disk has room for one input: none comes before the task with the one before it has finished."""
    (tmp_path / "jobs.csv").write_text(TASKS)
    (tmp_path / "site.toml").write_text(PLATFORM)
    program, platform = hr.Program.read(tmp_path / "jobs.csv"), hr.Platform.read(tmp_path / "site.toml")
    plan = hr.plan(program, platform, "coschedule", time=2)
    happened = hr.replay(plan)
    assert plan.makespan == plan.bound == happened.makespan == 36.0
    assert hr.check(program, platform, happened.executed) == []
    longer = replay_plan(plan, error=0.3, seed=1).executed
    assert np.all(np.sort(longer.move_start)[1:] >= np.sort(longer.finish)[:-1])


def tight_plans(contention: Contention) -> Iterator[Plan]:
    for seed in range(40):
        program, platform = small_case(seed, tight=True) if seed % 2 else rich_case(seed)
        try:
            yield hr.plan(program, replace(platform, contention=contention), "coschedule", time=0.5)
        except NoPlan:  # a disk of a few cases is too small
            continue


@pytest.mark.parametrize("contention", ["fifo", pytest.param("fair", marks=pytest.mark.slow)])
def test_replays_hold_no_more_than_the_disks_have(contention: Contention) -> None:
    plans = restricted = 0
    for plan in tight_plans(contention):
        graph, platform, where = plan.graph, plan.platform, plan.graph.name
        assert check(graph, platform, plan) == [], where
        happened = replay_plan(plan)
        assert happened.makespan <= plan.makespan + 1e-6, where
        assert check(graph, platform, happened.executed) == [], where
        for seed in range(3):
            executed = replace(replay_plan(plan, error=0.3, seed=seed).executed, bound=0.0)
            broken = check(executed.graph, platform, executed)
            assert [v for v in broken if v.rule != "deadline"] == [], where
        roomy = replace(replay(with_storage(plan, math.inf)), platform=platform)
        restricted += check(graph, platform, roomy) != [] or roomy.makespan < happened.makespan - 1e-6
        plans += 1
    assert plans > 30
    assert restricted > 3


def test_disks_that_no_plan_could_fill_change_nothing() -> None:
    for seed in range(8):
        program, platform = small_case(seed, tight=False)
        plan = hr.plan(program, platform, "coschedule", time=0.5)
        stored = 2 * float(plan.graph.size.sum())
        free, limited = Replayer.of(plan).depends, Replayer.of(with_storage(plan, stored)).depends
        assert all(np.array_equal(a, b) for a, b in zip(free, limited, strict=True))


def _two_inputs(storage: float, contention: Contention) -> Plan:
    """Two tasks on a core, each with an input of 10 bytes from the origin; that of the second is sent first."""
    graph = make_graph(
        work=[4.0, 4.0], size=[10.0, 10.0], producer=[-1, -1], read_ptr=[0, 1, 2], reads=[0, 1]
    )
    sites = (Site("s", (Host("h"),), uplink=10.0, storage=storage), Site("origin"))
    return Plan(
        graph, Platform(sites, contention=contention, origin="origin"), "by hand",
        host=np.zeros(2, np.int32), core=np.zeros(2, np.int32), start=np.array([2.0, 6.0]),
        finish=np.array([6.0, 10.0]), move_item=np.array([0, 1], np.int32),
        move_source=np.ones(2, np.int32), move_target=np.zeros(2, np.int32),
        move_start=np.array([1.0, 0.0]), move_finish=np.array([2.0, 1.0]),
    )  # fmt: skip


def test_inputs_that_are_called_for_do_not_wait_for_those_that_are_not() -> None:
    """With inputs sent one task ahead, the second is called for by the first task: it cannot come first."""
    plan = _two_inputs(19.0, "none")
    assert replay(plan, prefetch_depth=1).move_start.tolist() == [0.0, 1.0]
    assert replay(plan, prefetch_depth=2).move_start.tolist() == [0.0, 0.0]


def test_tasks_without_duration_take_turns_on_a_disk() -> None:
    """Two pairs of tasks that make and read a file; the disk has room for one file."""
    graph = make_graph(
        work=[0.0, 0.0, 0.0, 0.0], size=[10.0, 10.0], producer=[0, 2], read_ptr=[0, 0, 1, 1, 2], reads=[0, 1]
    )
    platform = Platform((Site("s", (Host("h", cores=2),), storage=10.0),))
    zeros = np.zeros(4)
    plan = Plan(
        graph, platform, "by hand", host=np.zeros(4, np.int32), core=np.array([0, 0, 1, 1], np.int32),
        start=zeros, finish=zeros, move_item=np.zeros(0, np.int32), move_source=np.zeros(0, np.int32),
        move_target=np.zeros(0, np.int32), move_start=np.zeros(0), move_finish=np.zeros(0),
    )  # fmt: skip
    assert replay(plan).makespan == 0.0
    happened = replay(plan, work=np.ones(4))
    assert happened.start.tolist() == [0.0, 1.0, 2.0, 3.0]
