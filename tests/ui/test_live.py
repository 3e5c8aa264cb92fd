"""Runs that the page starts, watches and stops."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

from bench.causes import planted

import headrace as hr
from cli.test_report import recorded
from headrace.formats.wfformat import write_program
from headrace.record import Record
from headrace.ui.feed import Feed
from headrace.ui.live import Watch
from ui.serving import Page, served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    program = hr.Program("chain")
    before = program.task(None, name="t0", work=0.2, outputs={"x0": 1000.0})
    for number in range(1, 30):
        before = program.task(
            None, name=f"t{number}", inputs=[before], work=0.2, outputs={f"x{number}": 1000.0}
        )
    write_program(program, tmp_path / "chain.json")
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with served(folder) as made:
        made.open()
        yield made


def events(page: Page) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and values of all events from the first."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=100)
    connection.request("GET", "/api/events?after=0", headers={"Cookie": page.cookie})
    response = connection.getresponse()
    kind = ""
    try:
        while True:
            line = response.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])
    finally:
        connection.close()


REQUEST = {"program": "chain.json", "scheduler": "heft", "emulate": True, "time_scale": 0.1}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "would be executed"),
        ({"execute": True, "program": "none.json"}, "no file"),
        ({"execute": True, "program": "--help"}, "no file"),
        ({"execute": True, "scheduler": "evil.py:Class"}, "no scheduler"),
        ({"execute": True, "time_scale": 0}, "factor"),
    ],
)
def test_what_is_not_allowed_is_not_started(page: Page, folder: Path, change: dict[str, Any], why: str):
    answer = page.post("/api/runs", REQUEST | change)
    assert answer.status == 400
    assert why in answer.json["error"]
    assert page.get("/api/runs").json == []


def test_changes_in_the_record_are_published_once(folder: Path):
    feed = Feed()
    watch = Watch(feed)
    watch.look()
    assert feed.last == 0
    case = planted(0, tasks=20)
    with (
        Record.open() as record,
        record.begin("p", case.plan.graph, case.plan.platform, "heft", case.plan) as entry,
    ):
        watch.look()
        watch.look()
        entry.finish("done", makespan=1.0)
    watch.look()
    found = feed.since(0)
    assert found is not None
    assert [(one.kind, one.values["status"]) for one in found] == [("run", "running"), ("run", "done")]


def test_runs_from_before_are_not_news(folder: Path):
    recorded(planted(0, tasks=20))
    feed = Feed()
    Watch(feed).look()
    assert feed.last == 0


@pytest.mark.slow
def test_a_run_is_started_watched_and_looked_at(page: Page):
    assert page.post("/api/runs", REQUEST | {"execute": True}).status == 200
    statuses = []
    for kind, values in events(page):
        if kind == "run":
            statuses.append(values["status"])
        if kind == "ended":
            assert (values["code"], values["said"]) == (0, "")
        if "done" in statuses:
            break
    assert statuses[0] == "running"
    (row,) = page.get("/api/runs").json
    schedule = page.get(f"/api/runs/{row['id']}").json["schedule"]
    assert sum(schedule["ghost"]) == 30
    assert len([g for g in schedule["ghost"] if not g]) >= 30


@pytest.mark.slow
def test_a_run_can_be_stopped(page: Page):
    page.post("/api/runs", REQUEST | {"execute": True, "time_scale": 100.0})
    stopped = False
    for kind, values in events(page):
        if kind == "run" and values["status"] == "running" and not stopped:
            assert page.post(f"/api/runs/{values['run']}/stop", {}).status == 200
            stopped = True
        if kind == "ended":
            assert values["code"] != 0
            break
    assert [row["status"] for row in page.get("/api/runs").json] == ["stopped"]
