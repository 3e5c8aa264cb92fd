"""`headrace resume`, `cancel`, `run --dry-run` and `runs --verify`, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.record import Record

from .command import SOURCE, headrace

PROGRAM = """
import os
import time

import headrace as hr


def note(name):
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{name}\\n".encode())
    os.close(file)


def step(name, *values):
    note(name)
    while os.path.exists(HOLD) and name >= "t3":
        time.sleep(0.02)
    return sum(values) + 1


program = hr.Program("chain")
before = []
for number in range(6):
    name = program.input(f"n{number}", value=f"t{number}")
    before = [program.task(step, name=f"t{number}", inputs=[name, *before], outputs=[f"x{number}"])]
program.output("x5", "answer.json")
"""


def place(folder: Path, *, hold: bool) -> Path:
    """A folder with a chain of six tasks, of which the fourth waits as long as a file exists."""
    (folder / "prog.py").write_text(
        f"LOG = {str(folder / 'log')!r}\nHOLD = {str(folder / 'hold')!r}\n{PROGRAM}"
    )
    if hold:
        (folder / "hold").touch()
    return folder


def executed(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """`headrace run` in the background, until its fourth task has begun and three are committed."""
    command = [sys.executable, "-m", "headrace.cli", "run", "prog.py:program", "--workers", "1", *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "HEADRACE_HOME": str(folder / ".headrace")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(6000):
        if process.poll() is not None:
            break
        if len(executed(folder)) >= 4:
            with Record.open(folder / ".headrace") as record:
                if len(record.kept("last")) >= 3:
                    return process
        time.sleep(0.02)
    process.kill()
    raise AssertionError(process.communicate())


FAST = ("--scheduler", "dask")


def test_a_killed_run_is_resumed(tmp_path):
    process = start(place(tmp_path, hold=True), *FAST)
    process.kill()
    process.communicate()
    (tmp_path / "hold").unlink()
    done = headrace("resume", "last", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "3 of 6 tasks are committed, 3 are left to run" in done.err
    answer = json.loads(done.out)
    assert answer["reused"] == ["t0", "t1", "t2"]
    assert [task["id"] for task in answer["tasks"]] == ["t3", "t4", "t5"]
    assert executed(tmp_path) == ["t0", "t1", "t2", "t3", "t3", "t4", "t5"]
    assert (tmp_path / "answer.json").read_text() == "6\n"
    with Record.open(tmp_path / ".headrace") as record:
        assert [row.session for row in record.tasks("last")] == [1, 1, 1, 2, 2, 2]
        assert len(record.sessions("last")) == 2
        assert [row.item for row in record.results("last")] == ["x5"]


@pytest.mark.slow
def test_a_cancelled_run_is_stopped_and_can_be_resumed(tmp_path):
    none = headrace("runs", cwd=tmp_path)
    assert (none.code, none.out, none.err) == (0, "", "no runs yet\n")
    process = start(place(tmp_path, hold=True), *FAST)
    assert headrace("resume", cwd=tmp_path).err.count("is running") == 1
    ended = headrace("cancel", "last", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["status"] == "stopped"
    assert "headrace resume" in ended.err
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "cancelled" in err) == (130, True)
    again = headrace("cancel", "last", cwd=tmp_path)
    assert (again.code, "is not running: stopped" in again.err) == (2, True)
    (tmp_path / "hold").unlink()
    shown = headrace("resume", "--dry-run", "--json", cwd=tmp_path)
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)
    assert (facts["reused"], facts["to_run"]) == (["t0", "t1", "t2"], ["t3", "t4", "t5"])
    assert executed(tmp_path) == ["t0", "t1", "t2", "t3"]
    done = headrace("resume", "--retries", "1", "--keep", "results", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "answer.json").read_text() == "6\n"
    facts = json.loads(headrace("runs", "last", "--json", cwd=tmp_path).out)
    assert len(facts["sessions"]) == 2
    assert list((tmp_path / ".headrace" / "alive").iterdir()) == []


def test_a_dry_run_executes_nothing_and_records_nothing(tmp_path):
    place(tmp_path, hold=False)
    shown = headrace(
        "run", "prog.py:program", "--dry-run", "--json", "-s", "heft", "--workers", "2", cwd=tmp_path
    )
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)
    assert facts["to_run"] == [task["id"] for task in facts["tasks"]] == [f"t{i}" for i in range(6)]
    assert facts["makespan"] >= facts["bound"] > 0
    assert executed(tmp_path) == []
    with Record.open(tmp_path / ".headrace") as record:
        assert record.runs() == []
    text = headrace("run", "prog.py:program", "--dry-run", "-s", "heft", cwd=tmp_path).out
    assert "tasks to run" in text


def finished(folder: Path, *options: str) -> None:
    done = headrace(
        "run", "prog.py:program", "--workers", "1", *FAST, *options, cwd=place(folder, hold=False)
    )
    assert done.code == 0, done.err


@pytest.mark.slow
def test_damage_is_found_and_repaired_without_running_anything(tmp_path):
    finished(tmp_path)
    assert headrace("runs", "--verify", "last", cwd=tmp_path).code == 0
    (tmp_path / "answer.json").write_text("7\n")
    found = headrace("runs", "--verify", "last", "--json", cwd=tmp_path)
    assert found.code == 1
    (problem,) = json.loads(found.out)["problems"]
    assert (problem["what"], problem["name"]) == ("result", "x5")
    before = executed(tmp_path)
    repaired = headrace("resume", "last", cwd=tmp_path)
    assert repaired.code == 0, repaired.err
    assert ((tmp_path / "answer.json").read_text(), executed(tmp_path)) == ("6\n", before)
    assert headrace("runs", "--verify", "last", cwd=tmp_path).code == 0


@pytest.mark.slow
def test_a_program_that_has_changed_is_refused(tmp_path):
    finished(tmp_path)
    text = (tmp_path / "prog.py").read_text()
    (tmp_path / "prog.py").write_text(text + "# a remark\n")
    assert headrace("resume", cwd=tmp_path).code == 0
    (tmp_path / "prog.py").write_text(text.replace("sum(values) + 1", "sum(values) + 2"))
    refused = headrace("resume", cwd=tmp_path)
    assert refused.code == 2
    assert "the code of 't0', 't1', 't2' and 3 more changed since" in refused.err
    assert "--anyway" in refused.err
    assert headrace("resume", "--anyway", cwd=tmp_path).code == 0
    (tmp_path / "prog.py").write_text(text.replace("range(6)", "range(7)"))
    refused = headrace("resume", "--anyway", cwd=tmp_path)
    assert (refused.code, "tasks and data of the program have changed" in refused.err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM"])
def test_a_planned_run_that_was_interrupted_is_resumed_on_other_workers(tmp_path, signal_name):
    folder = place(tmp_path, hold=True)
    process = start(folder, "--scheduler", "heft", "--keep", "all")
    process.send_signal(getattr(signal, signal_name))
    process.communicate(timeout=60)
    (folder / "hold").unlink()
    done = headrace("resume", "--workers", "2", "--json", cwd=folder)
    assert done.code == 0, done.err
    assert json.loads(done.out)["reused"] == ["t0", "t1", "t2"]
    assert (folder / "answer.json").read_text() == "6\n"
