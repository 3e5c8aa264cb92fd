"""Deployments, streams and simulations in a real browser, driven as a user does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")
pytest.importorskip("playwright.sync_api", reason="needs playwright")
from playwright.sync_api import expect

from runtime.test_drawn_app import FILTERS
from ui.browsing import AXE, Tab
from ui.test_deployments import write_case

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    write_case(tmp_path)
    return tmp_path


def test_a_pipeline_is_deployed_run_and_stopped(tab: Tab, folder: Path):
    page = tab.page
    tab.view("Deploy")
    page.get_by_label("Pipeline file").fill("squares.ini")
    page.get_by_label("Platform file").fill("machines.ini")
    page.get_by_role("button", name="Plan the deployment").click()
    page.wait_for_selector("h2:has-text('squares on lab')")
    chart = page.locator(".sankey svg")
    assert chart.locator("text.filter").all_text_contents() == ["count", "square", "total"]
    widths = [
        float(w)
        for w in chart.locator("path.planned").evaluate_all(
            "all => all.map(p => p.getAttribute('stroke-width'))"
        )
    ]
    titles = chart.locator("g > title").all_text_contents()
    rates = [float(re.search(r"planned ([\d.e-]+) MB/s", title)[1]) for title in titles if "planned" in title]
    assert [w / widths[0] for w in widths] == pytest.approx([r / rates[0] for r in rates], rel=0.02)
    page.locator("article").get_by_label("File").fill("mine.ini")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector("[role=status]:has-text('Saved mine.ini')")
    assert (folder / "mine.ini").is_file()
    page.get_by_label("Application").fill("squares.py:app")
    assert "squares.py:app" in page.locator(".warning").inner_text()
    page.get_by_label("Repeat for").fill("300")
    page.get_by_role("button", name="Start").click()
    live = page.locator(".sankey").last
    expect(live.locator("path.measured").first).to_be_visible(timeout=60_000)
    cells = live.locator("tbody tr").first.locator("td")
    expect(cells.nth(3)).to_contain_text("MB/s")
    before = page.locator(".summary").last.inner_text()
    expect(page.locator(".summary").last).not_to_have_text(before, timeout=10_000)  # it goes on
    assert cells.nth(0).inner_text() == "count on n1"
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".stream-status:has-text('stopped')", timeout=60_000)
    if AXE.is_file():
        assert tab.serious() == []


def test_a_program_is_simulated_with_faults(tab: Tab):
    page = tab.page
    tab.view("Simulate")
    page.get_by_label("Program file").fill("random.json")
    page.get_by_label("Platform file").fill("machines.ini")
    page.get_by_label("Scheduler").select_option("heft")
    page.get_by_label("Runs", exact=True).fill("5")
    page.get_by_label("First seed").fill("3")
    page.get_by_role("button", name="Add a fault").click()
    page.get_by_label("What").select_option("slow")
    page.get_by_label("Which, or how many").fill("n2")
    page.get_by_label("Share of speed left").fill("0.25")
    page.get_by_label("At [s").fill("10%")
    page.get_by_role("button", name="Simulate").last.click()
    page.wait_for_selector(".histogram .bin", timeout=60_000)
    told = page.locator("article code").inner_text()
    assert told.endswith("--runs 5 --seed 3 --error 0.2 --faults 'slow=n2*0.25@10%'")
    bins = page.locator(".histogram .bin title").all_text_contents()
    assert sum(int(one.rpartition(": ")[2]) for one in bins) == 5
    page.locator("summary:has-text('All runs')").click()
    seeds = page.locator(".histogram tbody tr td:first-child").all_inner_texts()
    assert seeds == ["3", "4", "5", "6", "7"]
    values = page.evaluate("fetch('/api/jobs/1').then((answer) => answer.json())")["makespans"]
    median = page.locator(".mark text").first.text_content()
    shown = page.locator(".summary div", has_text="median").inner_text().split()
    assert shown[-2:] == ["(seed", f"{3 + values.index(sorted(values)[2])})"]
    assert median.split()[1:] == shown[1:3]
    if AXE.is_file():
        assert tab.serious() == []


def test_a_pipeline_is_drawn_and_run(tab: Tab, folder: Path):
    (folder / "my_filters.py").write_text(FILTERS)
    page = tab.page
    tab.view("Draw")
    page.get_by_label("File or module").fill("my_filters.py")
    page.keyboard.press("Enter")
    entries = page.locator(".library .entry")
    for name in ("Value", "Numbers", "Times", "Total"):
        entries.filter(has=page.locator("b", has_text=name)).first.click()
        if name in ("Times", "Total"):
            options = page.locator("label:has-text('streams') select")
            options.select_option("Numbers_out" if name == "Times" else "Times_out")
    assert "value" not in options.locator("option").all_inner_texts()  # it is no stream
    page.locator("[data-id='input:value'] .node-title").click()
    page.get_by_label("Name").last.fill("most")
    page.keyboard.press("Enter")
    page.get_by_label("Value", exact=True).last.fill("50")
    page.keyboard.press("Enter")
    expect(page.locator(".source pre")).to_contain_text("app.stream('Times', 'Total')")
    expect(page.locator(".source pre")).to_contain_text("Unit('all', {'most': 50})")
    page.get_by_role("button", name="Run it").click()
    expect(page.get_by_label("Application")).to_have_value("program.toml")
    page.get_by_label("Emulated speeds").fill("1,1")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(".stream-status:has-text('done')", timeout=90_000)
    parts = (folder / "results" / "all.Total").read_text().split()  # one of each copy
    assert sum(map(int, parts)) == 2 * sum(range(50))
