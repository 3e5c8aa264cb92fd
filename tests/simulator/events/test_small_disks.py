"""Plans of grids with small disks and several places for results are carried out as planned."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.planners.coschedule.planner import Coschedule
from headrace.testing.invariants import judge
from headrace.testing.tiered_grid import tiered_grid
from simulator.made_plan import Made

ONCE = hr.SimulationConfig(hr.ReplanPolicy(replan="neither"))


def require_as_planned(jobs: int, seed: int) -> None:
    program, platform = tiered_grid(jobs, seed)
    plan = hr.plan(program, platform, Coschedule(time=0.5))
    run = hr.simulate(program, platform, Made(plan), ONCE)
    assert run.makespan <= plan.makespan * (1 + 1e-6)
    assert (run.executed.host == plan.host).all()
    assert judge(run) == []


@pytest.mark.parametrize("seed", range(4))
def test_disks_are_taken_up_in_planned_order(seed: int) -> None:
    require_as_planned(20, seed)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [40, 100])
@pytest.mark.parametrize("seed", range(10, 15))
def test_disks_are_taken_up_in_planned_order_on_larger_grids(jobs: int, seed: int) -> None:
    require_as_planned(jobs, seed)


def test_a_lost_host_does_not_stop_a_run_in_planned_order() -> None:
    program, platform = tiered_grid(20, 1)
    plan = hr.plan(program, platform, Coschedule(time=0.5))
    lost = plan.platform.hosts[int(plan.host[np.argsort(plan.start)[10]])].name
    for replan in ("both", "neither"):
        config = hr.SimulationConfig(hr.ReplanPolicy(replan=replan), faults=f"kill={lost}@30%")
        run = hr.simulate(program, platform, Coschedule(time=0.3), config)
        assert run.makespan >= plan.bound * (1 - 1e-9)
        assert (run.executed.finish > 0).all()


def test_results_are_delivered_where_the_plan_does() -> None:
    program = hr.Program("two places")
    made = program.task(None, work=10.0, outputs={"result": 1e9}, name="make")
    program.output(made, sites=["far", "near"])
    far, near = (
        hr.Site(name, (hr.Host(f"{name}1", speed),), uplink=1e6)
        for name, speed in (("far", 1.0), ("near", 9.0))
    )
    platform = hr.Platform((far, near), contention="fifo", origin="far")
    plan = hr.plan(program, platform, "coschedule")
    run = hr.simulate(program, platform, Made(plan), ONCE)
    assert run.makespan == pytest.approx(plan.makespan)
    assert len(run.executed.move_item) == len(plan.move_item) == 0
