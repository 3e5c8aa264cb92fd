"""A run as pages see it: how late, at what cost to the server, and whether a page that was away sees the same.

A process writes a run of 2,000 tasks a minute to the record, as `headrace run` does. The server is a process of its
own, whose CPU time is read. Two tabs watch; the second is offline for 30 s.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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
    program.task(None, name=f"t{number}", work=0.1)
platform = hr.Platform.pairwise([1.0] * 4, bandwidth=1e9)
plan = hr.plan(program, platform, "heft")
hosts = {one.id: one.host for one in plan.tasks()}
with Record.open() as book:
    entry = book.begin("live", program.graph, platform, "heft", plan)
    from headrace.formats.platform_toml import platform_text
    note_plan(book, entry.id, program.graph, platform, plan)
    began = time.time()
    for number in range(tasks):
        time.sleep(max(0.0, began + number * seconds / tasks - time.time()))
        now = time.time() - began
        entry.observe(TaskFinished(now, f"t{number}", hosts[f"t{number}"], max(0.0, now - 0.1)))
    print(began, flush=True)
    entry.finish("done", time.time() - began)
"""


def live() -> None:
    """Print how late the page was, what it cost, and whether both tabs show the same in the end."""
    raise SystemExit("not measured yet")
