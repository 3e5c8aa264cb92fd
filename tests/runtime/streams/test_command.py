"""`headrace stream` end to end: local Dask workers, results, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.model.errors import BadPlan, HeadraceError, UsageError

APP = """
import time
from headrace.runtime.filters import App, Filter, Reader, Unit

class Count(Reader):
    def init(self, work):
        self.work = work
    def read(self, out):
        total = self.work.settings["n"]
        for i in range(round(total * self.work.begin), round(total * self.work.end)):
            out.send(b"%d" % i)

class Square(Filter):
    def init(self, work):
        self.n = work.settings["n"]
    def process(self, buffer, out):
        if self.n == 1100 and buffer.data == b"999":
            time.sleep(99)
        if self.n == 700 and buffer.data == b"666":
            raise ValueError("unlucky")
        out.send(b"%d" % int(buffer.data) ** 2)

class Total(Filter):
    def init(self, work):
        self.total = 0
    def process(self, buffer, out):
        self.total += int(buffer.data)
    def finalize(self, out):
        out.send(b"%d" % self.total)

def build(n):
    app = App("squares", buffer="1 kB", units=[Unit("first", {"n": 3}), Unit("all", {"n": n})])
    app.filter("count", Count)
    app.filter("square", Square, inputs=["count"])
    app.filter("total", Total, inputs=["square"])
    return app

app, bad, long = build(100), build(700), build(1100)
"""
DEPLOYMENT = """
[deployment]
throughput = 1.0
[copies count]
n1 = 1, 1.0
[copies square]
n2 = 2, 1.0
[copies total]
n1 = 1, 1.0
[flow count -> square]
n1 -> n2 = 1.0
[flow square -> total]
n2 -> n1 = 1.0
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "squares.py").write_text(APP)
    (tmp_path / "d.ini").write_text(DEPLOYMENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_deployment_is_carried_out(files, capsys):
    args = ["squares.py:app", "--deployment", "d.ini", "--json", "-o", "out", "--plot", "flows.svg"]
    assert run_command(["stream", *args, "--speeds", "2,1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (files / "out" / "all.total").read_text() == str(sum(i * i for i in range(100)))
    assert (files / "out" / "first.total").read_text() == "5"
    assert told["planned"] == 1.0
    assert told["throughput"] > 0
    assert told["units"] == 2
    assert told["emulated"] == "speeds 2, 1"
    assert [copy["name"] for copy in told["copies"]] == [
        "count 1 on n1",
        "square 1 on n2",
        "square 2 on n2",
        "total 1 on n1",
    ]
    assert (files / "flows.svg").read_text().startswith("<svg")


def test_a_filter_that_raises_gives_exit_code_1_and_keeps_other_units(files, capsys):
    assert run_command(["stream", "squares.py:bad", "--deployment", "d.ini", "-o", "out"]) == 1
    said = capsys.readouterr()
    assert "ValueError: unlucky" in said.err
    assert "square " in said.err
    assert "limited by" in said.out
    assert [path.name for path in (files / "out").iterdir()] == ["first.total"]


@pytest.mark.slow
def test_a_run_that_completed_no_unit_has_no_throughput(files, capsys):
    text = (files / "squares.py").read_text()
    (files / "none.py").write_text(text.replace("self.n == 700 and", "self.n == 3 and").replace("666", "1"))
    assert run_command(["stream", "none.py:app", "--deployment", "d.ini", "--json", "-o", "out"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["units"] == 0
    assert told["throughput"] is None
    assert "unlucky" in told["failure"]


def test_bad_requests_are_refused_before_anything_starts(files):
    for change, kind in (
        (("n2 = 2, 1.0", "n2 = 2, 0.5"), BadPlan),
        (("copies square", "copies cube"), BadPlan),
        (("[copies total]\nn1 = 1, 1.0", ""), BadPlan),
    ):
        (files / "bad.ini").write_text(DEPLOYMENT.replace(*change))
        with pytest.raises(kind):
            run_command(["stream", "squares.py:app", "--deployment", "bad.ini"])
    for more in (
        ["--speeds", "1,2", "--on", "tcp://127.0.0.1:1"],
        ["--workers", "3"],
        ["--on", "somewhere"],
        ["--slower", "2"],
    ):
        with pytest.raises(UsageError):
            run_command(["stream", "squares.py:app", "--deployment", "d.ini", *more])
    with pytest.raises(HeadraceError):
        run_command(["stream", "squares.py:app", "--deployment", "none.ini"])


@pytest.mark.slow
def test_without_a_deployment_everything_is_done_by_itself(files, capsys):
    # The planner may run `total` in several copies, each of which has a result: a line for each.
    app = files / "squares.py"
    app.write_text(app.read_text().replace('b"%d" % self.total', r'b"%d\n" % self.total'))
    for told in ("trial run", "measurements of an earlier trial run"):
        assert run_command(["stream", "squares.py:app", "--workers", "4", "--json", "-o", "out"]) == 0
        said = capsys.readouterr()
        assert told in said.err
        assert json.loads(said.out)["planned"] > 0
        totals = (files / "out" / "all.total").read_text().split()
        assert sum(map(int, totals)) == sum(i * i for i in range(100))


def descendants(pid: int) -> set[int]:
    """All processes below this one, whichever thread started them."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    found = {int(child) for path in lists for child in path.read_text().split()}
    return found | {other for child in found for other in descendants(child)}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.slow
def test_an_interrupt_ends_everything(files):
    command = [sys.executable, "-m", "headrace.cli", "stream", "squares.py:long", "--deployment", "d.ini"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if line == "running\n":
                break
        time.sleep(1.0)
        processes = descendants(run.pid)
        assert len(processes) >= 8  # two workers, two agents, four copies
        os.kill(run.pid, signal.SIGINT)
        said = run.stderr.read()
        assert run.wait(timeout=60) == 130, said
    assert "interrupted" in said
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []
