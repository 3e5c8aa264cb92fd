"""Described platforms, reports and calibration through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import headrace

PROGRAM = """
import time
from headrace import Program

def nap(*values):
    time.sleep(0.05)
    return bytes(1000)

program = Program("naps")
made = [program.task(nap, outputs={f"x{k}": 1000}, name=f"t{k}", work=0.05) for k in range(4)]
program.output(program.task(nap, inputs=made, outputs={"y": 1000}, name="last", work=0.05))
"""
LAB = """
name = "lab"
[[site]]
name = "room"
bandwidth = "100 MB/s"
[[site.host]]
name = "w0"
price = 3600.0
watts = 50.0
[[site.host]]
name = "w1"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "naps.py").write_text(PROGRAM)
    (tmp_path / "lab.toml").write_text(LAB)
    return tmp_path


@pytest.mark.slow
def test_a_described_run_its_report_and_its_calibration(folder: Path) -> None:
    done = headrace(
        "run",
        "naps.py:program",
        "-s",
        "heft",
        "--workers",
        "2",
        "--platform",
        "lab.toml",
        "--json",
        cwd=folder,
    )
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["sources"]["links"] == "as described in lab"
    assert told["cost"] > 0
    assert sum(told["deviations"]["happened"].values()) == pytest.approx(told["makespan"])
    assert sum(told["deviations"]["planned"].values()) == pytest.approx(told["planned"])

    shown = headrace("runs", told["run"], "--json", cwd=folder)
    assert json.loads(shown.out)["deviations"] == told["deviations"]
    assert "links: as described in lab" in headrace("runs", told["run"], cwd=folder).out

    fitted = headrace("calibrate", "-o", "fit.toml", "--program-output", "fit.json", "--json", cwd=folder)
    assert fitted.code == 0, fitted.err
    error = json.loads(fitted.out)
    assert error["run"] == told["run"]
    assert error["what_if"]["no_overhead"] <= error["simulated"]
    assert 0.1 < error["what_if"]["instant_links"] <= error["simulated"]
    assert error["simulated"] == pytest.approx(told["makespan"], rel=0.5)
    assert error["error"] == pytest.approx(error["simulated"] / told["makespan"] - 1)
    again = headrace("simulate", "fit.json", "--on", "fit.toml", "-s", "heft", "--json", cwd=folder)
    assert again.code == 0, again.err
    assert json.loads(again.out)["makespan"] > 0.1


@pytest.mark.slow
def test_hosts_and_workers_that_do_not_match(folder: Path) -> None:
    few = headrace("run", "naps.py:program", "--workers", "1", "--platform", "lab.toml", cwd=folder)
    assert few.code == 2
    assert "no worker for host w1" in few.err
    many = headrace("run", "naps.py:program", "--workers", "3", "--platform", "lab.toml", cwd=folder)
    assert many.code == 2
    assert "a worker that is not described: w2" in many.err


@pytest.mark.slow
def test_calibration_needs_the_program_of_the_run(folder: Path) -> None:
    (folder / "other.py").write_text(PROGRAM.replace("range(4)", "range(3)"))
    done = headrace("run", "naps.py:program", "-s", "heft", "--workers", "2", "--json", cwd=folder)
    run = json.loads(done.out)["run"]
    wrong = headrace("calibrate", run, "other.py:program", cwd=folder)
    assert wrong.code == 2
    assert "was of another program" in wrong.err
    missing = headrace("calibrate", "nothing", "naps.py:program", cwd=folder)
    assert missing.code == 2
