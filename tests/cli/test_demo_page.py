"""The page of the demo: both runs in one file, on one time axis."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.causes import planted

from headrace.commands.demo import Demo, write_demo_page
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
