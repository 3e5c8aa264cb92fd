"""Plans for fair links whose transfers take turns: hardly longer than on fifo links, in replay and in a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.formats.plan_json import read_plan, write_plan
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.plan import Plan
from headrace.planners.registry import make
from headrace.planners.search.best import Best
from headrace.planners.search.restarts import carried_out_in_turn, taking_turns
from headrace.simulator.replay.replay import replay
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

FEW = settings(max_examples=25, deadline=None)


def fair_problem(seed: int, tasks: int = 20) -> Problem:
    """A program with so much data that links are busy."""
    graph = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)]).graph
    network, origin = NETWORKS[1 + seed % (len(NETWORKS) - 1)], ORIGINS[seed % 3]
    platform = random_platform(seed, network, contention="fair", hosts=4, origin=origin)
    return Problem(graph.with_fields(size=20 * graph.size), platform)


def in_turn(problem: Problem, scheduler: str = "heft") -> Plan:
    return carried_out_in_turn(make(scheduler).plan(taking_turns(problem)), problem)


@FEW
@given(st.integers(0, 10_000))
def test_a_fifo_plan_in_turns_is_valid_on_fair_links_and_hardly_longer(seed: int) -> None:
    problem = fair_problem(seed)
    plan = in_turn(problem)
    fifo = make("heft").plan(taking_turns(problem))
    assert plan.makespan <= 1.1 * fifo.makespan
    assert check(problem.graph, problem.platform, plan) == []
    assert replay(plan).makespan == pytest.approx(plan.makespan, rel=1e-9)
    assert np.allclose(replay(plan).move_start, plan.move_start, rtol=1e-9, atol=1e-9)


def test_turns_matter() -> None:
    """Without turns, all transfers share the links at once, and some plans take longer."""
    longer = 0
    for seed in range(20):
        plan = in_turn(fair_problem(seed))
        longer += replay(replace(plan, in_turn=False)).makespan > plan.makespan * 1.001
    assert longer >= 2


def test_a_run_carries_out_the_turns_of_a_plan() -> None:
    for seed in range(12):
        problem = fair_problem(seed, tasks=25)
        made = in_turn(problem)
        run = hr.simulate(problem.graph, problem.platform, _Given(made))
        assert run.makespan == pytest.approx(made.makespan, rel=0.02), f"seed {seed}"


@pytest.mark.parametrize("seed", [5, 19, 34])
def test_without_turns_a_run_sends_inputs_as_far_ahead_as_planned(seed: int) -> None:
    """On hosts of several cores: as many tasks ahead for each core, in planner and run."""
    graph = random_program(seed, tasks=60, shape=SHAPES[seed % len(SHAPES)]).graph
    network, origin = NETWORKS[1 + seed % (len(NETWORKS) - 1)], ORIGINS[seed % 3]
    platform = random_platform(seed, network, contention="fair", hosts=5, origin=origin)
    planner = _Recorded()
    run = hr.simulate(graph.with_fields(size=10 * graph.size), platform, planner)
    assert planner.problem is not None
    assert planner.problem.prefetch_depth == 2
    assert not planner.made.in_turn
    assert run.makespan == pytest.approx(planner.made.makespan, rel=0.005)


class _Recorded:
    """HEFT; the problem and its plan are kept."""

    name = "recorded"
    problem: Problem | None = None
    made: Plan

    def plan(self, problem: Problem) -> Plan:
        self.problem, self.made = problem, make("heft").plan(problem)
        return self.made


class _Given:
    """A planner with one plan."""

    name = "given"

    def __init__(self, made: Plan) -> None:
        self.made = made

    def plan(self, problem: Problem) -> Plan:
        return self.made


@pytest.mark.parametrize("scheduler", ["auto", "restarts", "best"])
def test_on_fair_links_plans_are_no_longer_than_on_fifo_links(scheduler: str) -> None:
    options = {"time": 0.1} if scheduler == "best" else {}
    for seed in range(4):
        problem = fair_problem(seed, tasks=30)
        fifo = make(scheduler, **options).plan(taking_turns(problem))
        fair = make(scheduler, **options).plan(problem)
        assert check(problem.graph, problem.platform, fair) == []
        assert fair.makespan <= 1.01 * fifo.makespan


def test_a_plan_file_keeps_turns(tmp_path: Path) -> None:
    problem = fair_problem(3)
    plan = in_turn(problem)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", problem.graph, problem.platform).in_turn
    write_plan(replace(plan, in_turn=False), tmp_path / "plan.json")
    assert not read_plan(tmp_path / "plan.json", problem.graph, problem.platform).in_turn


def test_turns_and_prefetching_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="prefetch_depth"):
        replay(in_turn(fair_problem(3)), prefetch_depth=1)


def test_best_on_fair_links_tells_only_what_it_can_promise() -> None:
    problem = fair_problem(7, tasks=40)
    heard: list[float] = []
    plan = Best(time=0.2, tell=lambda seconds, makespan, bound: heard.append(makespan)).plan(problem)
    assert heard == sorted(heard, reverse=True)
    assert plan.makespan == pytest.approx(heard[-1])
