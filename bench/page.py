"""The page measured: python -m bench.page WHAT, with one of

chart: the Gantt chart of 10,000 and 100,000 tasks in a browser (40 s; needs chromium and playwright)
draw: 200 generated drawings are saved, opened and run (3 minutes)
live: a run of 2,000 tasks a minute is watched by two pages, one of which is offline for 30 s (2 minutes; as `chart`);
    `live TASKS SECONDS AWAY` for another scale
ready: time until the page can be used, and the size of what is loaded (20 s; as `chart`)
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ui.serving import served

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
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        memory = _renderer_memory() / 1e6
        size = file.stat().st_size / 1e6
        page.close()
    return [f"{tasks:,}", f"{size:.1f}", f"{painted:.2f}", f"{frames:.0f}", f"{heap:.0f}", f"{memory:.0f}"]


def chart() -> None:
    """Print a row for each size of program."""
    with _browser() as browser:
        rows = [measure(browser, tasks) for tasks in (10_000, 100_000)]
    print_rows(("tasks", "file [MB]", "painted after [s]", "frames/s", "heap [MB]", "whole page [MB]"), rows)


def _renderer_memory() -> int:
    """Bytes of the largest process of a page below this one, with all that is shared."""
    import psutil

    def size(process: Any) -> int:
        try:
            return int(process.memory_info().rss) if "--type=renderer" in process.cmdline() else 0
        except psutil.Error:
            return 0

    return max((size(one) for one in psutil.Process().children(recursive=True)), default=0)


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # The flag makes the memory figures exact.
        flags = ["--no-sandbox", "--enable-precise-memory-info"]
        made = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield made
        made.close()


def draw(cases: int = 200) -> None:
    """Draw, save, open and run programs; count those with the same graph and the same results."""
    import headrace as hr
    from bench.page_draw import draw_case, operations, same_graph, write_files
    from headrace.formats.loading import load_program
    from headrace.run_request import opened_cluster, run_request

    functions = operations()
    counts = dict.fromkeys(("same file", "same graph", "same results"), 0)
    with tempfile.TemporaryDirectory() as folder, opened_cluster(run_request(workers=1)) as cluster:
        root = Path(folder)
        with served(root) as page:
            page.open()
            for seed in range(cases):
                case = draw_case(1000 + seed, functions)
                write_files(case, root)
                file = f"{seed}.toml"
                sent = {"drawing": case.drawing, "file": file, "version": ""}
                saved = page.post("/api/drawings/save", sent).json
                opened = page.post("/api/drawings/open", {"file": file}).json
                again = {"drawing": opened["drawing"], "file": file, "version": opened["version"]}
                counts["same file"] += page.post("/api/drawings/save", again).json["file"] == saved["file"]
                program = load_program(root / file)
                counts["same graph"] += same_graph(case.program, program)
                run = hr.run(program, on=cluster, record=root / "record", output=root, learn=False)
                counts["same results"] += run.failure is None and run.results == case.expected
    print_rows(("", "drawings"), [["all", cases], *([name, count] for name, count in counts.items())])


def ready() -> None:
    """Seconds until the first view can be used, and what is loaded."""
    import headrace.ui

    static = Path(headrace.ui.__file__).parent / "static"
    size = sum(len(gzip.compress(path.read_bytes())) for path in static.rglob("*") if path.is_file())
    times = []
    with _browser() as browser, tempfile.TemporaryDirectory() as folder:
        for _ in range(5):
            with served(Path(folder)) as page:
                tab = browser.new_page()
                begun = time.perf_counter()
                tab.goto(page.link)
                tab.wait_for_selector("main form, main .draw")
                times.append(time.perf_counter() - begun)
                tab.close()
    rows = [["compressed [kB]", f"{size / 1e3:.0f}"], ["ready, median of 5 [s]", f"{sorted(times)[2]:.2f}"]]
    print_rows(("", "page"), [*rows, ["ready, worst of 5 [s]", f"{max(times):.2f}"]])


def main() -> None:
    """Measure what is asked for."""
    from bench.page_live import live

    known = {"chart": chart, "draw": draw, "live": live, "ready": ready}
    what, *scale = sys.argv[1:] or [""]
    if what == "live" and len(scale) == 3:
        live(int(scale[0]), float(scale[1]), float(scale[2]))
    elif what in known and not scale:
        known[what]()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
