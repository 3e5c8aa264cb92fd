"""Plans made in the middle of a run: hosts are busy, data is on its way, links are shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench.generated.sweeps import sweep

from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.planners.registry import make
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program

PLANNERS = ("heft", "minmin", "sufferage", "xsufferage", "coschedule")


@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
@pytest.mark.parametrize("name", PLANNERS)
def test_nothing_starts_on_a_busy_host_or_before_its_data_is_there(name: str, contention: str) -> None:
    program, platform = sweep(24, 5, 2, seed=1)
    platform = replace(platform, contention=contention)  # type: ignore[arg-type]
    graph, place = program.graph, platform.network.host_place
    item = int(np.argmax(np.diff(graph.reader_ptr)))
    target, origin = int(place[0]), platform.network.origin
    problem = Problem(
        graph,
        platform,
        holders={item: (target, origin)},
        free_at={0: 500.0, 3: 70.0},
        since={(item, target): 400.0},
    )
    plan = make(name, **({"time": 0.2} if name == "coschedule" else {})).plan(problem)
    assert plan.start[plan.host == 0].min(initial=500.0) >= 500.0
    assert plan.start[plan.host == 3].min(initial=70.0) >= 70.0
    if name != "coschedule":  # which takes data on its way for being there
        readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]]
        there = readers[place[plan.host[readers]] == target]
        assert plan.start[there].min(initial=400.0) >= 400.0
        assert not (plan.move_target[plan.move_item == item] == target).any()


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_with_exact_estimates_plans_come_true(contention: str) -> None:
    """The interval of S2 then only grows: few plans are made, and the run is about as long as the first plan says."""
    program, platform = sweep(400, 8, 2, seed=2)
    platform = replace(platform, contention=contention)  # type: ignore[arg-type]
    first = make("sufferage").plan(Problem(program.graph, platform))
    setting = SimulationConfig(policy=ReplanPolicy(interval=first.makespan / 40))
    run = simulate_program(program, platform, "sufferage", setting)
    assert run.plans <= 13  # 1.25 ** 11 > 10; forty and more if it shrank
    assert run.makespan == pytest.approx(first.makespan, rel=0.03)
