"""Pages of plans and runs: self-contained, and with the data that the chart needs."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from bench.causes import planted

import headrace as hr
from headrace.model.plan import Plan
from headrace.report.interactive import plan_report, run_report
from headrace.report.schedule_data import FinishedRun, plan_data, run_data


def data_of(page: str) -> dict[str, list]:
    (block,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(block)


def made(names: tuple[str, ...] = ("a", "b")) -> Plan:
    program = hr.Program("</script><b>")
    before = program.task(None, name=names[0], work=1.0, outputs={"x": 1e6})
    program.task(None, name=names[1], inputs=[before], work=2.0)
    return hr.plan(program, hr.Platform.pairwise([1.0, 2.0], bandwidth=1e6), "heft")


def finished(seed: int = 0) -> FinishedRun:
    case = planted(seed, tasks=20)
    return FinishedRun(case.events, case.plan.graph, case.plan.platform, case.plan)


def test_a_page_needs_nothing_from_elsewhere_and_runs_its_own_script_only():
    page = plan_report(made(("<img src=x>", "</script>")))
    assert "<img" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert data_of(page)["names"] == ["<img src=x>", "</script>"]
    for outside in ("fetch(", "XMLHttpRequest", "import(", "http://", "https://", "url("):
        assert outside not in page.replace("http://www.w3.org/", "")


def test_lists_of_bars_fit_each_other():
    for data in (plan_data(made()), run_data(finished())):
        n = len(data["names"])
        for key in ("lane", "start", "finish", "colour", "ghost", "wait", "waitKind"):
            assert len(data[key]) == n, key
        assert all(0 <= lane < len(data["lanes"]) for lane in data["lane"])
        assert all(0 <= colour < len(data["colours"]) for colour in data["colour"])
        assert all(-1 <= bar < n for bar in data["wait"])
        assert [bool(kind) for kind in data["waitKind"]] == [bar >= 0 for bar in data["wait"]]


def test_chains_of_a_page_lead_to_the_same_root():
    run = finished(4)
    data = run_data(run)
    assert run.causes is not None
    for i, cause in enumerate(run.causes.causes):
        if cause is None or not run.causes.run.activities[i].is_task:
            continue
        name = run.causes.run.activities[i].name
        at = next(b for b, n in enumerate(data["names"]) if n == name and not data["ghost"][b])
        while data["causes"][str(at)]["next"] >= 0:
            at = data["causes"][str(at)]["next"]
        root = run.causes.root(i)
        assert root is not None
        assert data["causes"][str(at)]["text"] == root.text


def test_a_run_has_ghosts_and_late_tasks():
    run = finished()
    page = run_report(run)
    assert sum(data_of(page)["ghost"]) == run.graph.n_tasks
    assert "<h2>Late tasks</h2>" in page
    assert "planned makespan" in page
