"""Searches, comparisons, charts and experiments in a real browser, driven as a user does."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")
pytest.importorskip("playwright.sync_api", reason="needs playwright")
from playwright.sync_api import expect

from headrace.cli import run_command
from headrace.formats.wfformat import write_program
from headrace.testing.generate import random_program
from ui.browsing import AXE, Tab

pytestmark = pytest.mark.slow
TINY = """
import headrace as hr


def blur(width=1.0, steps=1):
    return width * steps


program = hr.Program("tiny")
program.task(blur, outputs=["value"], name="blur")
"""
SWEEP = """
program = "tiny.py:program"
[set.blur]
width = [1.0, 2.0]
steps = [1, 3]
"""
LAB = Path(__file__).parents[2] / "examples" / "lab.toml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    write_program(random_program(4, 120), tmp_path / "random.json")
    (tmp_path / "lab.toml").write_text(LAB.read_text())
    return tmp_path


def plan(page: Any, scheduler: str) -> None:
    page.get_by_label("Program file").fill("random.json")
    page.get_by_label("Platform file").fill("lab.toml")
    page.get_by_label("Scheduler").select_option(scheduler)
    page.get_by_role("button", name="Plan", exact=True).last.click()


def chart(page: Any, expression: str, number: int = 0) -> Any:
    """What the chart on the page knows: `panel` is its panel."""
    return page.evaluate(
        f"(() => {{ const panel = document.querySelectorAll('.gantt')[{number}].panel; return {expression}; }})()"
    )


def test_a_search_is_stopped_when_it_is_good_enough(tab: Tab, folder: Path):
    write_program(random_program(11, 300), folder / "random.json")
    page = tab.page
    plan(page, "minmin")
    page.wait_for_selector("h2:has-text('planned by minmin')")
    page.get_by_label("Scheduler").select_option("best")
    page.get_by_label("Search for").fill("600")
    page.get_by_role("button", name="Plan", exact=True).last.click()
    status = page.locator(".gap [role=status]")
    expect(status).to_contain_text("gap to the bound", timeout=60_000)
    first = status.inner_text()
    expect(status).not_to_have_text(first, timeout=30_000)  # it goes on
    assert page.locator(".gap-chart polyline").count() == 2
    page.get_by_role("button", name="Good enough").click()
    page.wait_for_selector("h2:has-text('planned by best')", timeout=60_000)
    page.get_by_label("Compare with").select_option(index=1)
    expect(page.locator("canvas")).to_have_count(2)
    boxes = [page.locator("canvas").nth(number).bounding_box() for number in range(2)]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]  # side by side
    ends = [chart(page, "panel.data.end", number) for number in range(2)]
    assert ends[0] == ends[1]  # on one time axis


def test_a_chart_has_links_waits_critical_path_bound_and_utilisation(tab: Tab):
    page = tab.page
    plan(page, "heft")
    page.wait_for_selector("canvas")
    legend = page.locator(".legend").inner_text()
    assert "lower bound" in legend
    assert "utilisation" in legend
    assert len(chart(page, "panel.data.critical")) > 3
    place, name = chart(
        page,
        "(() => { const [, bars] = panel.data.links[0], lane = panel.data.lanes.length, view = panel.view;"
        " const at = view.placeOf.call(Object.assign(Object.create(view),"
        " { data: { ...panel.data, lane: panel.data.lane.map(() => lane) } }), bars[0]);"
        " return [[at.x, at.y - 6], panel.data.names[bars[0]]]; })()",
    )
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    tip = page.locator(".tip")
    expect(tip).to_be_visible()
    assert " from " in name
    assert "Waited for" in tip.inner_text()
    before = chart(page, "panel.view.fullHeight")
    page.get_by_label("links").uncheck()
    assert chart(page, "panel.view.fullHeight") < before


def test_an_experiment_is_looked_at(tab: Tab, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    (folder / "tiny.py").write_text(TINY)
    (folder / "tiny.toml").write_text(SWEEP)
    assert run_command(["sweep", "tiny.toml", "--workers", "1", "--scheduler", "heft"]) == 0
    page = tab.page
    tab.view("Experiments")
    page.get_by_role("button", name="tiny", exact=True).click()
    page.wait_for_selector("img.plot")
    assert "4 rows" in page.locator("article").inner_text()
    page.get_by_label("A curve for each").select_option("steps")
    page.get_by_label("Plot").select_option("value")
    page.get_by_label("Over").select_option("width")
    plot = page.locator("img.plot[alt='value Over width']")
    expect(plot).to_be_visible()
    assert plot.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text())))
    values = {(float(row["width"]), int(row["steps"])): float(row["value"]) for row in rows}
    assert values == {(1.0, 1): 1.0, (1.0, 3): 3.0, (2.0, 1): 2.0, (2.0, 3): 6.0}
    page.get_by_label("Only rows where").fill("width = 2")
    page.keyboard.press("Enter")
    expect(page.locator("article")).to_contain_text("2 rows")
    if AXE.is_file():
        assert tab.serious() == []
