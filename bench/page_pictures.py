"""The screenshots of docs/guide-page.md, made again: python -m bench.page_pictures FOLDER (2 minutes; needs chromium).

They are made in a folder of their own with small programs, so that they show the same each time.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
TESTS = Path(__file__).parents[1] / "tests"
SIZE = {"width": 1200, "height": 780}
FUNCTIONS = '''
def read(path: "Path") -> list[float]:
    """Read one number per line."""
    return [float(line) for line in path.read_text().split()]


def blur(image: list[float], sigma: float = 2.0) -> list[float]:
    """Blur an image.

    sigma is the width of the filter.
    """
    return [x / sigma for x in image]


def count(image: list[float], mode: str = "all") -> int:
    """How many pixels there are."""
    return len(image)
'''


def write_files(folder: Path) -> None:
    """A survey of the sky, machines, a pipeline and functions to draw with."""
    import headrace as hr
    from headrace.formats.wfformat import write_program

    for name in ("lookup.py", "lab.toml"):
        shutil.copy(EXAMPLES / name, folder)
    for name in ("ufmg.ini", "averager-1x5x1.ini"):
        shutil.copy(EXAMPLES / "lpsched" / name, folder)
    (folder / "functions.py").write_text(FUNCTIONS)
    program = hr.Program("survey")
    parts = []
    for i in range(8):
        raw = program.task(None, name=f"calibrate.{i}", work=8.0 + i, outputs={f"flat{i}": "4 MB"})
        parts.append(
            program.task(
                None, name=f"project.{i}", work=12.0 - i, inputs=[raw], outputs={f"image{i}": "6 MB"}
            )
        )
    mosaic = program.task(None, name="mosaic", work=20.0, inputs=parts, outputs={"mosaic": "30 MB"})
    program.task(None, name="preview", work=6.0, inputs=[mosaic])
    write_program(program, folder / "survey.json")


class Camera:
    """A tab, and where its pictures go."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self._folder = page, folder

    def view(self, name: str) -> None:
        self.page.locator("nav").get_by_role("button", name=name, exact=True).click()

    def take(self, name: str, whole: bool = False) -> None:
        self.page.wait_for_timeout(400)
        self.page.screenshot(path=self._folder / f"page-{name}.png", full_page=whole)
        print(name)

    def plan(self, scheduler: str) -> None:
        self.view("Plan")
        self.page.get_by_label("Program file").fill("survey.json")
        self.page.get_by_label("Platform file").fill("lab.toml")
        self.page.get_by_label("Scheduler").select_option(scheduler)
        self.page.get_by_role("button", name="Plan", exact=True).last.click()
        self.page.wait_for_selector(f"h2:has-text('planned by {scheduler}')")


def draw(camera: Camera) -> None:
    page = camera.page
    camera.view("Draw")
    page.get_by_label("File or module").fill("functions.py")
    page.keyboard.press("Enter")
    page.wait_for_selector(".library h3:has-text('functions.py')")
    for name in ("read", "blur"):
        page.locator(".entry").filter(has=page.locator("b", has_text=name)).first.click()
    page.get_by_label("image: list[float]").select_option("read_out")
    page.locator(".entry").filter(has=page.locator("b", has_text="count")).first.click()
    page.get_by_label("image: list[float]").select_option("blur_out")
    page.get_by_role("button", name="Arrange").click()
    page.locator(".react-flow__controls-fitview").click()
    page.wait_for_timeout(600)
    page.locator("[data-id='task:blur'] .node-title").click()
    camera.take("draw")


def plans(camera: Camera) -> None:
    page = camera.page
    camera.plan("cpop")
    camera.plan("heft")
    page.get_by_label("Compare with").select_option(index=1)
    page.wait_for_function("document.querySelectorAll('canvas').length === 2")
    camera.take("plan")
    page.get_by_label("Compare with").select_option(index=0)
    page.locator("canvas").first.focus()
    page.keyboard.press("n")
    page.wait_for_selector(".move")
    page.locator(".move select").select_option(
        "gpu" if page.locator(".move select").input_value() != "gpu" else "n1"
    )
    page.locator(".move button").click()
    page.wait_for_selector(".offers b")
    camera.take("drag")


def look_back(camera: Camera) -> None:
    from bench.causes import planted

    sys.path.insert(0, str(TESTS))
    from cli.test_report import recorded

    run = recorded(next(case for seed in range(50) if (case := planted(seed, tasks=40)).kind == "task"))
    camera.view("Look back")
    camera.page.get_by_role("button", name=run).click()
    camera.page.wait_for_selector(".late button")
    for bar in range(camera.page.locator(".late button").count()):
        camera.page.locator("canvas").click(position={"x": 300, "y": 10})  # nothing is selected
        camera.page.locator(".late button").nth(bar).click()
        if camera.page.locator(".chain li").count() > 2:
            break
    camera.take("look-back", whole=True)


def deploy(camera: Camera) -> None:
    page = camera.page
    camera.view("Deploy")
    page.get_by_label("Pipeline file").fill("averager-1x5x1.ini")
    page.get_by_label("Platform file").fill("ufmg.ini")
    page.get_by_role("button", name="Plan the deployment").click()
    page.wait_for_selector(".sankey svg")
    camera.take("deploy")
    page.get_by_label("Application").fill("lookup.py:app")
    page.locator("label:has-text('Deployment') select").select_option("none")
    page.get_by_label("Emulated speeds").fill("4,4,2,1,4")
    page.get_by_label("Repeat for").fill("60")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("path.measured", timeout=120_000)
    page.wait_for_timeout(6000)
    page.locator("h2:has-text('Run it')").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.stream-status').scrollIntoView()")
    camera.take("stream")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".stream-status:has-text('stopped')", timeout=60_000)


def simulate(camera: Camera) -> None:
    page = camera.page
    camera.view("Simulate")
    page.get_by_label("Program file").fill("survey.json")
    page.get_by_label("Platform file").fill("lab.toml")
    page.get_by_label("Scheduler").select_option("heft")
    page.get_by_label("Runs", exact=True).fill("200")
    page.get_by_role("button", name="Add a fault").click()
    page.get_by_label("Which, or how many").fill("gpu")
    page.get_by_role("button", name="Simulate").last.click()
    page.wait_for_selector(".histogram .bin", timeout=120_000)
    camera.take("simulate", whole=True)


def main() -> None:
    """Take them all, or those named after the folder."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    from playwright.sync_api import sync_playwright
    from tests.ui.serving import served

    known = {"draw": draw, "plans": plans, "look_back": look_back, "deploy": deploy, "simulate": simulate}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        os.environ["HEADRACE_HOME"] = str(Path(folder) / ".headrace")
        write_files(Path(folder))
        with served(Path(folder)) as page:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport=SIZE)
            tab.goto(page.link)
            tab.wait_for_selector("nav button")
            for name in sys.argv[2:] or known:
                known[name](Camera(tab, Path(sys.argv[1])))
            browser.close()


if __name__ == "__main__":
    main()
