"""Simulated runs under online schedulers: tasks per CPU second and memory. `python -m bench.online [TASKS]`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import replace

from bench.generated.sweeps import sweep
from bench.tools import print_rows
from headrace.core.replan_policy import ReplanPolicy
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program

HOSTS, CLUSTERS = 22, 3
SCHEDULERS = {"workqueue": 0, "lheft": 0, "sufferage": 2000}
"""And for how many tasks at once they plan; 0: they decide task by task."""


def measure(scheduler: str, contention: str, tasks: int, times: int = 3) -> list[object]:
    """One row: the best of several runs in this process, after a small one that compiles."""
    program, platform = sweep(tasks, HOSTS, CLUSTERS, seed=0)
    grid = replace(platform, contention=contention)  # type: ignore[arg-type]
    graph = program.graph
    subset = SCHEDULERS[scheduler]
    setting = SimulationConfig(policy=ReplanPolicy(events="S2", subset=subset)) if subset else None
    simulate_program(sweep(200, HOSTS, CLUSTERS, seed=0)[0], grid, scheduler, setting)
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        run = simulate_program(graph, grid, scheduler, setting)
        best = min(best, time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name = f"{scheduler} --subset {subset}" if subset else scheduler
    return [
        tasks,
        contention,
        name,
        run.makespan / run.bound,
        run.asked,
        run.events,
        best,
        f"{tasks / best:,.0f}",
        f"{peak:,.0f}",
    ]


def main(tasks: int = 100_000) -> None:
    """Each row in a process of its own, so that its memory is its own."""
    rows = []
    for contention in ("fifo", "fair"):
        for scheduler in SCHEDULERS:
            call = f"measure({scheduler!r}, {contention!r}, {tasks})"
            line = f"import json; from bench.online import measure; print(json.dumps({call}))"
            done = subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    print_rows(
        [
            "tasks",
            "links",
            "scheduler",
            "makespan / bound",
            "asked",
            "events",
            "CPU s",
            "tasks per CPU s",
            "peak MB",
        ],
        rows,
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
