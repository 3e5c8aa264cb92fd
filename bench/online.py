"""Simulated runs under online schedulers: tasks per CPU second and memory. `python -m bench.online [TASKS]`.

First sweeps on a few hosts, then layered graphs under lheft on a thousand hosts with a disk each.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

from bench.generated.sweeps import sweep
from bench.tools import print_rows
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
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


def layered(tasks: int, width: int, seed: int = 0) -> Graph:
    """Layers of `width` tasks; each task reads two outputs of the layer before."""
    rng = np.random.default_rng(seed)
    reads: list[int] = []
    read_ptr = [0]
    for task in range(tasks):
        layer = task // width
        if layer:
            reads += sorted({int(r) for r in rng.integers((layer - 1) * width, layer * width, 2)})
        read_ptr.append(len(reads))
    work, size = rng.uniform(5, 15, tasks), rng.uniform(1e5, 1e6, tasks)
    return make_graph(work=work, size=size, producer=range(tasks), read_ptr=read_ptr, reads=reads)


def own_disks(hosts: int, sites: int = 10, seed: int = 1) -> Platform:
    """Hosts of different speeds, each with its own disk and port, at sites behind uplinks."""
    rng = np.random.default_rng(seed)
    return Platform(
        tuple(
            Site(
                f"s{k}",
                tuple(Host(f"h{k}_{i}", speed=float(rng.uniform(1, 4))) for i in range(hosts // sites)),
                bandwidth=125e6,
                uplink=1e9,
            )
            for k in range(sites)
        ),
        contention="fifo",
    )


def measure_layers(tasks: int, hosts: int, width: int, times: int = 3) -> list[object]:
    """One row: lheft on a layered graph, the best of several runs, after a small one that compiles."""
    graph, platform = layered(tasks, width), own_disks(hosts)
    simulate_program(layered(100, 20), platform, "lheft")
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        run = simulate_program(graph, platform, "lheft")
        best = min(best, time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [tasks, hosts, width, run.asked, run.events, best, f"{tasks / best:,.0f}", f"{peak:,.0f}"]


def in_own_process(call: str) -> list[object]:
    """The row that a call of this module returns, measured in a process of its own."""
    line = f"import json, bench.online as bench; print(json.dumps(bench.{call}))"
    done = subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True)
    row: list[object] = json.loads(done.stdout.splitlines()[-1])
    return row


def main(tasks: int = 100_000) -> None:
    """Both tables."""
    rows = []
    for contention in ("fifo", "fair"):
        for scheduler in SCHEDULERS:
            rows.append(in_own_process(f"measure({scheduler!r}, {contention!r}, {tasks})"))
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
    print()
    print_rows(
        ["tasks", "hosts", "tasks in a layer", "asked", "events", "CPU s", "tasks per CPU s", "peak MB"],
        [in_own_process(f"measure_layers({tasks}, 1000, {width})") for width in (1000, 5000)],
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
