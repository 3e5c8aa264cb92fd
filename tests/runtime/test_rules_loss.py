"""Workers that die under rules: real processes, with the run stopped or the rule left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.execution import run
from headrace.model.errors import NoPlan
from headrace.model.events import HostLeft, RuleDropped
from headrace.rules.builder import on
from headrace.runtime.cluster import open_local

from .tasks import finished, killer, layered

pytestmark = pytest.mark.slow

SCHEDULERS = ("heft", "lheft")
PROGRAM = """
import os, pathlib, signal
import headrace as hr

def dies(flag):
    marked = pathlib.Path(flag)
    if not marked.exists():
        marked.write_text("once")
        os.kill(os.getpid(), signal.SIGKILL)
    return 40

def two():
    return 2

def add(a, b):
    return a + b

program = hr.Program("fatal")
flag = program.input("flag", value={flag!r})
first = program.task(dies, inputs=[flag], outputs=["a"], name="dies", work=1.0)
second = program.task(two, outputs=["b"], name="two", work=1.0)
program.task(add, inputs=["a", "b"], outputs=["answer"], name="add", work=1.0)
program.output("answer")
"""


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_run_stops_and_names_the_rule(scheduler: str, tmp_path: Path) -> None:
    program, _ = layered(6, 6, 0.02)
    rules = on([f"t{level}.0" for level in range(6)], hosts="w1", name="first-column")
    with open_local(3) as cluster:
        observe = killer(cluster.pids, {8: "w1"})
        with pytest.raises(NoPlan, match=r"first-column.*cannot be kept any more") as error:
            run(program, cluster, scheduler, rules=rules, record=tmp_path, output=tmp_path, observe=observe)
    assert "w1" in str(error.value)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_rule_is_left_out_and_the_others_hold(scheduler: str, tmp_path: Path) -> None:
    program, answer = layered(6, 6, 0.02)
    columns = [[f"t{level}.{k}" for level in range(6)] for k in range(6)]
    rules = [
        on(columns[0], hosts="w1", name="first-column"),
        on(columns[1], hosts=["w1", "w2"], name="second-column"),
        on(columns[2], hosts="w0", name="third-column"),
    ]
    with open_local(3) as cluster:
        observe = killer(cluster.pids, {8: "w1"})
        done = run(
            program, cluster, scheduler, rules=rules, when_impossible="drop", record=tmp_path, output=tmp_path,
            observe=observe,
        )  # fmt: skip
    events = done.outcome.events
    assert done.results == {"answer": answer}
    assert [e.host for e in events if isinstance(e, HostLeft)] == ["w1"]
    assert [e.rule for e in events if isinstance(e, RuleDropped)] == ["first-column"]
    assert {e.host for e in finished(events) if e.task in columns[1]} <= {"w1", "w2"}
    assert {e.host for e in finished(events) if e.task in columns[2]} == {"w0"}


@pytest.mark.parametrize(("when", "code"), [("stop", 3), ("drop", 0)])
def test_the_command_when_a_task_kills_its_worker(when: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "fatal.py").write_text(PROGRAM.format(flag=str(tmp_path / "flag")))
    (tmp_path / "fatal.rules").write_text(on("dies", hosts="w1", name="pinned"))
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "run", "fatal.py:program"]
    options = ["--rules", "fatal.rules", "--workers", "2", "-s", "heft", "--when-impossible", when, "--json"]
    ended = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == code, ended.stderr
    if when == "stop":
        assert "pinned" in ended.stderr
        assert "w1" in ended.stderr
        return
    said = json.loads(ended.stdout)
    assert [rule["rule"] for rule in said["dropped_rules"]] == ["pinned"]
    assert (tmp_path / "flag").exists()
