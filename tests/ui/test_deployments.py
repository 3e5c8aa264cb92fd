"""Deployments, streams and simulations of the page, without a browser."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

import headrace as hr
from headrace.cli import run_command
from headrace.formats.deployment_ini import read_placements
from headrace.formats.loading import load_platform
from headrace.formats.wfformat import write_program
from headrace.model.deployment import Deployment
from headrace.testing.generate import random_program
from headrace.ui.deployments import MOST_FLOWS, picture
from ui.serving import Page, served

PIPELINE = """
[pipeline]
name = squares
[filter count]
seconds = 1
volume = 10 MB
power = 1
[filter square]
seconds = 4
volume = 5 MB
power = 1
[filter total]
seconds = 1
power = 1
[source n1]
n1 = 1.0
"""
PLATFORM = """
[platform]
name = lab
[cluster a]
bandwidth = 100 Mbit/s
[host n1..4]
cluster = a
power = 1
"""
APP = """
import time
from headrace.runtime.filters import App, Filter, Reader, Unit

class Count(Reader):
    def init(self, work):
        self.work = work
    def read(self, out):
        for i in range(round(40 * self.work.begin), round(40 * self.work.end)):
            time.sleep(0.01)
            out.send(bytes(1000))

class Square(Filter):
    def process(self, buffer, out):
        out.send(buffer.data[:500])

class Total(Filter):
    def init(self, work):
        self.total = 0
    def process(self, buffer, out):
        self.total += len(buffer.data)
    def finalize(self, out):
        out.send(b"%d" % self.total)

app = App("squares", buffer="1 kB", units=[Unit(f"u{i}", {}) for i in range(3)])
app.filter("count", Count)
app.filter("square", Square, inputs=["count"])
app.filter("total", Total, inputs=["square"])
"""


def write_case(folder: Path) -> None:
    """A pipeline, its application, a platform, and a program to simulate."""
    (folder / "squares.ini").write_text(PIPELINE)
    (folder / "machines.ini").write_text(PLATFORM)
    (folder / "squares.py").write_text(APP)
    write_program(random_program(5, 30), folder / "random.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    write_case(tmp_path)
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with served(folder) as made:
        made.open()
        yield made


def waited(page: Page, path: str, seconds: float = 60.0) -> dict[str, Any]:
    """What a job or a stream is in the end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = page.get(path).json
        answer = answer[0] if isinstance(answer, list) else answer
        if answer["status"] != "running":
            return dict(answer)
        time.sleep(0.05)
    raise AssertionError(f"{path} still runs")


def deployed(page: Page) -> dict[str, Any]:
    answer = page.post("/api/deployments", {"pipeline": "squares.ini", "platform": "machines.ini"})
    assert answer.status == 200, answer.json
    return waited(page, f"/api/jobs/{answer.json['job']}")


def test_files_are_told_apart(page: Page):
    kinds = {one["path"]: one["kind"] for one in page.get("/api/files").json["files"]}
    assert kinds == {
        "machines.ini": "platform",
        "random.json": "program",
        "squares.ini": "pipeline",
        "squares.py": "program",
    }


def test_a_deployment_is_that_of_the_command(page: Page, folder: Path, capsys: Any):
    made = deployed(page)
    on = str(folder / "machines.ini")
    assert run_command(["deploy", str(folder / "squares.ini"), "--on", on, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert made["throughput"] == told["throughput"]
    drawn = made["picture"]
    assert drawn["filters"] == ["count", "square", "total"]
    assert {(n["filter"], n["host"]): n["copies"] for n in drawn["nodes"]} == {
        (p["filter"], p["host"]): p["copies"] for p in told["placements"]
    }
    assert sum(f["planned"] for f in drawn["flows"]) == pytest.approx(sum(f["rate"] for f in told["flows"]))
    number = made["job"]
    assert page.post(f"/api/deployments/{number}/save", {"file": "d.ini"}).json == {"file": "d.ini"}
    assert read_placements(folder / "d.ini")
    again = page.post(f"/api/deployments/{number}/save", {"file": "d.ini"})
    assert "exists" in again.json["error"]


def test_deployments_are_saved_in_the_folder_only(page: Page):
    made = deployed(page)
    for file in ("../d.ini", "/tmp/d.ini", "none/d.ini", "d.toml", "a\0.ini"):
        assert page.post(f"/api/deployments/{made['job']}/save", {"file": file}).status == 400


def test_hosts_of_a_site_are_one_in_large_pictures():
    hosts = tuple(hr.Host(f"n{i}") for i in range(40))
    lab = hr.Platform((hr.Site("lab", hosts, bandwidth=12.5e6),))
    filters = [
        hr.FilterProfile("read", 10, 100),
        hr.FilterProfile("work", 300, 10),
        hr.FilterProfile("end", 30),
    ]
    pipeline = hr.Pipeline("p", filters, sources=[hr.Source("n0", {"n0": 1.0})])
    made = hr.deploy(pipeline, lab, "trivial")
    flow = made.flows[0]
    many = [flow._replace(target=f"n{i % 40}", rate=0.5) for i in range(MOST_FLOWS + 1)]
    large = Deployment(
        *(made.problem, made.planner, made.form, made.source, made.throughput, made.placements, tuple(many)),
        *(made.objective, made.bound),
    )
    drawn = picture(large)
    assert drawn["merged"]
    assert [f["planned"] for f in drawn["flows"]] == [0.5 * (MOST_FLOWS + 1)]
    assert not picture(made)["merged"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"execute": False}, "would be executed"),
        ({"app": "none.py:app"}, "no file"),
        ({"app": "--help"}, "not a pipeline application"),
        ({"app": "squares.py:a b"}, "not a pipeline application"),
        ({"speeds": "--json"}, "speeds"),
        ({"deployment": "/etc/passwd"}, "no file"),
        ({"output": "../other"}, "other"),
        ({"job": 77}, "no job"),
        ({"workers": 1000}, "out of range"),
        ({"workers": True}, "not what it should be"),
    ],
)
def test_what_is_not_allowed_is_not_streamed(page: Page, change: dict[str, Any], why: str):
    answer = page.post("/api/streams", {"app": "squares.py:app", "execute": True} | change)
    assert answer.status == 400
    assert why in answer.json["error"]
    assert page.get("/api/streams").json == []


def test_only_streams_of_the_page_can_be_stopped(page: Page):
    assert page.post("/api/streams/1/stop", {}).status == 400


@pytest.mark.parametrize("runs", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_simulation_has_the_figures_of_the_command(page: Page, folder: Path, capsys: Any, runs: int):
    request = {
        "program": "random.json",
        "platform": "machines.ini",
        "scheduler": "heft",
        "runs": runs,
        "seed": 7,
        "error": 0.2,
        "faults": "slow=n2*0.5@20%",
    }
    made = waited(page, f"/api/jobs/{page.post('/api/simulations', request).json['job']}")
    assert made["status"] == "done", made
    words = shlex.split(made["command"])[1:]
    words[1], words[3] = str(folder / words[1]), str(folder / words[3])
    assert run_command([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for key in ("makespan", "makespans", "confidence_interval", "deviation", "seeds", "failed"):
        assert made[key] == told[key]
    assert len(set(made["makespans"])) == runs


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"runs": 0}, "0 runs"),
        ({"scheduler": "evil.py:Class"}, "no scheduler"),
        ({"program": "squares.py"}, "would be executed"),
        ({"platform": "none.toml"}, "no file"),
    ],
)
def test_what_cannot_be_simulated_is_refused(page: Page, change: dict[str, Any], why: str):
    answer = page.post("/api/simulations", {"program": "random.json"} | change)
    assert answer.status == 400
    assert why in answer.json["error"]


def test_wrong_faults_are_told(page: Page):
    request = {"program": "random.json", "platform": "machines.ini", "faults": "kill=nobody@3", "runs": 2}
    made = waited(page, f"/api/jobs/{page.post('/api/simulations', request).json['job']}")
    assert made["status"] == "failed"
    assert "nobody" in made["error"]


def test_hosts_are_offered_for_faults(page: Page, folder: Path):
    told = page.post("/api/platforms/hosts", {"platform": "machines.ini"}).json
    assert told["hosts"] == [host.name for host in load_platform(folder / "machines.ini").hosts]


@pytest.mark.slow
def test_a_pipeline_runs_as_planned_here(page: Page, folder: Path):
    made = deployed(page)
    request = {"app": "squares.py:app", "execute": True, "job": made["job"], "output": "out"}
    assert page.post("/api/streams", request).status == 200
    done = waited(page, "/api/streams")
    assert done["status"] == "done", done["said"]
    assert done["outcome"]["units"] == 3
    planned = {(f["source"], f["target"]): f["planned"] for f in made["picture"]["flows"]}
    measured = {(f["source"], f["target"]): f["planned"] for f in done["live"]["flows"]}
    assert measured == pytest.approx(planned)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["u0.total", "u1.total", "u2.total"]
