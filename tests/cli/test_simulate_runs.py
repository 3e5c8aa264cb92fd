"""`headrace simulate --runs`: many seeds, one distribution."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.command import headrace

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "tests/formats/data/srasearch-chameleon-30a-001.json.gz", tmp_path / "sra.json.gz")
    shutil.copy(ROOT / "examples/lab.toml", tmp_path / "lab.toml")
    return tmp_path


@pytest.mark.slow
def test_replays_of_a_plan_can_be_repeated_one_by_one(folder: Path) -> None:
    made = ("sra.json.gz", "--on", "lab.toml")
    assert headrace("plan", *made, "-s", "heft", "-o", "p.json", cwd=folder).code == 0
    case = (*made, "--plan", "p.json", "--error", "0.4", "--json")
    many = headrace("simulate", *case, "--runs", "30", "--seed", "5", "--plot", "h.svg", cwd=folder)
    assert many.code == 0, many.err
    found = json.loads(many.out)
    assert found["runs"] == len(found["makespans"]) == 30
    assert (folder / "h.svg").read_text().startswith("<svg")
    worst = str(found["seeds"]["worst"])
    one = json.loads(headrace("simulate", *case, "--seed", worst, cwd=folder).out)
    assert one["makespan"] == found["makespan"]["worst"] == max(found["makespans"])
    assert one["planned"] == found["planned"]


@pytest.mark.slow
def test_runs_under_an_online_scheduler_are_the_same_each_time(folder: Path) -> None:
    case = ("sra.json.gz", "--on", "lab.toml", "-s", "workqueue", "--faults", "kill=1@30%", "--runs", "6")
    first, again = (headrace("simulate", *case, "--json", cwd=folder) for _ in range(2))
    assert first.code == 0, first.err
    assert json.loads(first.out)["makespans"] == json.loads(again.out)["makespans"]
    table = headrace("simulate", *case, "--gantt", "median.svg", cwd=folder)
    assert "median" in table.out
    assert (folder / "median.svg").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--runs", "0", "--error", "0.1"], "--runs is '0'"),
        (["--plot", "h.svg"], "--plot draws repeated runs"),
        (["--runs", "3", "--error", "0.1", "--log", "l"], "--log records a single run"),
        (["--runs", "3", "--error", "1.1"], "error is 1.1"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, options: list[str], said: str) -> None:
    ended = headrace("simulate", "sra.json.gz", "--on", "lab.toml", *options, cwd=folder)
    assert ended.code == 2
    assert said in ended.err


def test_replays_without_errors_are_all_the_same(folder: Path) -> None:
    made = ("sra.json.gz", "--on", "lab.toml")
    assert headrace("plan", *made, "-s", "heft", "-o", "p.json", cwd=folder).code == 0
    ended = headrace("simulate", *made, "--plan", "p.json", "--runs", "3", cwd=folder)
    assert (ended.code, "are all the same" in ended.err) == (2, True)


@pytest.mark.slow
def test_where_no_run_ends_there_is_nothing_to_report(folder: Path) -> None:
    lost = ("-s", "workqueue", "--faults", "kill=14@1%", "--runs", "2")
    ended = headrace("simulate", "sra.json.gz", "--on", "lab.toml", *lost, cwd=folder)
    assert ended.code == 3
    assert "none of 2 runs ends" in ended.err
