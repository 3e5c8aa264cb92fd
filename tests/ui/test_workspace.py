"""What the page offers: files, plans, rules, runs, and events that can be resumed."""

from __future__ import annotations

import http.client
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

import headrace as hr
from cli.command import SOURCE
from cli.test_report import recorded
from headrace.formats.wfformat import write_program
from headrace.ui.feed import Feed
from ui.serving import Page, served

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    program = hr.Program("two")
    before = program.task(None, name="one", work=1.0, outputs={"x": 1e6})
    program.task(None, name="two", inputs=[before], work=2.0)
    write_program(program, tmp_path / "two.json")
    (tmp_path / "lab.toml").write_text((EXAMPLES / "lab.toml").read_text())
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with served(folder) as made:
        made.open()
        yield made


def finished(page: Page, **request: Any) -> dict[str, Any]:
    begun = page.post("/api/plans", request)
    assert begun.status == 200, begun.body
    for _ in range(1200):
        answer = page.get(f"/api/plans/{begun.json['job']}").json
        if answer["status"] != "running":
            return answer
        time.sleep(0.05)
    raise TimeoutError


def test_files_below_the_folder(page: Page, folder: Path):
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.json").write_text("{}")
    answer = page.get("/api/files").json
    assert answer == {
        "root": str(folder.resolve()),
        "files": [{"path": "lab.toml", "kind": "platform"}, {"path": "two.json", "kind": "program"}],
    }


def test_a_plan_is_the_one_that_the_command_makes(page: Page, folder: Path):
    answer = finished(page, program="two.json", platform="lab.toml", scheduler="heft")
    plan = hr.plan(_program(folder), hr.Platform.read(folder / "lab.toml"), "heft")
    assert answer["makespan"] == plan.makespan
    assert {"one", "two"} <= set(answer["schedule"]["names"])


def test_a_plan_with_rules_says_what_was_kept(page: Page, folder: Path):
    host = hr.Platform.read(folder / "lab.toml").hosts[0].name
    rule = str(hr.rules.avoid(host))
    answer = finished(page, program="two.json", platform="lab.toml", scheduler="heft", rules=rule)
    assert [one["kept"] for one in answer["rules"]] == [True]
    free = hr.plan(_program(folder), hr.Platform.read(folder / "lab.toml"), "heft")
    assert answer["rules"][0]["cost"] == pytest.approx(answer["makespan"] - free.makespan)


def test_what_fails_says_why(page: Page, folder: Path):
    (folder / "bad.json").write_text("{}")
    answer = finished(page, program="bad.json", platform="lab.toml")
    assert answer["status"] == "failed"
    assert "bad.json" in answer["error"]


def test_python_is_executed_only_if_that_was_allowed(page: Page, folder: Path):
    (folder / "p.py").write_text(
        "from pathlib import Path\nimport headrace as hr\nPath(__file__).with_name('trace').touch()\n"
        "program = hr.Program('p')\nprogram.task(None, name='only', work=1.0)\n"
    )
    refused = page.post("/api/plans", {"program": "p.py:program", "platform": "lab.toml"})
    assert refused.status == 400
    assert "would be executed" in refused.json["error"]
    page.get("/api/files")
    assert not (folder / "trace").exists()
    answer = finished(page, program="p.py:program", platform="lab.toml", scheduler="heft", execute=True)
    assert (answer["status"], (folder / "trace").exists()) == ("done", True)


def test_links_out_of_the_folder_are_not_followed(page: Page, folder: Path):
    (folder / "out.json").symlink_to("/etc/passwd")
    assert page.post("/api/plans", {"program": "out.json"}).status == 400


def test_rules_are_checked_in_place(page: Page):
    assert page.post("/api/rules/check", {"text": ""}).json == {"errors": []}
    (error,) = page.post("/api/rules/check", {"text": "\nassert nonsense"}).json["errors"]
    assert (error["line"], error["column"]) == (2, 8)
    names = {one["name"] for one in page.get("/api/rules/attributes").json}
    assert "task-finish-time" in names


def test_runs_of_the_record_with_causes(page: Page):
    from bench.causes import planted

    assert page.get("/api/runs").json == []
    run = recorded(planted(0, tasks=20))
    assert [one["id"] for one in page.get("/api/runs").json] == [run]
    answer = page.get(f"/api/runs/{run}").json
    assert answer["schedule"]["causes"]
    assert page.get("/api/runs/none").status == 400


def test_events_are_resumed_by_number(folder: Path):
    feed = Feed(kept=5)
    with served(folder, feed) as page:
        page.open()
        for number in range(3):
            feed.publish("runs", {"n": number})
        assert listened(page, 2, after="1") == [("2", '{"n":1}'), ("3", '{"n":2}')]
        threading.Timer(0.3, feed.publish, ("runs", {"n": 3})).start()
        assert listened(page, 1, after="3") == [("4", '{"n":3}')]
        for number in range(4, 20):
            feed.publish("runs", {"n": number})
        assert listened(page, 1, after="4") == [("20", "{}")]  # too old: everything anew
        assert listened(page, 1, after="999") == [("20", "{}")]  # of another server
        assert listened(page, 2, after="18")[-1] == ("20", '{"n":19}')


def listened(page: Page, count: int, after: str) -> list[tuple[str, str]]:
    """Number and data of the next events."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    connection.request("GET", "/api/events", headers={"Cookie": page.cookie, "Last-Event-ID": after})
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    found: list[tuple[str, str]] = []
    number = ""
    while len(found) < count:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data: "):
            found.append((number, line[6:]))
    connection.close()
    return found


def test_every_endpoint_is_described(page: Page):
    described = page.get("/api/openapi.json").json["paths"]
    assert set(described["/api/plans"]) == {"post"}
    assert described["/api/runs/{run}"]["get"]["parameters"][0]["name"] == "run"


def test_the_command_prints_the_link_first_and_ends_when_interrupted(folder: Path):
    import os
    import signal
    import subprocess

    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "ui", "--no-open"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            port = int(link.removeprefix("http://127.0.0.1:").partition("/")[0])
            page = Page(port, link, Feed())
            assert page.ask("GET", "/").status == 401
            page.open()
            assert page.get("/api/schedulers").status == 200
            process.send_signal(signal.SIGINT)
            process.wait(20)
        finally:
            process.kill()


def _program(folder: Path) -> hr.Program:
    from headrace.formats.loading import load_program

    return load_program(folder / "two.json")
