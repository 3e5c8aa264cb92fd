"""`headrace runs`: filters, charts and tables from the record alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.core.scheduler import Problem
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, TaskErred, TaskFinished
from headrace.model.graph import make_graph
from headrace.model.platform import Platform
from headrace.planners.registry import make
from headrace.record import Record


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three runs in a record: two that are done, and one that failed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    monkeypatch.chdir(tmp_path)
    graph = make_graph(
        work=[1.0, 2.0], size=[5.0], producer=[0], read_ptr=[0, 0, 1], reads=[0],
        task_names=("first", "second"), item_names=("x",), kinds=("k",), kind=[0, 0], name="two",
    )  # fmt: skip
    lab = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    plan = make("heft").plan(Problem(graph, lab))
    ids = []
    with Record.open() as record:
        for program, scheduler, fails in (
            ("two", "heft", False),
            ("other", "heft", False),
            ("two", "auto", True),
        ):
            with record.begin(program, graph, lab, scheduler, plan) as entry:
                entry.observe(TaskFinished(1.0, "first", "h0", 0.0, (("x", 5.0),)))
                entry.observe(DataMoved(1.5, "x", "h0", "h1", 1.0, 5.0))
                if fails:
                    entry.observe(TaskErred(2.0, "second", "h1", "task 'second': ValueError: no such luck"))
                else:
                    entry.observe(TaskFinished(3.5, "second", "h1", 1.5))
                entry.finish("failed" if fails else "done", 3.5, 1.0)
                ids.append(entry.id)
    return ids


def listed(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    run_command(["runs", "--json", *args])
    return [row["run"] for row in json.loads(capsys.readouterr().out)["rows"]]


def test_filters(recorded: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = recorded
    assert listed(capsys) == recorded
    assert listed(capsys, "--program", "two") == [first, third]
    assert listed(capsys, "--program", "Two") == [first, third]
    assert listed(capsys, "-s", "HEFT", "-n", "1") == [second]
    assert listed(capsys, "--status", "Failed") == [third]
    assert listed(capsys, "--since", "1h", "--platform", "platform") == recorded
    assert listed(capsys, "--since", "0 s") == []


def test_the_last_run_with_its_error_and_units(
    recorded: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(["runs", "Last"])
    shown = capsys.readouterr().out
    assert f"run {recorded[2]}: two on platform by auto, failed" in shown
    assert "makespan 3.5 s\n" in shown  # a bound of all tasks says nothing about a run that failed
    assert "task 'second' failed on h1: ValueError: no such luck" in shown


def test_charts_traces_and_tables_come_from_the_record(
    recorded: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_command(["runs", recorded[0], "--gantt", "r.svg", "--trace", "r.json", "-o", "r.csv"])
    drawn = (tmp_path / "r.svg").read_text()
    assert "first" in drawn
    assert "planned" in drawn
    names = {event["name"] for event in json.loads((tmp_path / "r.json").read_text())["traceEvents"]}
    assert {"first", "second", "x"} <= names
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    times = {row["task"]: (row["start"], row["finish"]) for row in rows}
    assert times == {"first": ("0.0", "1.0"), "second": ("1.5", "3.5")}
    capsys.readouterr()
    run_command(["runs", "-o", "-", "--program", "other"])
    assert [row["run"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == [recorded[1]]


def test_what_makes_no_sense_is_refused(recorded: list[str]) -> None:
    for args in (["--gantt", "x.svg"], ["--verify"], ["last", "--status", "done"], ["-o", "x.json"]):
        with pytest.raises(UsageError):
            run_command(["runs", *args])


def test_an_empty_list_says_whether_there_are_runs_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    run_command(["runs"])
    assert capsys.readouterr().err == "no runs yet\n"
    run_command(["runs", "--status", "done"])
    assert capsys.readouterr().err == "no such runs\n"
