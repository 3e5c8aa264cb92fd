"""`headrace sweep`, `results`, `why`, `keep` and `forget`, as a user calls them."""

from __future__ import annotations

import csv
import io
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.experiments_case import fresh, truth, write_case

from headrace.cli import run_command
from headrace.model.errors import UsageError


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    fresh()
    return write_case(tmp_path)


def called(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run_command(list(words)) == 0
    return capsys.readouterr().out


def test_the_whole_way(case: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = json.loads(called(capsys, "sweep", "case.toml", "--quote", "--json", "--gantt", "plan.svg"))
    assert (told["combinations"], told["tasks_alone"], told["reused"]) == (12, 60, 0)
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    done = json.loads(called(capsys, "sweep", "case.toml", "--workers", "1", "--json"))
    assert (done["tasks"], done["reused"], done["failed"]) == (told["tasks"], 0, [])
    shown = called(capsys, "sweep", "case.toml")
    assert "reused" in shown
    rows = list(csv.DictReader(io.StringIO(called(capsys, "results", "case", "--csv"))))
    assert {int(row["point"]): int(row["value"]) for row in rows} == truth(case)
    some = json.loads(
        called(capsys, "results", "case", "--where", "scale = 2 and first = 'second'", "--json")
    )
    assert {row["scale"] for row in some["rows"]} == {2}
    called(capsys, "results", "case", "--plot", "scale:value", "--by", "data", "-o", "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    sql = "select count(*) as n from points where complete and experiment = 1"
    found = json.loads(called(capsys, "results", "--sql", sql, "--json"))
    assert found["rows"] == [{"n": 12}]
    assert "case" in called(capsys, "results")
    assert "is kept and need not run" in called(capsys, "why", "case", "load@data_a")
    assert "would be deleted" in called(capsys, "keep", "--older-than", "30 d")
    assert "add --yes" in called(capsys, "forget", "case")
    assert "deleted;" in called(capsys, "forget", "case", "--yes")
    assert json.loads(called(capsys, "results", "--json")) == {"experiments": []}


@pytest.mark.parametrize(
    "words",
    [
        ["results", "--where", "a = 1"],
        ["results", "x", "--by", "a"],
        ["results", "x", "--sql", "select 1"],
        ["results", "x", "--json", "--csv"],
        ["results", "x"],
        ["keep"],
        ["forget", "nothing"],
        ["why", "nothing", "x"],
        ["sweep", "case.toml", "--gantt", "x.svg"],
        ["sweep", "case.toml", "--when-impossible", "drop"],
    ],
    ids=" ".join,
)
def test_wrong_usage(case: Path, words: list[str]) -> None:
    with pytest.raises(UsageError):
        run_command(words)


@pytest.mark.skipif(find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow(case: Path) -> None:
    with pytest.raises(UsageError, match="pyarrow"):
        run_command(["results", "case", "--parquet", "x.parquet"])
