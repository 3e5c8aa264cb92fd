"""`--rules` on plan, simulate, compare and run, as users call them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.command import SOURCE, Ended, headrace

EXAMPLES = SOURCE.parent / "examples"
CLASH = """
paint-on-n1: assert relationship requirement (
  (select task-assigned-proc-id from task where task-name = "paint") =
  (select proc-id from proc where proc-name = "n1"))
quiet-machines: assert relationship requirement (
  (select proc-task-count from proc where proc-utilization > 3) = 0)
soon: assert relationship requirement ((select task-finish-time from task) <= 9 h)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    for name in ("mosaic.py", "lab.toml", "lab.rules"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


def run(lab: Path, command: str, *more: str, rules: str = "lab.rules") -> Ended:
    return headrace(command, "mosaic.py:program", "--on", "lab.toml", "--rules", rules, *more, cwd=lab)


def test_the_summary_lists_every_rule(lab: Path) -> None:
    ended = run(lab, "plan", "-s", "heft")
    assert ended.code == 0, ended.err
    assert "makespan without it" in ended.out
    for name in ("blur-on-oddvar", "quiet-machines", "four-at-once", "early-picture", "short"):
        assert name in ended.out
    assert "kept in 0 of 1 rows (first miss:" in " ".join(ended.out.split())


def test_json_has_the_rules(lab: Path) -> None:
    found = json.loads(run(lab, "plan", "-s", "heft", "--json").out)
    rules = {rule["name"]: rule for rule in found["rules"]}
    wanted = {"name", "importance", "kind", "line", "kept", "rows", "failed", "cost"}
    assert all(wanted <= set(rule) for rule in rules.values())
    assert rules["blur-on-oddvar"]["kept"]
    assert rules["blur-on-oddvar"]["rows"] == 9
    assert {t["host"] for t in found["tasks"] if t["id"].startswith("blur")} == {"oddvar"}
    without = rules["blur-on-oddvar"]["makespan_without"]
    assert rules["blur-on-oddvar"]["cost"] == pytest.approx(found["makespan"] - without)
    assert found["score"] == pytest.approx(sum(rule["share"] or 0 for rule in rules.values()))


@pytest.mark.slow
def test_costs_can_be_left_out(lab: Path) -> None:
    ended = run(lab, "plan", "-s", "heft", "--no-rule-costs")
    assert ended.code == 0
    assert "makespan without it" not in ended.out
    found = json.loads(run(lab, "plan", "-s", "heft", "--no-rule-costs", "--json").out)
    assert all(rule["cost"] is None for rule in found["rules"])


def test_a_saved_plan_is_judged_by_the_rules_it_was_made_with(lab: Path) -> None:
    assert run(lab, "plan", "-s", "heft", "-o", "p.plan.json", "--no-rule-costs").code == 0
    ended = headrace("check", "mosaic.py:program", "lab.toml", "p.plan.json", cwd=lab)
    assert ended.code == 0, ended.err
    assert "lab.rules: rules: 3 of 3 requirements kept" in ended.out


def test_clashing_rules_exit_with_3_and_the_smallest_set(lab: Path) -> None:
    (lab / "clash.rules").write_text(CLASH)
    for command in ("plan", "simulate"):
        ended = run(lab, command, "-s", "heft", rules="clash.rules")
        assert ended.code == 3
        assert "`paint-on-n1` (line 2) and `quiet-machines` (line 5) clash" in ended.err
        assert "soon" not in ended.err


def test_a_rule_that_a_planner_cannot_keep_exits_with_3(lab: Path) -> None:
    (lab / "odd.rules").write_text(
        "odd: assert relationship requirement (\n"
        "  (select proc-total-running-time from proc) <= 0.2 * (select max(task-finish-time) from task))\n"
    )
    ended = run(lab, "plan", "-s", "heft", rules="odd.rules")
    assert ended.code == 3
    assert "heft found no plan that keeps odd (line 1)" in ended.err
    assert "--scheduler best or search" in ended.err


def test_bad_rules_exit_with_2_and_a_caret(lab: Path) -> None:
    (lab / "bad.rules").write_text(
        "assert relationship requirement ((select task-finnish-time from task) <= 2 h)"
    )
    for command in ("plan", "simulate"):
        ended = run(lab, command, rules="bad.rules")
        assert ended.code == 2
        assert "did you mean task-finish-time?" in ended.err
        assert "^^^^" in ended.err


@pytest.mark.parametrize("scheduler", ["heft", "lheft"])
def test_simulations_obey_and_are_judged(lab: Path, scheduler: str) -> None:
    found = json.loads(run(lab, "simulate", "-s", scheduler, "--json").out)
    assert {t["host"] for t in found["tasks"] if t["id"].startswith("blur")} == {"oddvar"}
    assert [
        rule["name"] for rule in found["rules"] if not rule["kept"] and rule["importance"] == "requirement"
    ] == []


@pytest.mark.slow
def test_repeated_simulations_obey(lab: Path) -> None:
    ended = run(lab, "simulate", "-s", "heft", "--runs", "3", "--error", "0.2")
    assert ended.code == 0, ended.err


@pytest.mark.slow
def test_schedulers_are_compared_under_rules_and_cached_apart(lab: Path) -> None:
    options = ("--schedulers", "heft,minmin", "--json")
    free = json.loads(headrace("compare", "mosaic.py:program", "--on", "lab.toml", *options, cwd=lab).out)
    ruled = json.loads(run(lab, "compare", *options).out)
    assert free["rows"][0]["results"]["heft"]["makespan"] != ruled["rows"][0]["results"]["heft"]["makespan"]


def test_hurry_is_for_search(lab: Path) -> None:
    ended = run(lab, "plan", "-s", "heft", "--hurry", "3")
    assert ended.code == 2
    assert "'heft' does not accept 'hurry'" in ended.err


@pytest.mark.slow
def test_real_runs_obey_and_are_judged(lab: Path) -> None:
    (lab / "second.rules").write_text(
        'second: assert relationship requirement ((select task-assigned-proc-id from task where task-name = "cut") = 1)'
    )
    ended = headrace(
        "run", "mosaic.py:program", "--workers", "2", "--rules", "second.rules", "--json", cwd=lab
    )
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert len({t["host"] for t in found["tasks"] if t["id"].startswith("cut")}) == 1
    assert [(rule["name"], rule["kept"], rule["rows"]) for rule in found["rules"]] == [("second", True, 9)]


LOPSIDED = """
even: assert value requirement (
  function = (select max(proc-task-count) from proc) - (select min(proc-task-count) from proc), max = 0)
"""


def test_schedulers_refuse_what_they_cannot_obey_during_a_run(lab: Path) -> None:
    (lab / "even.rules").write_text(LOPSIDED)
    ended = run(lab, "simulate", "-s", "lheft", rules="even.rules")
    assert ended.code == 2
    assert "lheft decides during the run and cannot obey even (line 2)" in ended.err


@pytest.mark.slow
def test_what_happened_can_break_a_requirement(lab: Path) -> None:
    case = ("mosaic.py:program", "--on", "lab.toml", "-s", "heft", "--json")
    planned = max(task["finish"] for task in json.loads(headrace("plan", *case, cwd=lab).out)["tasks"])
    (lab / "late.rules").write_text(
        f"in-time: assert relationship requirement ((select task-finish-time from task) <= {planned * 1.001})"
    )
    as_planned = run(lab, "simulate", "-s", "heft", rules="late.rules")
    assert as_planned.code == 0, as_planned.err
    late = run(lab, "simulate", "-s", "heft", "--error", "0.5", "--json", rules="late.rules")
    assert late.code == 1
    assert "error: late.rules: what happened breaks in-time (line 1): " in late.err
    assert not json.loads(late.out)["rules"][0]["kept"]
