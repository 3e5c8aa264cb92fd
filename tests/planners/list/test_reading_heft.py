"""HEFT can be read from end to end in a few files, and runs as plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from headrace.core.scheduler import Problem
from headrace.planners.list.heft import Heft
from headrace.testing.generate import random_platform, random_program

FILES = [
    "arrays/calendar.py",
    "arrays/problem.py",
    "arrays/routes.py",
    "core/scheduler.py",
    "planners/cores.py",
    "planners/list/heft.py",
    "planners/list/host_choice.py",
    "planners/list/list_scheduler.py",
    "planners/list/ranks.py",
    "planners/partial_schedule.py",
]
"""Values of model/ are only read."""
SCRIPT = """
import json, sys
from headrace.core.scheduler import Problem
from headrace.planners.list.heft import Heft
from headrace.testing.generate import random_platform, random_program

called = set()

def note(frame, event, argument):
    path = frame.f_code.co_filename
    if event == "call" and "/headrace/" in path:
        called.add(path.rpartition("/headrace/")[2])

problem = Problem(random_program(3).graph, random_platform(3, "sites", contention="fifo"))
problem.platform.network
sys.setprofile(note)
plan = Heft().plan(problem)
sys.setprofile(None)
print(json.dumps({"files": sorted(called), "host": plan.host.tolist(), "start": plan.start.tolist()}))
"""


def test_heft_is_read_in_ten_files_and_compiling_changes_nothing() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ended.stdout)
    assert [path for path in found["files"] if not path.startswith("model/")] == FILES
    platform = random_platform(3, "sites", contention="fifo")
    plan = Heft().plan(Problem(random_program(3).graph, platform))
    assert found["host"] == plan.host.tolist()
    assert found["start"] == plan.start.tolist()
