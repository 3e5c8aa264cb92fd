"""The page in a real browser, driven as a user does; nothing leaves the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")
pytest.importorskip("playwright.sync_api", reason="needs playwright")
from bench.causes import Planted
from playwright.sync_api import expect

import headrace as hr
from cli.test_report import recorded
from headrace.formats.wfformat import write_program
from headrace.model.events import TaskFinished
from headrace.report.interactive import run_report
from headrace.report.schedule_data import FinishedRun
from headrace.testing.generate import random_program
from ui.browsing import AXE, Tab
from ui.serving import Page
from ui.test_deployments import write_case
from ui.test_look_back import simple_case

pytestmark = pytest.mark.slow
LAB = Path(__file__).parents[2] / "examples" / "lab.toml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / ".headrace"))
    program = hr.Program("two")
    before = program.task(None, name="one", work=1.0, outputs={"x": 1e6})
    program.task(None, name="two", inputs=[before], work=2.0)
    write_program(program, tmp_path / "two.json")
    (tmp_path / "lab.toml").write_text(LAB.read_text())
    return tmp_path


FUNCTIONS = '''
print("functions.py is executed")


def read(path: "Path") -> list[float]:
    """Read one number per line."""
    return [float(line) for line in path.read_text().split()]


def blur(image: list[float], sigma: float = 2.0) -> list[float]:
    """Blur an image."""
    return [x / sigma for x in image]


def count(image: list[float], mode: str = "all") -> int:
    return len(image)
'''


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


def late_case() -> Planted:
    """A run whose second task took three times its estimate."""
    program = hr.Program("late")
    before = program.task(None, name="a", work=1.0, outputs={"x": 0.0})
    before = program.task(None, name="b", inputs=[before], work=1.0, outputs={"y": 0.0})
    program.task(None, name="c", inputs=[before], work=1.0)
    plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6), "heft")
    times = {"a": (0.0, 1.0), "b": (1.0, 4.0), "c": (4.0, 5.0)}
    return Planted("task", "b", plan, [TaskFinished(f, name, "h0", s) for name, (s, f) in times.items()])


def test_looking_back_finds_the_cause(tab: Tab):
    case = late_case()
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


class Drawing:
    """The view Draw, used as a person does."""

    def __init__(self, tab: Tab) -> None:
        self.page = tab.page
        self.page.get_by_role("button", name="Draw").click()

    def library(self, place: str) -> None:
        self.page.get_by_label("File or module").fill(place)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f".library h3:has-text('{place}')")

    def add(self, *names: str) -> None:
        for name in names:
            self.page.locator(".entry").filter(has=self.page.locator("b", has_text=name)).first.click()

    def arrange(self) -> None:
        self.page.get_by_role("button", name="Arrange").click()
        self.page.locator(".react-flow__controls-fitview").click()
        self.page.wait_for_timeout(300)

    def join(self, source: str, item: str, target: str, parameter: str) -> None:
        ends = [self._handle(source, f"out:{item}"), self._handle(target, f"in:{parameter}")]
        self.page.mouse.move(*ends[0])
        self.page.mouse.down()
        self.page.mouse.move(*ends[1], steps=4)
        self.page.mouse.up()

    def _handle(self, node: str, port: str) -> tuple[float, float]:
        found = self.page.locator(f"[data-id='{node}'] .react-flow__handle[data-handleid='{port}']")
        box = found.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    @property
    def edges(self) -> int:
        return int(self.page.locator(".react-flow__edge").count())

    def source(self, shown: str) -> str:
        self.page.wait_for_timeout(700)
        self.page.get_by_role("button", name=shown, exact=True).last.click()
        return str(self.page.locator(".source pre").inner_text())


def test_a_program_is_drawn_saved_opened_and_run(tab: Tab, folder: Path, capfd: pytest.CaptureFixture[str]):
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "file.txt").write_text("1\n2\n3\n")
    draw, page = Drawing(tab), tab.page
    draw.library("functions.py")
    draw.add("File input", "read", "blur", "count", "Result")
    draw.arrange()
    draw.join("input:file", "file", "task:read", "path")
    draw.join("task:read", "read_out", "task:blur", "image")
    draw.join("task:blur", "blur_out", "task:count", "image")
    expect(page.locator(".react-flow__edge")).to_have_count(3)
    draw.join("task:count", "count_out", "task:blur", "image")
    page.wait_for_selector(".message:has-text('would wait for itself')")
    draw.join("input:file", "file", "task:count", "image")
    page.wait_for_selector(".message:has-text('it is Path, and list[float] is expected')")
    draw.join("task:count", "count_out", "result:0", "")
    expect(page.locator(".react-flow__edge")).to_have_count(4)
    page.keyboard.press("Control+z")
    expect(page.locator(".react-flow__edge")).to_have_count(3)
    page.keyboard.press("Control+y")
    expect(page.locator(".react-flow__edge")).to_have_count(4)
    page.locator("[data-id='task:blur'] .node-title").click()
    page.get_by_label("Value sigma").fill("4.0")
    page.keyboard.press("Enter")
    assert "set = { sigma = 4.0 }" in draw.source("File")
    assert "partial(blur, sigma=4.0)" in draw.source("Python")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".message:has-text('Saved program.toml')")
    page.get_by_role("button", name="New").click()
    expect(page.locator(".react-flow__node")).to_have_count(0)
    page.get_by_label("Open").select_option("program.toml")
    expect(page.locator(".react-flow__edge")).to_have_count(4)
    assert "executed" not in capfd.readouterr().out
    page.get_by_role("button", name="Run it").click()
    page.wait_for_selector(".warning:has-text('program.toml')")
    page.locator("summary:has-text('will be executed')").click()
    assert "function functions.py:blur" in page.locator("details").inner_text()
    page.locator("button[type=submit]").click()
    page.wait_for_selector("[role=status]:has-text('done')", timeout=120_000)
    page.get_by_role("button", name="Look back").click()
    page.locator("td button").first.click()
    page.get_by_role("button", name="count_out").click()
    page.wait_for_selector(".preview pre:has-text('3')")


def test_drawing_with_the_keyboard(tab: Tab, folder: Path):
    (folder / "functions.py").write_text(FUNCTIONS)
    draw, page = Drawing(tab), tab.page
    draw.library("functions.py")
    for name in ("Value", "blur", "count"):
        entry = page.locator(".entry").filter(has=page.locator("b", has_text=name)).first
        entry.focus()
        page.keyboard.press("Enter")
    page.get_by_label("image: list[float]").select_option("blur_out")
    expect(page.locator(".react-flow__edge")).to_have_count(1)
    page.locator("[data-id='task:blur']").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".form h3:has-text('functions.py:blur')")
    options = page.get_by_label("image: list[float]").locator("option").all_inner_texts()
    assert options == ["not connected"]  # a number is no list, and count comes after it
    page.locator("[data-id='task:blur']").focus()
    page.keyboard.press("Delete")
    expect(page.locator(".react-flow__node")).to_have_count(2)


def test_a_large_program_opens_in_place(tab: Tab, folder: Path):
    write_program(random_program(2, 10_000), folder / "large.json")
    draw, page = Drawing(tab), tab.page
    page.reload()
    page.get_by_label("Open").select_option("large.json")
    page.wait_for_selector("[role=status]:has-text('10,000 tasks')", timeout=60_000)
    boxes = page.locator(".react-flow__node:not(:has(.small)) .node button")
    boxes.first.dispatch_event("click")  # it may be small
    page.wait_for_selector(".node.small")
    assert draw.edges > 0


def test_a_dragged_bar_gives_a_rule(tab: Tab):
    page = tab.page
    page.get_by_label("Program file").fill("two.json")
    page.get_by_label("Platform file").fill("lab.toml")
    page.get_by_label("Scheduler").select_option("heft")
    page.get_by_role("button", name="Plan", exact=True).last.click()
    chart = page.locator("canvas")
    for _ in range(100):  # the chart is drawn again, without the focus, as soon as its bars can be moved
        chart.focus()
        page.keyboard.press("n")
        if page.locator(".move").is_visible():
            break
        page.wait_for_timeout(300)
    where = page.evaluate(
        """() => { const panel = document.querySelector(".gantt").panel, bar = panel.selected, data = panel.data;
        const lane = data.lanes.findIndex(([host, thin], at) => !thin && host !== data.lanes[data.lane[bar]][0]);
        const end = panel.view.placeOf(bar), other = panel.view.placeOf.call(Object.assign(Object.create(panel.view),
          { data: { ...data, lane: data.lane.map(() => lane) } }), bar);
        return [end, other, data.lanes[lane][0], data.names[bar]]; }"""
    )
    start, end, host, task = where
    box = chart.bounding_box()
    page.mouse.move(box["x"] + start["x"], box["y"] + start["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + end["x"], box["y"] + end["y"], steps=4)
    page.mouse.up()
    page.wait_for_selector(f".offers b:has-text('{task} on {host}')")
    page.get_by_role("button", name="Take it and plan again").first.click()
    page.wait_for_selector("[role=status]:has-text('With the rule')", timeout=60_000)
    page.wait_for_selector("td:has-text('kept')")
    page.get_by_role("button", name="Rules").click()
    assert f"on-{host}" in page.get_by_label("Rules").last.input_value()


def fill(tab: Tab, view: str) -> None:
    """Give a view something to show."""
    page = tab.page
    tab.view(view)
    if view == "Draw":
        draw = Drawing(tab)
        draw.library("functions.py")
        draw.add("File input", "read", "blur")
    elif view == "Plan":
        page.get_by_label("Program file").fill("two.json")
        page.get_by_role("button", name="Plan", exact=True).last.click()
        page.wait_for_selector("canvas")
    elif view == "Rules":
        page.get_by_label("Rules").last.fill("assert nonsense")
        page.wait_for_selector("#rule-errors li")
    elif view == "Deploy":
        page.get_by_label("Pipeline file").fill("squares.ini")
        page.get_by_label("Platform file").fill("machines.ini")
        page.get_by_role("button", name="Plan the deployment").click()
        page.wait_for_selector(".sankey svg")
        page.locator(".sankey summary").click()
    elif view == "Simulate":
        page.get_by_label("Runs", exact=True).fill("1")
        page.get_by_role("button", name="Add a fault").click()
        page.get_by_label("What").select_option("slow")
        page.get_by_role("button", name="Simulate").last.click()
        page.wait_for_selector(".histogram .bin", timeout=60_000)
    elif view == "Look back":
        page.locator("td button").first.click()
        page.wait_for_selector("canvas")


def test_every_view_for_screen_readers_in_the_dark_and_on_a_phone(tab: Tab, folder: Path):
    (folder / "functions.py").write_text(FUNCTIONS)
    write_case(folder)
    recorded(simple_case())
    page = tab.page
    found: dict[tuple[str, str], object] = {}
    views = page.locator("nav button").all_inner_texts()
    assert len(views) == 8
    for view in views:
        fill(tab, view)
        for scheme in ("light", "dark") if AXE.is_file() else ():
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(200)
            found[view, scheme] = tab.serious()
        page.set_viewport_size({"width": 400, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found[view, "width"] = [] if wide <= 400 else [wide]
        page.set_viewport_size({"width": 1200, "height": 900})
    assert not any(found.values()), found
    if not AXE.is_file():
        pytest.skip("axe-core is not there: make page/node_modules")


def test_a_second_visitor_is_refused(browser: Any, served_page: Page, tab: Tab):
    stranger = browser.new_context().new_page()
    assert stranger.goto(served_page.origin).status == 401
    assert stranger.goto(served_page.link).status == 401
    stranger.close()
    assert tab.page.reload().status == 200


def test_a_wide_screen(browser: Any, served_page: Page):
    width = 3000
    tab = Tab(browser, viewport={"width": width, "height": 800}, color_scheme="dark")
    tab.page.goto(served_page.link)
    tab.page.wait_for_selector("nav button")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.problems == []
    tab.page.close()


def test_a_report_is_drawn_without_a_server(browser: Any, tmp_path: Path):
    case = late_case()
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
