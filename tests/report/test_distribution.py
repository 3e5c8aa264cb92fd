"""The distribution of makespans as rows, JSON and a picture."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from headrace.experiment.repeat import Makespans
from headrace.report.distribution import histogram_svg, makespans_json, makespans_rows, write_histogram

SVG = "{http://www.w3.org/2000/svg}"


def skewed(runs: int, scale: float = 1.0) -> Makespans:
    return Makespans((2000 + 50 * np.random.default_rng(1).gamma(2, 2, runs)) * scale, seed=10, seconds=0.5)


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e3])
@pytest.mark.parametrize("runs", [1, 7, 1000])
def test_every_run_is_in_one_column(runs: int, scale: float) -> None:
    root = ElementTree.fromstring(histogram_svg(skewed(runs, scale), "t", {"planned": 1900 * scale}))
    counts = [re.match(r"([\d,]+) runs", t.text or "") for t in root.iter(f"{SVG}title")]
    assert sum(int(m[1].replace(",", "")) for m in counts if m) == runs
    assert len([m for m in counts if m]) <= 60


def test_everything_is_inside_the_picture() -> None:
    root = ElementTree.fromstring(histogram_svg(skewed(500), "t", {"planned": 100.0}))
    width = float(root.get("width", "0"))
    for rect in root.findall(f"{SVG}rect")[1:]:
        assert (
            0
            <= float(rect.get("x", "-1"))
            <= float(rect.get("x", "0")) + float(rect.get("width", "0"))
            <= width
        )
    assert all(0 <= float(text.get("x", "-1")) <= width for text in root.findall(f"{SVG}text"))


def test_marks_are_named_and_names_are_escaped() -> None:
    picture = histogram_svg(skewed(100), "<b> & co", {"planned": 1900.0})
    assert "<b>" not in picture
    texts = [t.text or "" for t in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert "<b> & co" in texts
    assert {t.split(":")[0] for t in texts if ": " in t} == {"planned", "median", "95 %", "worst"}


@pytest.mark.parametrize("failed", [0.3, 1.0])
def test_runs_that_never_ended_are_told(failed: float, tmp_path: Path) -> None:
    values = skewed(50).values.copy()
    values[: round(failed * 50)] = np.inf
    made = Makespans(values, seed=0)
    write_histogram(tmp_path / "h.svg", made, "t")
    assert f"{round(failed * 50)} of which never ended" in (tmp_path / "h.svg").read_text()
    assert ["never ended", f"{round(failed * 50)}"] in makespans_rows(made)
    found = json.loads(json.dumps(makespans_json(made), allow_nan=False))
    assert found["failed"] == round(failed * 50)
    assert found["makespan"]["worst"] is None
    assert found["makespans"].count(None) == found["failed"]


def test_json_names_the_seeds_to_look_at_again() -> None:
    made = skewed(101)
    found = makespans_json(made)
    assert found["makespans"][found["seeds"]["worst"] - 10] == found["makespan"]["worst"] == made.values.max()
    assert found["makespans"][found["seeds"]["median"] - 10] == found["makespan"]["median"]
    assert found["makespan"]["median"] == pytest.approx(np.median(made.values))
