"""Real runs through the command: results, record, history, failures, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.command import headrace

ROOT = Path(__file__).parents[2]
MOSAIC = f"{ROOT / 'examples' / 'mosaic.py'}:program"
WORKFLOW = ROOT / "tests" / "formats" / "data" / "srasearch-chameleon-30a-001.json.gz"

BROKEN = """
from headrace import Program

def good():
    return "kept"

def bad(x):
    raise ValueError("the lens is dirty")

def after(x):
    return x

program = Program("broken")
program.output(program.task(good, outputs=["good"], work=0.01), "good.txt")
lens = program.task(bad, inputs=["good"], outputs=["lens"], name="polish", work=0.01)
program.output(program.task(after, inputs=[lens], outputs=["never"], work=0.01), "never.txt")
"""

GUESS = """
import time
from headrace import Program

def nap(i):
    time.sleep(0.01)
    return i

program = Program("guess")
for i in range(16):
    program.task(nap, inputs=[program.input(f"i{i}", value=i)], outputs=[f"o{i}"], work=1000)
"""

SLOW = """
import os, time
from pathlib import Path
from headrace import Program

def wait(i):
    Path(f"pid{os.getpid()}").touch()
    time.sleep(60)

program = Program("slow")
for i in range(4):
    program.task(wait, inputs=[program.input(f"i{i}", value=i)], outputs=[f"o{i}"], work=60)
"""


def test_the_example_runs_and_is_recorded(tmp_path: Path) -> None:
    first = headrace("run", MOSAIC, "--on", "local", "--workers", "2", "--json", cwd=tmp_path)
    assert first.code == 0, first.err
    answer = json.loads(first.out)
    assert len(answer["tasks"]) == 42
    assert (tmp_path / "mosaic.pgm").read_bytes().startswith(b"P5")
    assert np.load(tmp_path / "edges.npy").ndim == 2
    assert "of 42 tasks" in first.err
    rows = json.loads(headrace("runs", answer["run"], "--json", cwd=tmp_path).out)["rows"]
    assert {row["task"] for row in rows} == {task["id"] for task in answer["tasks"]}
    assert all(row["host"] in ("w0", "w1") and row["finish"] >= row["start"] for row in rows)
    assert any(row["result"].endswith("mosaic.pgm") for row in rows)


@pytest.mark.slow
def test_the_second_run_plans_with_what_the_first_measured(tmp_path: Path) -> None:
    (tmp_path / "guess.py").write_text(GUESS)
    planned = []
    for _ in range(2):
        ended = headrace("run", "guess.py", "--workers", "2", "--json", cwd=tmp_path)
        assert ended.code == 0, ended.err
        planned.append(json.loads(ended.out)["planned"])
    assert planned[0] >= 8000, "two workers, sixteen tasks, a thousand seconds each as the user says"
    assert planned[1] < 80, "each really takes a hundredth of a second"
    listed = json.loads(headrace("runs", "--json", cwd=tmp_path).out)["rows"]
    assert [row["status"] for row in listed] == ["done", "done"]


@pytest.mark.slow
def test_an_instance_is_emulated_on_workers_of_unequal_speed(tmp_path: Path) -> None:
    ended = headrace(
        "run", WORKFLOW, "--emulate", "--time-scale", "0.0002", "--size-scale", "0.0001", "--speeds", "2,1",
        "--gantt", "run.svg", "--trace", "run.json", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    answer = json.loads(ended.out)
    assert len(answer["tasks"]) == 64
    work = 50375.2 * 0.0002
    assert answer["makespan"] >= work / 3, "no faster than both workers together"
    assert (tmp_path / "run.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_a_failing_task_shows_its_error_and_keeps_other_results(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    ended = headrace("run", "broken.py:program", "--workers", "2", cwd=tmp_path)
    assert ended.code == 1
    assert "the lens is dirty" in ended.err
    assert "polish" in ended.err
    assert "in bad" in ended.err, "the traceback"
    assert "difference" not in ended.out, "of a part of the program, this says nothing"
    assert (tmp_path / "good.txt").read_text() == "kept"
    assert not (tmp_path / "never.txt").exists()
    listed = json.loads(headrace("runs", "--json", cwd=tmp_path).out)["rows"]
    assert [row["status"] for row in listed] == ["failed"]


def test_an_interrupt_ends_all_workers_and_exits_130(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "run", "slow.py", "--workers", "2", "-s", "dask"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        workers = _wait_for_workers(tmp_path, 2, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        until = time.monotonic() + 20
        while any(_lives(pid) for pid in workers) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [pid for pid in workers if _lives(pid)]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    listed = json.loads(headrace("runs", "--json", cwd=tmp_path).out)["rows"]
    assert [row["status"] for row in listed] == ["stopped"]


def _wait_for_workers(folder: Path, count: int, process: subprocess.Popen[str]) -> list[int]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pids = [int(path.name[3:]) for path in folder.glob("pid*")]
        if len(pids) == count:
            return pids
        if process.poll() is not None:
            pytest.fail(f"it ended too soon: {process.communicate()[1]}")
        time.sleep(0.05)
    pytest.fail("the workers did not start their tasks")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path(f"/proc/{pid}").exists() else True


OWN = """
from headrace.core.scheduler import EVERY_EVENT, Assign
class FirstHost:
    name = "first-host"
    wake = EVERY_EVENT
    def react(self, view, events):
        return [Assign(view.graph.task_names[t], view.platform.hosts[0].name, t) for t in view.ready()]
"""


def test_an_online_scheduler_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "p.py").write_text(
        "import headrace as hr\nprogram = hr.Program()\n"
        "for k in range(6):\n    program.task(None, name=f't{k}', work=0.01)\n"
    )
    case = ("run", "p.py:program", "--emulate", "--workers", "2")
    ended = headrace(*case, "-s", "own.py:FirstHost", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert len({task["host"] for task in json.loads(ended.out)["tasks"]}) == 1


PAIR = """
name = "pair"
[[site]]
name = "here"
bandwidth = "1 Gbit/s"
[[site.host]]
name = "w0"
price = 3600
watts = 10
[[site.host]]
name = "{second}"
price = 3600
watts = 10
"""


@pytest.mark.slow
def test_a_described_platform_gives_cost_and_energy(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import headrace as hr\nprogram = hr.Program()\n"
        "for k in range(4):\n    program.task(None, name=f't{k}', work=0.1)\n"
    )
    (tmp_path / "pair.toml").write_text(PAIR.format(second="w1"))
    (tmp_path / "other.toml").write_text(PAIR.format(second="elsewhere"))
    case = ("run", "p.py:program", "--emulate", "--workers", "2", "--json", "--platform")
    ended = headrace(*case, "pair.toml", cwd=tmp_path)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    busy = sum(task["finish"] - task["start"] for task in told["tasks"])
    assert told["cost"] == pytest.approx(busy)
    assert told["energy"] == pytest.approx(10 * busy)
    refused = headrace(*case, "other.toml", cwd=tmp_path)
    assert refused.code == 2
    assert "no worker for host elsewhere" in refused.err
