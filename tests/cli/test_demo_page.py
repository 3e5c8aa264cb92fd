"""The page of the demo: both runs in one file, on one time axis."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench.causes import planted

import headrace as hr
from headrace.commands.demo import Demo, record_runs, write_demo_page
from headrace.commands.report import recorded_run
from headrace.model.events import TaskFinished
from headrace.runtime.execute import Outcome


def test_both_runs_are_in_the_page(tmp_path: Path):
    case = planted(0, tasks=20)
    late = Outcome({}, max(event.time for event in case.events), tuple(case.events))
    planned = [TaskFinished(task.finish, task.id, task.host, task.start) for task in case.plan.tasks()]
    timely = Outcome({}, case.plan.makespan, tuple(planned))
    write_demo_page(Demo(case.plan, late, timely, 1.0, 1.0, True), tmp_path / "demo.html")
    text = (tmp_path / "demo.html").read_text()
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    with_plan, without = (json.loads(block) for block in blocks)
    assert with_plan["end"] == without["end"] == late.makespan
    assert sum(with_plan["ghost"]) == case.plan.graph.n_tasks
    assert sum(without["ghost"]) == 0


def test_both_runs_are_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    program = hr.Program("one")
    program.task(None, name="a", work=1.0)
    plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6), "heft")
    done = Outcome({}, 2.0, (TaskFinished(2.0, "a", "h0", 0.0),))
    engine, planned = (recorded_run(name)[0] for name in record_runs(Demo(plan, done, done, 1.0, 1.0, True)))
    assert engine.plan is None
    assert planned.plan is not None
    assert planned.causes is not None
    assert planned.causes.root("a").reason == "compute"
