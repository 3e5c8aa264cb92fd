"""The page in a real browser, driven as a user does; nothing leaves the machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")
pytest.importorskip("playwright.sync_api", reason="needs playwright")
from bench.causes import planted
from playwright.sync_api import sync_playwright

import headrace as hr
from cli.test_report import recorded
from headrace.formats.wfformat import write_program
from headrace.report.interactive import run_report
from headrace.report.schedule_data import FinishedRun
from ui.serving import Page, served

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]
LAB = Path(__file__).parents[2] / "examples" / "lab.toml"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    program = hr.Program("two")
    before = program.task(None, name="one", work=1.0, outputs={"x": 1e6})
    program.task(None, name="two", inputs=[before], work=2.0)
    write_program(program, tmp_path / "two.json")
    (tmp_path / "lab.toml").write_text(LAB.read_text())
    return tmp_path


class Tab:
    """A tab that notes errors and requests."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console", lambda said: self.problems.append(said.text) if said.type == "error" else None
        )
        self.page.on("request", lambda request: self.asked.append(request.url))


@pytest.fixture
def served_page(folder: Path) -> Iterator[Page]:
    with served(folder) as page:
        yield page


@pytest.fixture
def tab(browser: Any, served_page: Page) -> Iterator[Tab]:
    made = Tab(browser, viewport={"width": 1200, "height": 900})
    made.page.goto(served_page.link)
    made.page.wait_for_selector("nav button")
    yield made
    assert made.problems == []
    assert [url for url in made.asked if not url.startswith((served_page.origin, "data:"))] == []
    made.page.close()


def test_plan_two_ways_and_compare(tab: Tab):
    page = tab.page
    page.get_by_label("Program file").fill("two.json")
    page.get_by_label("Platform file").fill("lab.toml")
    for scheduler, count in (("heft", 1), ("minmin", 2)):
        page.get_by_label("Scheduler").select_option(scheduler)
        page.get_by_role("button", name="Plan", exact=True).last.click()
        page.wait_for_selector(f"h2:has-text('planned by {scheduler}')")
        assert page.locator("canvas").count() == 1
        assert page.get_by_label("Compare with").locator("option").count() == count
    page.get_by_label("Compare with").select_option(index=1)
    page.wait_for_selector("h2:has-text('planned by heft')")
    assert page.locator("canvas").count() == 2


def test_a_bar_tells_what_it_waited_for(tab: Tab):
    page = tab.page
    page.get_by_label("Program file").fill("two.json")
    page.get_by_label("Platform file").fill("lab.toml")
    page.get_by_role("button", name="Plan", exact=True).last.click()
    chart = page.locator("canvas")
    chart.focus()
    page.keyboard.press("n")
    page.wait_for_selector(".details h3:has-text('one')")
    assert "Waited for nothing." in page.locator(".details").inner_text()
    page.keyboard.press("n")
    page.wait_for_selector(".details p:has-text('Waited for')")


def test_errors_of_rules_are_shown_in_place(tab: Tab):
    page = tab.page
    page.get_by_role("button", name="Rules").click()
    page.get_by_label("Rules").last.fill("assert nonsense")
    page.wait_for_selector("#rule-errors li:has-text('1:8')")
    page.get_by_label("Rules").last.fill("assert relationship requirement ((select max(task-fin")
    page.get_by_role("button", name="task-finish-time").click()
    assert page.get_by_label("Rules").last.input_value().endswith("task-finish-time")


def test_looking_back_finds_the_cause(tab: Tab):
    case = planted(0, tasks=20)
    run = recorded(case)
    page = tab.page
    page.get_by_role("button", name="Look back").click()
    page.get_by_role("button", name=run).click()
    page.wait_for_selector(".late button")
    page.locator(".late button").first.click()
    page.wait_for_selector(".chain .root")
    assert f"{case.name} took" in " ".join(page.locator(".chain .root").inner_text().split())


def test_a_run_is_watched(tab: Tab):
    page = tab.page
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_label("Program file").fill("two.json")
    page.get_by_label("emulate").check()
    assert "two.json" in page.locator(".warning").inner_text()
    page.locator("button[type=submit]").click()
    page.wait_for_selector("[role=status]:has-text('done')", timeout=60_000)
    page.wait_for_selector("canvas")


def test_a_second_visitor_is_refused(browser: Any, served_page: Page, tab: Tab):
    stranger = browser.new_context().new_page()
    assert stranger.goto(served_page.origin).status == 401
    assert stranger.goto(served_page.link).status == 401
    stranger.close()
    assert tab.page.reload().status == 200


@pytest.mark.parametrize("width", [400, 3000])
def test_narrow_and_wide(browser: Any, served_page: Page, width: int):
    tab = Tab(browser, viewport={"width": width, "height": 800}, color_scheme="dark")
    tab.page.goto(served_page.link)
    tab.page.wait_for_selector("nav button")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.problems == []
    tab.page.close()


def test_a_report_is_drawn_without_a_server(browser: Any, tmp_path: Path):
    case = planted(0, tasks=20)
    file = tmp_path / "report.html"
    file.write_text(run_report(FinishedRun(case.events, case.plan.graph, case.plan.platform, case.plan)))
    tab = Tab(browser)
    tab.page.goto(file.as_uri())
    tab.page.wait_for_selector("html[data-ready]")
    tab.page.locator(".late button").first.click()
    assert case.name in tab.page.locator(".chain .root").inner_text()
    colours = tab.page.evaluate(
        """() => { const c = document.querySelector("canvas");
        const p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        const found = new Set(); for (let i = 0; i < p.length; i += 4) found.add(p[i] << 16 | p[i+1] << 8 | p[i+2]);
        return found.size; }"""
    )
    assert colours > 5
    assert tab.problems == []
    assert tab.asked == [file.as_uri()]
    tab.page.close()
