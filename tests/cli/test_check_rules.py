"""`headrace check` with rules, and cost and energy in summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as hr
from cli.command import headrace
from headrace.commands.check import check_files
from headrace.formats.plan_json import plan_to_dict, write_plan
from headrace.formats.platform_toml import read_platform, write_platform
from headrace.formats.wfformat import read_program, write_program
from headrace.model.errors import BadPlatform, BadProgram
from headrace.report.tables import summary

RULES = """
-- all FFTs on one host
place: assert relationship requirement ((select task-assigned-proc-name from task where task-name = "FFT") = "a")
none: assert relationship requirement ((select task-id from task where label-region = "south") = 1)
short: assert value preference (opt-type = minimize, priority = 1,
  function = (select max(task-finish-time) from task), min = 0, max = 100)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = hr.Program("two")
    program.task(work=3600.0, name="FFT.1", labels={"region": "north", "weight": 2.5})
    program.task(work=3600.0, name="FFT.2")
    write_program(program, tmp_path / "program.json")
    (tmp_path / "lab.toml").write_text(
        '[[host]]\nname = "a"\nprice = 0.5\nwatts = 10\n[[host]]\nname = "b"\nprice = 1\n'
    )
    (tmp_path / "lab.rules").write_text(RULES)
    platform = read_platform(tmp_path / "lab.toml")
    plan = hr.plan(read_program(tmp_path / "program.json"), platform, scheduler="heft")
    write_plan(plan, tmp_path / "plan.json")
    return tmp_path


def files(folder: Path, *names: str) -> list[str]:
    return [str(folder / name) for name in names]


def test_a_plan_is_judged_by_rules(folder: Path) -> None:
    findings = check_files(files(folder, "program.json", "lab.toml", "plan.json", "lab.rules"))
    told = findings[-1]
    assert told["summary"].startswith("1 of 2 requirements kept, score of 1 preference")
    (violation,) = told["violations"]
    assert "place (line 3, relationship requirement): kept in 1 of 2 tests" in violation
    assert "task-assigned-proc-name is 'b', wanted = 'a'" in violation
    assert [rule["failed"] for rule in told["rules"]] == [1, 0, 0]


def test_selections_before_planning(folder: Path) -> None:
    (_, told) = check_files(files(folder, "lab.rules", "program.json"), on=str(folder / "lab.toml"))
    assert told["violations"] == []
    place, none, short = told["notes"]
    assert place.endswith(": 2 tasks")
    assert "0 tasks; warning: selects nothing" in none
    assert short.endswith(": 2 tasks")


def test_the_command_exits_with_2_and_prints_json(folder: Path) -> None:
    done = headrace(
        "check", "--rules", "lab.rules", "program.json", "lab.toml", "plan.json", "--json", cwd=folder
    )
    assert done.code == 2
    assert json.loads(done.out)["files"][-1]["rules"][0]["name"] == "place"


def test_cost_and_energy_of_a_plan(folder: Path) -> None:
    platform = read_platform(folder / "lab.toml")
    plan = hr.plan(read_program(folder / "program.json"), platform, scheduler="single-host")
    cost = 0.5 * 2 if plan.host[0] == 0 else 1.0 * 2
    facts = plan_to_dict(plan)
    assert facts["cost"] == pytest.approx(cost)
    assert ("cost", f"{cost:g}") in summary(plan)
    assert facts["energy"] == pytest.approx(10 * 2 * 3600 if plan.host[0] == 0 else 0.0)
    free = hr.plan(read_program(folder / "program.json"), hr.Platform.pairwise([1.0], 1e6), scheduler="heft")
    assert "cost" not in plan_to_dict(free)


def test_prices_and_labels_are_written_back(folder: Path) -> None:
    platform = read_platform(folder / "lab.toml")
    write_platform(platform, folder / "again.toml")
    assert read_platform(folder / "again.toml").hosts == platform.hosts
    program = read_program(folder / "program.json")
    assert program.tasks["FFT.1"].labels == {"region": "north", "weight": 2.5}
    assert program.graph.labels["weight"].values == (2.5,)
    with pytest.raises(BadProgram, match="label 'x' is None"):
        hr.Program().task(labels={"x": None})  # type: ignore[dict-item]
    with pytest.raises(BadPlatform, match="price is -1"):
        hr.Platform((hr.Site("s", (hr.Host("h", price=-1.0),)),))
