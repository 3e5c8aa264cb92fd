"""Rules that a loss makes impossible, as users see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import Ended, headrace
from headrace.commands.warmup_workloads import write_inputs

RULES = """
first-on-a1: assert relationship requirement (
  (select task-assigned-proc-name from task where task-name = "first") = "a1")
halves-on-b1: assert relationship requirement (
  (select task-assigned-proc-name from task where task-name = "half") = "b1")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_inputs(tmp_path)
    (tmp_path / "on.rules").write_text(RULES)
    return tmp_path


def simulate(folder: Path, scheduler: str, *more: str) -> Ended:
    given = ("program.json", "--on", "fifo.toml", "-s", scheduler, "--rules", "on.rules")
    return headrace("simulate", *given, *more, cwd=folder)


@pytest.mark.parametrize(
    "scheduler", ["heft", *(pytest.param(name, marks=pytest.mark.slow) for name in ("lheft", "workqueue"))]
)
def test_the_run_stops_and_says_why(folder: Path, scheduler: str) -> None:
    ended = simulate(folder, scheduler, "--faults", "kill=b1@30")
    assert ended.code == 3
    told = " ".join(ended.err.split())
    assert "rule 'halves-on-b1' cannot be kept any more at 30 s: host 'b1' left at 30 s" in told
    assert "--when-impossible drop" in told


@pytest.mark.parametrize(
    "scheduler",
    ["lheft", *(pytest.param(name, marks=pytest.mark.slow) for name in ("heft", "dheft", "workqueue"))],
)
def test_the_run_goes_on_without_the_rule(folder: Path, scheduler: str) -> None:
    ended = simulate(folder, scheduler, "--faults", "kill=b1@30", "--when-impossible", "drop", "--json")
    assert ended.code == 0, ended.err
    shown = json.loads(ended.out)
    assert shown["dropped_rules"] == [{"time": 30.0, "rule": "halves-on-b1", "why": "host 'b1' left at 30 s"}]
    kept = {rule["name"]: rule["kept"] for rule in shown["rules"]}
    assert kept == {"first-on-a1": True, "halves-on-b1": False}


def test_a_loss_without_consequences_is_not_mentioned(folder: Path) -> None:
    ended = simulate(folder, "heft", "--faults", "kill=b2@30", "--when-impossible", "drop", "--json")
    assert "dropped_rules" not in json.loads(ended.out)


def test_the_option_has_no_effect_without_rules(folder: Path) -> None:
    for command in ("simulate program.json --on fifo.toml -s heft", "run program.json --emulate"):
        ended = headrace(*command.split(), "--when-impossible", "drop", cwd=folder)
        assert ended.code == 2
        assert "--when-impossible has no effect without rules" in ended.err
