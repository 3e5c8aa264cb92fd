"""Carrying plans out: times follow from the decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import BadPlan, UsageError
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.list.heft import Heft
from headrace.simulator.replay.plan_replay import replay_plan
from headrace.simulator.replay.replay import replay
from headrace.testing.generate import cases


def test_what_happens_under_errors_is_a_valid_plan_for_the_drawn_run_times() -> None:
    changed = 0
    for program, platform in cases(75, seed=5):
        plan = Heft().plan(Problem(program.graph, platform))
        outcome = replay_plan(plan, error=0.5, seed=3)
        happened = replace(outcome.executed, bound=0.0)
        assert check(happened.graph, platform, happened) == []
        changed += outcome.makespan != plan.makespan
    assert changed > 50


def test_the_same_seed_gives_the_same_times_and_another_seed_others() -> None:
    program, platform = next(cases(1, seed=1))
    plan = Heft().plan(Problem(program.graph, platform))
    first, again = replay_plan(plan, error=0.3, seed=1), replay_plan(plan, error=0.3, seed=1)
    assert np.array_equal(first.executed.finish, again.executed.finish)
    assert not np.array_equal(first.executed.finish, replay_plan(plan, error=0.3, seed=2).executed.finish)


def test_longer_work_never_ends_earlier_without_contention() -> None:
    for program, platform in cases(40, seed=9):
        if platform.contention == "fair":
            continue
        plan = Heft().plan(Problem(program.graph, platform))
        longer = replay(plan, work=program.graph.work * 1.5)
        assert np.all(longer.finish >= plan.finish - 1e-9)


def test_fair_links_worked_out_by_hand() -> None:
    """Two transfers leave one port of 10 B/s: 20 and 60 bytes share it until the first has gone."""
    graph = make_graph(
        work=[0.0, 1.0, 1.0], size=[20.0, 60.0], producer=[0, 0], read_ptr=[0, 0, 1, 2], reads=[0, 1]
    )
    hosts = tuple(Host(f"h{i}") for i in range(3))
    platform = Platform((Site("lab", hosts, bandwidth=10.0),), contention="fair")
    plan = Heft().plan(Problem(graph, platform))
    spread = replace(
        plan,
        host=np.array([0, 1, 2], np.int32),
        move_item=np.array([0, 1], np.int32),
        move_source=np.array([0, 0], np.int32),
        move_target=np.array([1, 2], np.int32),
        move_start=np.zeros(2),
        move_finish=np.zeros(2),
    )
    happened = replay(spread)
    assert happened.move_finish.tolist() == pytest.approx([4.0, 8.0])
    assert happened.finish.tolist() == pytest.approx([0.0, 5.0, 9.0])


def test_a_plan_without_a_needed_transfer_is_refused() -> None:
    graph = make_graph(work=[1.0, 1.0], size=[5.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
    plan = Heft().plan(Problem(graph, Platform.pairwise([1.0, 1.0], 10.0)))
    apart = replace(plan, host=np.array([0, 1], np.int32))
    with pytest.raises(BadPlan, match="'d0' is needed at 'h1'"):
        replay(apart)


def test_error_must_be_a_share() -> None:
    program = hr.Program()
    program.task(None)
    plan = hr.plan(program, Platform.pairwise([1.0], 1.0), "heft")
    with pytest.raises(UsageError, match=r"error is 1\.5"):
        hr.replay(plan, error=1.5)
