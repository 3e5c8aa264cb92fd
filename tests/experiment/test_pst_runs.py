"""Sweeps and grids from files in the simulator: tasks take their real time on each architecture, by the trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.formats.pst_grid import read_grid
from headrace.formats.pst_work import read_work
from headrace.model.behaviour import Trace
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program

DATA = Path(__file__).parents[1] / "formats" / "data" / "pst"
REAL = {0: (600, 500), 1: (600, 500), 3: (300, 200), 4: (500, 300), 9: (300, 200)}


@pytest.mark.parametrize("scheduler", ["minmin", "xsufferage", "workqueue"])
@pytest.mark.parametrize("estimates", ["user", "perfect", "forecast"])
def test_the_papers_example_runs_to_its_end(scheduler: str, estimates: str) -> None:
    program, grid = read_work(DATA / "sweep.pst"), read_grid(DATA / "grid.pst")
    run = simulate_program(program, grid, scheduler, SimulationConfig(estimates=estimates))
    happened = run.executed
    assert np.all(happened.finish > happened.start)
    assert run.makespan >= run.bound > 0
    hosts = grid.platform.hosts
    for task, times in REAL.items():
        host = hosts[int(happened.host[task])]
        trace = host.trace
        assert isinstance(trace, Trace)
        if host.name == "host4.2":  # changes its behaviour on the way
            continue
        start = float(happened.start[task])
        assert happened.finish[task] == pytest.approx(trace.finish(start, times[host.arch]), rel=1e-9), (
            host.name
        )


def test_nothing_runs_where_nobody_is() -> None:
    program, grid = read_work(DATA / "sweep.pst"), read_grid(DATA / "grid.pst")
    happened = simulate_program(program, grid, "minmin").executed
    for task in happened.tasks():
        for moment in (task.start, (task.start + task.finish) / 2, task.finish - 1e-6):
            assert task.host in grid.present(moment)
