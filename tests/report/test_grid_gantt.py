"""Charts of runs on a grid that changes: what was lost is drawn, and nothing else goes missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.model.platform import Platform
from headrace.report.chart import AWAY, STOPPED, TRANSFER
from headrace.report.grid_gantt import grid_chart
from headrace.report.layout import arrange
from headrace.report.text import shorten, text_width
from headrace.simulator.events import grid_state as w
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program
from headrace.testing.generate import random_program

LAB = Platform.pairwise([2.0, 1.0, 1.0], bandwidth=1e6)


@pytest.mark.parametrize("seed", range(6))
def test_every_line_of_the_log_is_drawn_once(seed: int) -> None:
    program = random_program(seed=seed, tasks=25, shape="fork-join")
    run = simulate_program(
        program, LAB, "lheft", SimulationConfig(faults="kill=h1@20%+30%,join=h2@10%"), seed=seed
    )
    chart = grid_chart(run)
    counts = {
        kind: int(np.sum(run.log_kind == kind)) for kind in (w.TASK_ENDED, w.TASK_STOPPED, w.MOVE_ENDED)
    }
    keys = [bar.colour_key for bar in chart.bars]
    assert keys.count(STOPPED) == counts[w.TASK_STOPPED]
    assert keys.count(TRANSFER) == counts[w.MOVE_ENDED]
    tasks = [bar for bar in chart.bars if bar.colour_key not in (STOPPED, TRANSFER, AWAY)]
    assert len(tasks) == counts[w.TASK_ENDED]
    assert {bar.label for bar in tasks} == set(run.graph.task_names)
    assert max(bar.finish for bar in chart.bars) <= chart.end == run.makespan
    away = {(bar.lane.split()[0], bar.start) for bar in chart.bars if bar.colour_key == AWAY}
    left = run.log_time[run.log_kind == w.HOST_LEFT]
    assert {start for _, start in away} <= set(left.tolist())
    for bar in tasks:
        for lane, start, finish in ((b.lane, b.start, b.finish) for b in chart.bars if b.colour_key == AWAY):
            assert bar.lane != lane or bar.finish <= start or bar.start >= finish


def test_the_command_draws_it(tmp_path: Path) -> None:
    program = random_program(seed=1, tasks=10, shape="fork-join")
    run = simulate_program(program, LAB, "minmin", SimulationConfig(faults="kill=h0@5"))
    run.gantt(tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text()
    assert "simulated under minmin" in text
    assert "h0 left at 5 s." in text
    assert "host away" in text


def test_a_label_as_wide_as_the_gutter_is_not_cut() -> None:
    program = random_program(seed=1, tasks=10, shape="fork-join")
    chart = grid_chart(simulate_program(program, LAB, "minmin"))
    for name in ("cluster3", "abc", "host_1", "worker-17"):
        named = type(chart)(
            "t", tuple(lane._replace(group=name, label="") for lane in chart.lanes), chart.bars, chart.end
        )
        layout = arrange(named, 1100)
        assert layout.left - 8 - 14 >= text_width(name, 11.0) - 1e-6
        assert shorten(name, 11.0, layout.left - 8 - 14) == name
