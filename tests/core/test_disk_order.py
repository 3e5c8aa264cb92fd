"""Tasks and transfers take up limited storage in planned order; a plan is executed as it is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import headrace as hr

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "tests" / "formats" / "data" / "srasearch-chameleon-30a-001.json.gz"


def one_wide_host() -> tuple[hr.Program, hr.Platform]:
    """Tasks of different lengths that start at the same moment where storage is limited, and a long one elsewhere."""
    program = hr.Program("ties")
    for number, work in enumerate((4.0, 3.0, 2.0, 1.0)):
        program.task(None, outputs={f"made{number}": "1 MB"}, work=work)
    program.task(None, outputs={"late": "1 MB"}, work=400.0, kind="long")
    wide = hr.Site("wide", (hr.Host("w", cores=4),), bandwidth="1 GB/s", storage="4.5 MB", uplink="1 GB/s")
    other = hr.Site("other", (hr.Host("o", kinds={"long": 100.0}),), bandwidth="1 GB/s", uplink="1 GB/s")
    return program, hr.Platform((wide, other), contention="fifo")


@pytest.mark.parametrize("scheduler", ["heft", "minmin", "maxmin"])
def test_tasks_that_start_together_are_not_held_back(scheduler: str) -> None:
    program, platform = one_wide_host()
    plan = hr.plan(program, platform, scheduler)
    assert hr.check(program, platform, plan) == []
    assert hr.simulate(program, platform, scheduler).makespan == pytest.approx(plan.makespan)


@pytest.mark.parametrize("scheduler", ["heft", "minmin"])
def test_a_recorded_workflow_takes_as_long_as_planned(scheduler: str) -> None:
    lab = ROOT / "examples" / "lab.toml"
    plan = hr.plan(WORKFLOW, lab, scheduler)
    assert hr.check(WORKFLOW, lab, plan) == []
    assert hr.simulate(WORKFLOW, lab, scheduler).makespan == pytest.approx(plan.makespan)


def test_storage_that_cannot_fill_up_has_no_order() -> None:
    """With wrong run times, tasks may overtake each other there."""
    lab = hr.Platform.read(ROOT / "examples" / "lab.toml")
    free = hr.Platform(
        tuple(replace(site, storage=math.inf) for site in lab.sites),
        contention="fifo",
        origin=lab.origin,
        name="lab",
    )
    config = hr.SimulationConfig(error=0.2)
    with_limit, without = (
        hr.simulate(WORKFLOW, platform, "heft", config=config, seed=7).makespan for platform in (lab, free)
    )
    assert with_limit == without
