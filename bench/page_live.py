"""A run as pages see it: how late, at what cost to the server, and whether a page that was away sees the same.

A process writes a run of 2,000 tasks a minute to the record, as `headrace run` does. The server is a process of its
own, whose CPU time is read. Two tabs watch; the second is offline for 30 s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.tools import print_rows

TASKS, SECONDS, AWAY = 2_000, 60.0, 30.0
_WRITER = """
import sys, time
import headrace as hr
from headrace.model.events import TaskFinished
from headrace.record import Record
from headrace.record.run_plans import note_plan
tasks, seconds = int(sys.argv[1]), float(sys.argv[2])
program = hr.Program("live")
for number in range(tasks):
    program.task(None, name=f"t{number}", work=4 * seconds / tasks)
platform = hr.Platform.pairwise([1.0] * 4, bandwidth=1e9)
plan = hr.plan(program, platform, "heft")
planned = sorted(plan.tasks(), key=lambda one: one.finish)
with Record.open() as book, book.begin("live", program.graph, platform, "heft", plan) as entry:
    note_plan(book, entry.id, program.graph, platform, plan)
    began = time.time()
    print(began, flush=True)
    for one in planned:
        time.sleep(max(0.0, began + one.finish - time.time()))
        now = time.time() - began
        entry.observe(TaskFinished(now, one.id, one.host, one.start))
    entry.finish("done", makespan=time.time() - began)
"""
_SHOWN = """() => { const panel = document.querySelector(".gantt")?.panel; if (!panel) return null;
  const data = panel.data; let last = 0, bars = 0;
  data.finish.forEach((finish, bar) => { if (!data.ghost[bar]) { bars++; last = Math.max(last, finish); } });
  return [last, bars, Date.now() / 1000]; }"""
_PICTURE = """() => { const data = document.querySelector(".gantt").panel.data;
  return data.names.flatMap((name, bar) => data.ghost[bar] ? [] : [[name, data.lanes[data.lane[bar]][0],
    data.start[bar], data.finish[bar]]]).sort((a, b) => a[0] < b[0] ? -1 : 1); }"""


def live(tasks: int = TASKS, seconds: float = SECONDS, away: float = AWAY) -> None:
    """Print how late the page was, what it cost the server, and whether both tabs show the same in the end."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        environment = {**os.environ, "HEADRACE_HOME": str(Path(folder) / "record")}
        command = [sys.executable, "-m", "headrace.cli", "ui", "--no-open"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        writing = [sys.executable, "-c", _WRITER, str(tasks), str(seconds)]
        try:
            assert server.stdout is not None
            context = browser.new_context()
            first = context.new_page()
            first.goto(server.stdout.readline().strip())
            origin = first.url.partition("#")[0]
            first.get_by_role("button", name="Run", exact=True).click()
            second = browser.new_context(storage_state=context.storage_state())
            other = second.new_page()
            other.goto(f"{origin}#run")
            writer = subprocess.Popen(writing, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
            rows = _watched((first, other, second), writer, server.pid, away)
        finally:
            browser.close()
            server.terminate()
            server.wait(20)
    print_rows(("", f"{tasks} tasks in {seconds:g} s"), rows)


def _watched(pages: tuple[Any, Any, Any], writer: Any, server: int, away: float) -> list[list[object]]:
    import psutil

    first, other, second = pages
    began = float(writer.stdout.readline())
    process = psutil.Process(server)
    before, delays = sum(process.cpu_times()[:2]), []
    offline = "not yet"
    while writer.poll() is None:
        passed = time.time() - began
        if offline == "not yet" and passed > 5:
            second.set_offline(True)
            offline = "now"
        if offline == "now" and passed > 5 + away:
            second.set_offline(False)
            offline = "over"
        shown = first.evaluate(_SHOWN)
        if shown is not None and passed > 3:
            delays.append(shown[2] - began - shown[0])
        time.sleep(0.2)
    second.set_offline(False)
    cost = (sum(process.cpu_times()[:2]) - before) / (time.time() - began)
    for page in (first, other):
        page.wait_for_selector("[role=status]:has-text('done')", timeout=60_000)
    time.sleep(3)
    pictures = [page.evaluate(_PICTURE) for page in (first, other)]
    delays.sort()
    return [
        ["bars shown", f"{len(pictures[0])} and {len(pictures[1])}"],
        ["behind the events, median [s]", f"{delays[len(delays) // 2]:.2f}"],
        ["behind the events, 95 % [s]", f"{delays[int(len(delays) * 0.95)]:.2f}"],
        ["behind the events, worst [s]", f"{delays[-1]:.2f}"],
        ["CPU of the server [% of a core]", f"{100 * cost:.1f}"],
        [f"after {away:g} s offline", "the same" if pictures[0] == pictures[1] else "different"],
    ]
