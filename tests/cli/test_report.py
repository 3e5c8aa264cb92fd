"""`headrace report`: pages of plan files and of recorded runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.causes import Planted, planted

import headrace as hr
from headrace.cli import run_command
from headrace.commands.report import recorded_run
from headrace.formats.wfformat import write_program
from headrace.model.errors import BadFile, UsageError
from headrace.model.events import HostLeft
from headrace.record import Record
from headrace.record.run_plans import note_hosts, note_plan, planned_with

LAB = Path(__file__).parents[2] / "examples" / "lab.toml"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))


def data_in(file: str) -> dict[str, Any]:
    (block,) = re.findall(
        r'<script type="application/json">(.*?)</script>', Path(file).read_text(), re.DOTALL
    )
    return json.loads(block)


def recorded(case: Planted, rules: str = "") -> str:
    """Record a simulated run as if workers had carried it out."""
    plan = case.plan
    with (
        Record.open() as record,
        record.begin("planted", plan.graph, plan.platform, plan.scheduler, plan) as entry,
    ):
        note_plan(record, entry.id, plan.graph, plan.platform, plan, rules)
        for event in case.events:
            entry.observe(event)
        note_hosts(record, entry.id, case.events)
        entry.finish("done", makespan=max(event.time for event in case.events))
        return entry.id


def test_a_plan_with_its_rules(capsys: pytest.CaptureFixture[str]):
    program = hr.Program("two")
    before = program.task(None, name="one", work=1.0, outputs={"x": 1e6})
    program.task(None, name="two", inputs=[before], work=2.0)
    write_program(program, "p.json")
    Path("a.rules").write_text(str(hr.rules.avoid(hr.Platform.read(LAB).hosts[0].name)))
    run_command(["plan", "p.json", "--on", str(LAB), "--rules", "a.rules", "-o", "p.plan.json"])
    capsys.readouterr()
    run_command(["report", "p.plan.json", "-o", "page.html"])
    assert capsys.readouterr().out == "page: page.html\n"
    run_command(["report", "p.plan.json", "-o", "page.html", "--json"])
    assert json.loads(capsys.readouterr().out) == {"source": "p.plan.json", "page": "page.html"}
    assert "<h2>Rules</h2>" in Path("page.html").read_text()
    assert {"one", "two"} <= set(data_in("page.html")["names"])


@pytest.mark.parametrize("seed", [0, 3])
def test_a_recorded_run_has_the_causes_of_the_run_itself(seed: int):
    case = planted(seed, tasks=20)
    run = recorded(case)
    run_command(["report", run, "-o", "page.html"])
    data = data_in("page.html")
    assert sum(data["ghost"]) == case.plan.graph.n_tasks
    found, rules = recorded_run("last")
    assert rules is None
    assert found.causes is not None
    assert case.found_by(found.causes.root(case.last), found.causes)
    assert any(isinstance(event, HostLeft) for event in found.events) == (case.kind == "lost")


def test_rules_are_judged_by_what_happened():
    case = planted(0, tasks=20)
    host = case.plan.platform.hosts[int(case.plan.host[0])].name
    recorded(case, str(hr.rules.avoid(host)))
    _, rules = recorded_run("last")
    assert rules is not None
    ((_, _, _, kept, *_),) = rules[1]
    assert kept != "kept"


def test_what_is_stored_comes_back():
    case = planted(1, tasks=20)
    run = recorded(case)
    with Record.open() as record:
        known = planned_with(record, run)
    assert known.plan is not None
    assert list(known.plan.tasks()) == list(case.plan.tasks())
    assert list(known.plan.transfers()) == list(case.plan.transfers())
    assert list(known.graph.item_names) == list(case.plan.graph.item_names)
    for name in ("work", "size", "unknown_size", "producer", "reads", "read_ptr", "cores"):
        assert getattr(known.graph, name).tolist() == getattr(case.plan.graph, name).tolist(), name


def test_runs_of_older_versions_and_damaged_records_are_refused():
    run = recorded(planted(1, tasks=20))
    with Record.open() as record:
        with record.database.writing() as connection:
            connection.execute("UPDATE run_plans SET planned = ?", (b"no zlib",))
        with pytest.raises(BadFile, match="cannot be read"):
            planned_with(record, run)
        with record.database.writing() as connection:
            connection.execute("DELETE FROM run_plans")
        with pytest.raises(UsageError, match="not recorded"):
            planned_with(record, run)


def test_what_is_neither_a_run_nor_a_file_is_refused():
    with pytest.raises(UsageError, match="there is no run 'nothing'"):
        run_command(["report", "nothing", "-o", "page.html"])
    assert not Path("page.html").exists()


@pytest.mark.slow
def test_a_real_run_is_explained(capsys: pytest.CaptureFixture[str]):
    program = hr.Program("real")
    first = program.task(lambda: 1, name="first", outputs=["x"])
    program.task(lambda x: x + 1, name="second", inputs=[first], outputs=["y"])
    hr.run(program, workers=2, record="record", output="out")
    run_command(["report", "last", "-o", "page.html"])
    data = data_in("page.html")
    bars = [name for name, ghost in zip(data["names"], data["ghost"], strict=True) if not ghost]
    assert {"first", "second"} <= set(bars)
    assert data["wait"][data["names"].index("second", sum(data["ghost"]))] >= 0
