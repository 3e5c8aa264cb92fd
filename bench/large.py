"""A program of 100,000 tasks on 256 hosts, through the command: read, check, plan; time and peak memory.

python -m bench.large
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.tools import print_rows
from headrace.formats.wfformat import write_program
from headrace.model.program import Program

TASKS, WIDTH = 100_000, 400
PLATFORM = """name = "large"
contention = "{contention}"
[[site]]
name = "a"
bandwidth = "1 Gbit/s"
latency = "0.1 ms"
[[site.host]]
name = "fast"
count = 64
speed = 2.0
[[site.host]]
name = "slow"
count = 192
"""


def layered() -> Program:
    """Layers of 400 tasks, each reading from three of the layer before."""
    random = np.random.default_rng(1)
    program = Program("layered")
    for t in range(TASKS):
        layer = t // WIDTH
        before = np.unique(random.integers((layer - 1) * WIDTH, layer * WIDTH, 3)) if layer else []
        program.task(
            name=f"t{t}",
            kind=f"k{t % 5}",
            inputs=[f"d{b}" for b in before],
            outputs={f"d{t}": float(random.integers(10**5, 10**7))},
            work=float(random.uniform(1, 20)),
        )
    return program


def measured(folder: Path, *args: str) -> tuple[float, float]:
    """Wall seconds and peak megabytes of `headrace ARGS`."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *args], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_program(layered(), folder / "large.json.gz")
        for contention in ("none", "fifo", "fair"):
            (folder / f"{contention}.toml").write_text(PLATFORM.format(contention=contention))
            on = ("large.json.gz", "--on", f"{contention}.toml", "--scheduler", "heft", "-o", "plan.json")
            rows.append((f"plan (heft), {contention}", *measured(folder, "plan", *on)))
            files = ("large.json.gz", f"{contention}.toml", "plan.json")
            if contention != "fair":
                rows.append((f"check of that plan, {contention}", *measured(folder, "check", *files)))
    print_rows(("100,000 tasks, 256 hosts", "seconds", "peak MB"), rows)


if __name__ == "__main__":
    main()
