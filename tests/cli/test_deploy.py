"""`headrace deploy` on real files, as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.formats.deployment_ini import read_deployment
from headrace.formats.pipeline_ini import read_pipeline
from headrace.formats.platform_ini import read_machines
from headrace.model.pipeline import PipelineProblem

EXAMPLES = Path(__file__).parents[2] / "examples" / "lpsched"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in EXAMPLES.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def test_words(folder: Path) -> None:
    files = ("-o", "d.ini", "--plot", "d.svg")
    ended = headrace("deploy", "microscope.ini", "--on", "maryland.ini", *files, cwd=folder)
    assert ended.code == 0, ended.err
    for words in (
        "MD2..32",
        "first relaxation",
        "12.5 MB/s: 100 MB in 8 s",
        "45 of 48",
        "the reader's port carries 12.5 of the 16.67 MB/s it could read",
        "W_X 0.1",
        "gap 0.00%",
        "at full rate filter Decompress needs 41 hosts of this power and the other filters leave 32",
    ):
        assert words in ended.out
    assert (folder / "d.svg").read_text().startswith("<svg")
    pipeline = read_pipeline(folder / "microscope.ini")
    problem = PipelineProblem(pipeline, read_machines(folder / "maryland.ini").platform, pipeline.knobs)
    saved = read_deployment(folder / "d.ini", problem)
    assert saved.check() == []
    assert [saved.copies(f.name) for f in pipeline.filters] == [1, 31, 7, 5, 1]


def test_json_and_toml(folder: Path) -> None:
    ended = headrace("deploy", "microscope.toml", "--on", "maryland.ini", "--json", cwd=folder)
    assert ended.code == 0, ended.err
    made = json.loads(ended.out)
    assert made["copies"] == {"Reader": 1, "Decompress": 31, "Clip": 7, "Zoom": 5, "View": 1}
    assert made["throughput"] == pytest.approx(12.5)
    assert made["gap"] < 1e-4
    assert {"placements", "flows", "limits", "notes", "bound", "seconds", "knobs"} <= made.keys()
    assert sum(f["rate"] for f in made["flows"] if f["stream"] == ["Clip", "Zoom"]) == pytest.approx(60)


def test_comparison(folder: Path) -> None:
    args = ("--compare", "trivial,total,lpsched", "--json")
    ended = headrace("deploy", "microscope.ini", "--on", "maryland.ini", *args, cwd=folder)
    rows = json.loads(ended.out)["deployments"]
    rates = [rows[name]["throughput"] for name in ("trivial", "total", "lpsched")]
    assert rates == sorted(rates)
    assert [len(rows[name]["hosts_used"]) for name in ("trivial", "total", "lpsched")] == [5, 48, 45]
    table = headrace("deploy", "microscope.ini", "--on", "maryland.ini", *args[:2], cwd=folder)
    assert "1 + 35 + 6 + 5 + 1" in table.out


def test_load_source_and_knobs(folder: Path) -> None:
    def copies(*args: str) -> dict[str, int]:
        ended = headrace("deploy", "averager-1x7x1.ini", "--on", "ufmg.ini", "--json", *args, cwd=folder)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)["copies"] | {"source": json.loads(ended.out)["source"]}

    assert copies()["ArrayAdder"] == 7
    assert copies("--load", "ufmg-load.csv")["ArrayAdder"] == 10
    assert copies("--spare", "0.5")["ArrayAdder"] > 8
    assert copies("--sources", "sources.ini")["source"] == "MG13-16"
    two = copies("--source", "MG2", "--source", "MG13=0.5,MG14=0.5")
    assert two["source"] == "MG2"
    assert copies("--several-per-host")["ArrayAdder"] >= 7


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--source", "MG99"), "no host 'MG99'"),
        (("--source", "MG1=x"), "--source is 'MG1=x'"),
        (("--source", "MG1=0.5,MG2=0.4"), "shares sum to 0.9"),
        (("--load", "nowhere.csv"), "nowhere.csv"),
        (("--load", "busy.csv"), "load 1.5 at 0 s"),
        (
            ("--plot", "d.html"),
            "d.html: pictures are drawn as SVG, not HTML (try: d.svg)",
        ),
        (("--load", "forecast"), "no host of the platform has a trace"),
        (("--load", "record"), "the record has no repeated executions"),
        (("--compare", "lpsched,best"), "no deployment planner 'best'"),
        (("--least", "2"), "W_MIN"),
        (("--time", "0"), "time 0"),
        (("--gap", "-1"), "gap -1"),
    ],
)
def test_bad_usage_is_exit_2(args: tuple[str, ...], words: str, folder: Path) -> None:
    (folder / "busy.csv").write_text("MG2,1.5\n")
    ended = headrace("deploy", "averager-1x2x1.ini", "--on", "ufmg.ini", *args, cwd=folder)
    assert ended.code == 2, ended.out
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_no_plan_is_exit_3(folder: Path) -> None:
    (folder / "two.ini").write_text("[cluster a]\nbandwidth = 10\n[host MG1..2]\npower = 1\n")
    ended = headrace("deploy", "averager-1x2x1.ini", "--on", "two.ini", cwd=folder)
    assert ended.code == 3
    assert "need 3 hosts, but there are 2" in ended.err
    shared = headrace("deploy", "averager-1x2x1.ini", "--on", "two.ini", "--several-per-host", cwd=folder)
    assert shared.code == 0, shared.err


def test_a_platform_in_ini_is_one_for_every_command(folder: Path) -> None:
    from headrace.model.platform import Platform

    assert len(Platform.read(folder / "ufmg.ini").hosts) == 19


def test_check_judges_deployments(folder: Path) -> None:
    made = headrace(
        "deploy", "microscope.ini", "--on", "maryland.ini", "--host-cost", "0.2", "-o", "d.ini", cwd=folder
    )
    assert made.code == 0, made.err
    good = headrace("check", "microscope.ini", "maryland.ini", "d.ini", cwd=folder)
    assert good.code == 0, good.err
    assert "5 filters (Reader, Decompress, Clip, Zoom, View)" in good.out
    assert "12.5 MB/s on 45 hosts: valid" in good.out
    path = folder / "d.ini"
    path.write_text(path.read_text().replace("MD33 = 1, ", "MD47 = 1, "))
    bad = headrace("check", "microscope.ini", "maryland.ini", "d.ini", cwd=folder)
    assert bad.code == 2
    assert "13: " in bad.out
    alone = headrace("check", "d.ini", cwd=folder)
    assert alone.code == 2
    assert "headrace check PIPELINE PLATFORM d.ini" in alone.err


def test_check_finds_wrong_statements_of_a_deployment(folder: Path) -> None:
    files = ["microscope.ini", "maryland.ini"]
    made = headrace("deploy", files[0], "--on", files[1], "-o", "d.ini", cwd=folder)
    assert made.code == 0, made.err
    assert headrace("check", *files, "d.ini", cwd=folder).code == 0
    good = (folder / "d.ini").read_text()
    for old, new, said in (
        ("pipeline = microscope", "pipeline = telescope", "made for 'telescope', not for 'microscope'"),
        ("planner = lpsched", "planner = guess", "'guess' is not one of"),
        (
            "predicted_seconds = 8.0",
            "predicted_seconds = 9.0",
            "predicted_seconds is 9; the throughput gives 8",
        ),
        ("\nMD1 -> MD2 =", "\nMD1 -> MD48 =", "flow from 'Reader' on MD1 to 'Decompress' on MD48"),
    ):
        assert old in good, old
        (folder / "bad.ini").write_text(good.replace(old, new, 1))
        ended = headrace("check", *files, "bad.ini", cwd=folder)
        assert (ended.code, said in ended.out) == (2, True), ended.out
