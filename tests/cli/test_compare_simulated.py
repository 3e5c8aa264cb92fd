"""`headrace compare --simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.commands.compare_simulated import SimulatedComparison, show_simulated
from headrace.experiment.paired import PairedRuns
from headrace.model.errors import UsageError

LAB = '[[site]]\nname = "s"\nbandwidth = "1 MB/s"\n[[site.host]]\nname = "h1"\nspeed = 4\n[[site.host]]\nname = "h2"\n'
PROGRAM = "digraph p { " + " ".join(f"a -> b{i} [bytes=1000]; b{i} [work={i + 1}];" for i in range(6)) + " }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "p.dot").write_text(PROGRAM)


def test_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "compare",
        "p.dot",
        "--on",
        "lab.toml",
        "--schedulers",
        "HEFT,round-robin",
        "--simulate",
        "--paired",
    ]
    run_command([*asked, "--runs", "30", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["faster"] == "heft"
    assert row["pairs"] == 10
    assert row["ratio"] > 1.2


def test_the_table_says_who_is_faster_and_how_sure_that_is(capsys: pytest.CaptureFixture[str]) -> None:
    found = PairedRuns(1.25, (1.1, 1.4), 20, 1, (8.0, 10.0))
    row = {"program": "p", "platform": "lab", "paired": found}
    show_simulated([row], ["heft", "minmin"], SimulatedComparison(simulate=True, paired=True), False)
    shown = capsys.readouterr().out
    for part in ("20, 1 never ended", "8 s", "10 s", "1.250 (1.100 to 1.400)", "heft (95% sure)"):
        assert part in shown


@pytest.mark.slow
def test_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "compare",
        "p.dot",
        "--on",
        "lab.toml",
        "--schedulers",
        "heft,minmin",
        "--simulate",
        "--runs",
        "5",
    ]
    run_command([*asked, "--json"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    for name in ("heft", "minmin"):
        found = row["schedulers"][name]
        low, high = found["confidence_interval"]
        assert low < found["makespan"]["mean"] < high
        assert found["runs"] == 5


@pytest.mark.parametrize(
    "more",
    [
        ["--paired"],
        ["--simulate", "--paired", "--schedulers", "heft"],
        ["--simulate", "--plot", "x.svg"],
        ["--simulate", "--bound", "full"],
    ],
)
def test_what_makes_no_sense_is_refused(more: list[str]) -> None:
    with pytest.raises(UsageError):
        run_command(["compare", "p.dot", "--on", "lab.toml", *more])
