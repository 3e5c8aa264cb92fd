"""The chart of 10,000 and 100,000 tasks in a browser: python -m bench.page (40 s; needs chromium, playwright)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench.tools import print_rows
from headrace.api import plan as make_plan
from headrace.report.interactive import plan_report
from headrace.testing.generate import random_platform, random_program

PAN = """async () => {
  const canvas = document.querySelector("canvas");
  const panel = canvas.closest(".gantt").panel;
  panel.view.zoom(0.5, canvas.clientWidth / 2);
  const span = 0.002 * %f;
  const frames = [];
  for (let i = 0; i < 120; i++) {
    panel.view.pan(i < 60 ? span : -span, 0);
    frames.push(await new Promise((done) => requestAnimationFrame(done)));
  }
  return 1000 * (frames.length - 1) / (frames[frames.length - 1] - frames[0]);
}"""


def measure(browser: Any, tasks: int) -> list[object]:
    """Seconds from the data to the first picture, frames a second while panning, and memory of the page."""
    plan = make_plan(random_program(3, tasks), random_platform(3, "uplinks", hosts=24), "heft")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(plan_report(plan), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        painted = page.evaluate(
            "async () => { await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
            " return performance.now() / 1000; }"
        )
        frames = page.evaluate(PAN % plan.makespan)
        memory = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        size = file.stat().st_size / 1e6
        page.close()
    return [f"{tasks:,}", f"{size:.1f}", f"{painted:.2f}", f"{frames:.0f}", f"{memory:.0f}"]


def main() -> None:
    """Print a row for each size."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        rows = [measure(browser, tasks) for tasks in (10_000, 100_000)]
        browser.close()
    print_rows(("tasks", "file [MB]", "painted after [s]", "frames/s", "memory [MB]"), rows)


if __name__ == "__main__":
    main()
