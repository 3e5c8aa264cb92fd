"""Quotes: from history, from samples, and with an interval that says how much is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import quoting
from headrace.model.plan import Plan
from headrace.record import Record
from headrace.record.queries import mean_outputs
from headrace.record.run_reports import FIGURES_ONLY, makespan_ratios, note_report

LAB = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
PROGRAM = """
import headrace as hr

def step(x, n=1):
    return x

program = hr.Program("chain")
x = program.input("x", value=1)
a = program.task(step, inputs=[x], outputs={"a": 1000}, name="first", work=2.0)
program.task(step, inputs=[a], outputs=["b"], name="second", work=3.0)
"""


def write(folder: Path, count: int) -> Path:
    (folder / "chain.py").write_text(PROGRAM)
    text = f'program = "chain.py:program"\n[set.second]\nn = {{ from = 1, to = {count}, steps = {count} }}\n'
    (folder / "chain.toml").write_text(text)
    return folder / "chain.toml"


def test_without_history_the_figures_count_and_the_interval_is_wide(tmp_path: Path) -> None:
    told = quoting.quote(write(tmp_path, 9), record=tmp_path / "home", platform=LAB, scheduler="heft")
    assert (told.points, told.alone, told.tasks, told.left) == (9, 18, 10, 10)
    assert told.plan is not None
    assert told.seconds == pytest.approx(2.0 + 5 * 3.0, rel=0.2)
    assert told.high / told.low > 5
    assert told.stored == 1000.0


def test_a_large_experiment_is_quoted_from_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, 400)
    planned = quoting.quote(file, record=tmp_path / "home", platform=LAB, scheduler="heft")
    monkeypatch.setattr(quoting, "MOST_PLANNED", 10)
    sampled = quoting.quote(file, record=tmp_path / "home", platform=LAB, scheduler="heft")
    assert sampled.plan is None
    assert (sampled.left, sampled.tasks, sampled.reused) == (planned.left, planned.tasks, planned.reused)
    assert sampled.seconds == pytest.approx(planned.seconds, rel=0.15)
    assert sampled.stored == planned.stored


def test_only_plans_that_history_went_into_say_how_far_the_next_is_off(tmp_path: Path) -> None:
    program = hr.Program("one")
    program.task(None, work=2.0, kind="k", name="t")
    plan: Plan = hr.plan(program, LAB, scheduler="heft")
    with Record.open(tmp_path) as record:
        for makespan, text in (
            (200.0, FIGURES_ONLY),
            (3.0, "1 of 1 task from earlier executions"),
            (4.0, "2 of 2"),
        ):
            with record.begin("one", program.graph, LAB, "heft", plan) as run:
                run.finish("done", makespan=makespan)
            note_report(record, run.id, {"sources": {"run_times": text}})
        assert makespan_ratios(record, LAB.name) == pytest.approx([3.0 / plan.makespan, 4.0 / plan.makespan])
        assert makespan_ratios(record, "elsewhere") == []
        assert mean_outputs(record.database, ["k"]) == {}
        low, middle, high, text = quoting._interval(np.array([1.0, 1.0, 1.0]), 1.0, LAB.name, record)
        assert low < middle < high
        assert "fewer than three" in text
