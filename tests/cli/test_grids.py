"""Grids, sweeps and campaigns from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.command import headrace

DATA = Path(__file__).parents[1] / "formats" / "data" / "pst"
CAMPAIGN = """
schedulers = ["workqueue", "minmin"]
[[application]]
tasks = 6
files = 2
[[application]]
name = "given"
file = "sweep.pst"
[[grid]]
[[grid.cluster]]
hosts = 2
[[grid.cluster]]
hosts = 1
arch = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    return tmp_path


def test_check_says_what_files_are(folder: Path) -> None:
    files = ("sweep.pst", "grid.pst", "loaded_2", "stable_1Mb", "campaign.toml")
    ended = headrace("check", *files, "--json", cwd=folder)
    assert ended.code == 0, ended.err
    found = {f["file"]: (f["kind"], f["summary"]) for f in json.loads(ended.out)["files"]}
    assert found["sweep.pst"][0] == "program"
    assert found["grid.pst"][0] == "grid"
    assert "host join" in found["grid.pst"][1]
    assert found["loaded_2"] == ("behaviour", "of a host, 6 steps, mean 30.0%, repeats after 30 s")
    assert found["stable_1Mb"] == ("behaviour", "of a link, 1 step, mean 1 MB/s, repeats after 5 s")
    assert found["campaign.toml"] == ("campaign", "4 runs: 2 applications, 1 grid, 2 schedulers, 1 seed")


def test_plan_check_and_convert(folder: Path) -> None:
    assert (
        headrace("plan", "sweep.pst", "--on", "grid.pst", "-s", "minmin", "-o", "p.json", cwd=folder).code
        == 0
    )
    assert "valid" in headrace("check", "p.json", cwd=folder).out
    assert headrace("convert", "grid.pst", "grid.toml", cwd=folder).out == "grid.toml: toml\n"
    assert headrace("convert", "sweep.pst", "again.pst", cwd=folder).code == 0
    again = headrace("plan", "again.pst", "--on", "grid.toml", "-s", "minmin", "--json", cwd=folder)
    first = json.loads((folder / "p.json").read_text())
    assert json.loads(again.out)["makespan"] == pytest.approx(first["makespan"])
    refused = headrace("convert", "loaded_2", "x.toml", cwd=folder)
    assert refused.code == 2
    assert "the suffix of 'x.toml' selects no format for a behaviour" in refused.err


@pytest.mark.slow
def test_the_papers_formats_are_written_as_well(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    for source, target, *to in (
        ("sweep.pst", "out/sweep.pst"),
        ("grid.pst", "out/grid.pst"),
        ("loaded_2", "out/own.trace"),
        ("out/own.trace", "out/loaded", "--to", "pst"),
        ("grid.pst", "out/start.toml"),
        ("out/start.toml", "out/start.pst"),
    ):
        ended = headrace("convert", source, target, *to, cwd=folder)
        assert ended.code == 0, ended.err
    assert (out / "loaded").read_text() == (folder / "loaded_2").read_text()
    case = ("-s", "xsufferage", "--estimates", "forecast", "--log")
    headrace("simulate", "sweep.pst", "--on", "grid.pst", *case, "a.log", cwd=folder)
    headrace("simulate", "out/sweep.pst", "--on", "out/grid.pst", *case, "b.log", cwd=folder)
    assert (folder / "a.log").read_bytes() == (folder / "b.log").read_bytes()
    plans = [
        json.loads(headrace("plan", "sweep.pst", "--on", grid, "-s", "minmin", "--json", cwd=folder).out)
        for grid in ("grid.pst", "out/start.pst")
    ]
    assert plans[0]["makespan"] == pytest.approx(plans[1]["makespan"])
    told = headrace("convert", "sweep.pst", "out/sweep.json", cwd=folder).out
    assert (
        told == "out/sweep.json: wfformat, estimates only: this format cannot hold real run times and sizes\n"
    )


def test_a_grid_never_overwrites_what_lies_next_to_it(folder: Path) -> None:
    commented = "# measured in May\n" + (folder / "loaded_2").read_text()
    (folder / "loaded_2").write_text(commented)
    assert headrace("convert", "grid.pst", "copy.pst", cwd=folder).code == 0
    assert (folder / "loaded_2").read_text() == commented
    other = folder / "other"
    other.mkdir()
    (other / "stable_50").write_text("1\n51\n")
    ended = headrace("convert", "grid.pst", "other/grid.pst", cwd=folder)
    assert ended.code == 2
    assert "other/stable_50: exists with different contents" in ended.err
    assert [path.name for path in other.iterdir()] == ["stable_50"]


def test_bad_files_end_with_code_2_and_one_line(folder: Path) -> None:
    (folder / "bad.pst").write_text("GridDescription 1\n0:ADD_CLUSTER <c> <stable_50> <0>\n")
    for args in (("check", "bad.pst"), ("plan", "sweep.pst", "--on", "bad.pst")):
        ended = headrace(*args, cwd=folder)
        assert ended.code == 2
        assert "'stable_50' describes a host" in ended.err
        assert ended.err.count("\n") == 1
    (folder / "campaign.toml").write_text(CAMPAIGN.replace("minmin", "minmax"))
    ended = headrace("campaign", "campaign.toml", cwd=folder)
    assert ended.code == 2
    assert "minmax" in ended.err
    assert not (folder / "p.svg").exists()


@pytest.mark.slow
def test_a_campaign_runs_draws_and_is_kept(folder: Path) -> None:
    ended = headrace("campaign", "campaign.toml", "--plot", "p.svg", "--json", cwd=folder, timeout=240)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert len(told["runs"]) == len(told["summary"]) == 4
    assert not any(run["kept"] for run in told["runs"])
    assert "4 runs, 4 to do" in ended.err
    assert (folder / "p.svg").read_text().startswith("<svg")
    again = headrace("campaign", "campaign.toml", cwd=folder)
    assert "4 runs, 0 to do" in again.err
    assert "given" in again.out


def test_a_plan_is_not_carried_out_where_it_was_not_made_for(folder: Path) -> None:
    headrace("plan", "sweep.pst", "--on", "grid.pst", "-s", "minmin", "-o", "p.json", cwd=folder)
    ended = headrace("simulate", "sweep.pst", "--on", "grid.pst", "--plan", "p.json", cwd=folder)
    assert (ended.code, "the grid changes over time" in ended.err) == (2, True)
    headrace("convert", "grid.pst", "still.toml", cwd=folder)
    ended = headrace("simulate", "sweep.pst", "--on", "still.toml", "--plan", "p.json", cwd=folder)
    assert (ended.code, "real figures beside its estimates" in ended.err) == (2, True)


LATE = """
contention = "fair"
origin = "home"
[[site]]
name = "home"
[[site]]
name = "s"
uplink = "1 MB/s"
uplink_trace = "quick"
[[site.host]]
name = "h"
count = 2
"""


def test_small_items_on_quick_links_arrive_late_in_a_run(folder: Path) -> None:
    """Hours into a run, the clock's last digit is longer than the last bytes of a small item take."""
    program = DATA.parent / "srasearch-chameleon-30a-001.json.gz"
    (folder / "late.toml").write_text(LATE)
    (folder / "quick").write_text("HeadraceTrace 1 hold\n0 1000000 0\n5 1000000000 0\n")
    ended = headrace(
        "simulate", program, "--on", "late.toml", "-s", "minmin", "--json", cwd=folder, timeout=90
    )
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["makespan"] > 20_000


def test_what_is_sent_does_not_depend_on_the_estimated_size(tmp_path: Path) -> None:
    """50,000 bytes at 1000 bytes/s return after 11 s, whether they were estimated as 0 (unknown) or as 1."""
    (tmp_path / "l").write_text("1\n0 1000\n")
    (tmp_path / "full").write_text("1\n100\n")
    (tmp_path / "g.pst").write_text(
        "GridDescription 1\n0:ADD_CLUSTER <c> <l> <0>\n0:ADD_HOST <c> <h1> <full> <0> <0>\n"
    )
    for estimate in (0, 1):
        (tmp_path / f"w{estimate}.pst").write_text(
            "WorkDescription 1 2 1\nFile: <0> <in> <1000> <1000>\n"
            f"File: <1> <out> <50000> <{estimate}>\nWork: <0> <1 : 0> <1 : 1> <1 : 10> <1 : 10>\n"
        )
    for program, scheduler, estimates in (
        ("w0.pst", "workqueue", "user"),
        ("w1.pst", "workqueue", "user"),
        ("w0.pst", "heft", "history+forecast"),
    ):
        words = ("simulate", program, "--on", "g.pst", "-s", scheduler, "--estimates", estimates, "--json")
        ended = headrace(*words, cwd=tmp_path)
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["makespan"] == pytest.approx(61.0)


@pytest.mark.slow
def test_unknown_sizes_and_run_times_by_architecture_survive_conversion(folder: Path) -> None:
    text = (folder / "sweep.pst").read_text()
    unknown = text.replace("<file_11> <323459> <323459>", "<file_11> <323459> <0>")
    assert unknown != text
    (folder / "sweep.pst").write_text(unknown)
    assert headrace("convert", "sweep.pst", "sweep.json", cwd=folder).code == 0
    assert headrace("convert", "sweep.json", "back.pst", cwd=folder).code == 0
    plans = []
    for program in ("sweep.pst", "sweep.json", "back.pst"):
        planned = headrace("plan", program, "--on", "grid.pst", "-s", "minmin", "--json", cwd=folder)
        assert planned.code == 0, planned.err
        plans.append([(t["host"], t["finish"]) for t in json.loads(planned.out)["tasks"]])
    assert plans[0] == plans[1] == plans[2]
