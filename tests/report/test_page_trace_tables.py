"""Pages, Chrome traces and tables."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from headrace.model.errors import BadFile
from headrace.model.events import DataMoved, HostLeft, TaskErred, TaskFinished
from headrace.report.chrome_trace import plan_trace, run_trace, write_trace
from headrace.report.gantt import plan_chart
from headrace.report.page import Heading, Paragraph, Table, page_html, write_page
from headrace.report.tables import print_table, summary


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_a_page_holds_its_parts_and_asks_for_nothing(make_plan, tmp_path):
    path = tmp_path / "page.html"
    table = Table(["how", "makespan"], [["heft", "7.9 s"], ["own", "14 s"]])
    parts = [Heading("Runs"), Paragraph("Four workers."), table, plan_chart(make_plan())]
    write_page(path, "Demo", parts)
    text = path.read_text()
    tags = Tags(text).seen
    names = [tag for tag, _ in tags]
    assert "script" not in names
    assert names.count("svg") == names.count("table") == names.count("h1") == 1
    policy = [
        a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert not {"src", "href", "srcset"} & {name for _, attrs in tags for name in attrs}
    assert set(re.findall(r"https?://[^\"' <]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert '<th>how</th><th class="n">makespan</th>' in text


def test_a_page_escapes_everything():
    evil = "<img src=x onerror=alert(1)>"
    text = page_html(evil, [Heading(evil), Paragraph(evil), Table([evil], [[evil]])])
    assert "img" not in [tag for tag, _ in Tags(text).seen]
    assert text.count("&lt;img") == 6


def test_a_page_that_cannot_be_written_is_a_typed_error(tmp_path):
    with pytest.raises(BadFile):
        write_page(tmp_path / "missing" / "page.html", "x", [])


def of_phase(trace, phase):
    return [e for e in trace["traceEvents"] if e["ph"] == phase]


def test_a_plan_s_trace_has_hosts_cores_and_transfers(make_plan, tmp_path):
    plan = make_plan(hosts=3, tasks=40, cores=2, moves=25)
    write_trace(plan_trace(plan), tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    host_of = {e["pid"]: e["args"]["name"] for e in of_phase(trace, "M") if e["name"] == "process_name"}
    thread_of = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in of_phase(trace, "M") if e["name"] == "thread_name"
    }
    slices = of_phase(trace, "X")
    tasks = {e["name"]: e for e in slices if e["cat"] != "transfer"}
    for row in plan.tasks():
        event = tasks[row.id]
        assert (host_of[event["pid"]], thread_of[event["pid"], event["tid"]]) == (
            row.host,
            f"core {row.core}",
        )
        assert event["ts"] == pytest.approx(row.start * 1e6)
        assert event["dur"] == pytest.approx((row.finish - row.start) * 1e6)
    moves = [e for e in slices if e["cat"] == "transfer"]
    assert len(moves) == 25
    assert {thread_of[e["pid"], e["tid"]].split()[0] for e in moves} == {"arriving"}
    assert len(slices) == 65
    no_overlap_in_any_row(slices)


def no_overlap_in_any_row(slices):
    rows = {}
    for event in sorted(slices, key=lambda e: e["ts"]):
        key = event["pid"], event["tid"]
        assert rows.get(key, 0.0) <= event["ts"] + 1e-3
        rows[key] = event["ts"] + event["dur"]


def test_a_run_s_trace_lays_overlapping_tasks_into_rows_and_marks_what_went_wrong(make_plan):
    plan = make_plan(tasks=3)
    events = [
        TaskFinished(2.0, "t0", "node0", 0.0),
        TaskFinished(2.0, "t1", "node0", 1.0),
        DataMoved(3.0, "d0", "node0", "node1", 2.0, 8.0),
        TaskErred(4.0, "t2", "node1", "boom"),
        HostLeft(5.0, "node1"),
    ]
    trace = run_trace(events, plan.platform, plan.graph)
    slices = of_phase(trace, "X")
    assert {e["name"]: e["tid"] for e in slices if e["cat"] != "transfer"} == {"t0": 0, "t1": 1}
    assert slices[0]["cat"] == plan.graph.kinds[plan.graph.kind[0]]
    (move,) = [e for e in slices if e["cat"] == "transfer"]
    assert move["args"] == {"from": "node0", "bytes": 8.0}
    assert [(e["name"], e["ts"]) for e in of_phase(trace, "i")] == [
        ("t2 failed: boom", 4e6),
        ("host left", 5e6),
    ]


def test_a_summary_says_what_matters(make_plan):
    plan = make_plan(hosts=5, tasks=3, moves=2)
    rows = dict(summary(plan))
    assert rows["scheduler"] == "heft"
    assert rows["ratio"] == f"{1 / 0.9:.3f}"
    assert rows["hosts used"] == f"{plan.hosts_used} of 5"
    assert rows["data moved"] == "2 MB in 2 transfers"
    assert rows["note"] == "inputs are everywhere"
    assert dict(summary(make_plan(bound=0.0)))["ratio"] == "unknown"


def test_a_printed_table_shows_cells_as_they_are():
    stream = io.StringIO()
    print_table(["name", "[red]n"], [["[bold]x", "\x1b[31m1"], ["y", "2"]], title="T", stream=stream)
    text = stream.getvalue()
    assert all(part in text for part in ("T", "[red]n", "[bold]x", "y", "2"))
    assert "\x1b" not in text


def test_importing_reports_and_records_loads_nothing_heavy():
    code = (
        "import sys, headrace.report.gantt, headrace.report.page, headrace.report.tables, "
        "headrace.report.chrome_trace, headrace.record, headrace.predict.history; "
        "print([m for m in ('numba', 'distributed', 'ortools', 'rich', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
