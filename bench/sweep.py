"""Planning time of sweeps and of HEFT on large graphs, arrays built, loops compiled.

python -m bench.sweep            sweeps of 10,000 tasks x 500 hosts, HEFT up to 100,000 x 1,000
python -m bench.sweep large [SCHEDULER]    sweeps of 100,000 tasks x 1,000 hosts
python -m bench.sweep million    HEFT on 1,000,000 tasks x 1,000 hosts, with peak memory
"""

from __future__ import annotations

import resource
import sys

import numpy as np

from bench.generated.sweeps import sweep
from bench.tools import print_rows
from headrace.core.scheduler import Problem
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform
from headrace.planners.list.heft import Heft
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound

RULES = ("minmin", "maxmin", "sufferage", "xsufferage", "sufferage2")


def layered(tasks: int, seed: int = 1, width: int = 0, work: tuple[float, float] = (1.0, 100.0)) -> Graph:
    """Layers of this width, square if it is 0; three in-edges a task."""
    random = np.random.default_rng(seed)
    width = width or max(1, round(tasks**0.5))
    number = np.arange(tasks)
    layer = number // width
    reads = np.where(layer > 0, 3, 0)
    first = np.repeat((layer - 1) * width, reads)
    source = first + random.integers(0, width, int(reads.sum()))
    return make_graph(
        work=random.uniform(*work, tasks),
        size=random.uniform(1.0, 100.0, len(source)),
        producer=source,
        read_ptr=np.concatenate(([0], np.cumsum(reads))),
        reads=np.arange(len(source)),
    )


def pairwise(hosts: int) -> Platform:
    random = np.random.default_rng(hosts)
    return Platform.pairwise(random.uniform(1.0, 4.0, hosts), random.uniform(1.0, 4.0, (hosts, hosts)))


def sweeps(tasks: int, hosts: int, repeats: int, rules: tuple[str, ...] = RULES) -> None:
    program, platform = sweep(tasks, hosts, clusters=20, seed=1)
    problem = Problem(program.graph, platform)
    small, few = sweep(100, hosts=20, clusters=20, seed=1)
    rows = []
    for name in rules:
        make(name).plan(Problem(small.graph, few))
        plans = [plan_with_bound(make(name), problem) for _ in range(repeats)]
        seconds = min(plan.seconds for plan in plans)
        rows.append((name, seconds, plans[0].makespan, plans[0].ratio))
        print(name, f"{seconds:.4g} s", file=sys.stderr, flush=True)
    headers = (
        f"sweep of {tasks:,} tasks, {hosts:,} hosts in 20 clusters",
        "planning s",
        "makespan s",
        "/ bound",
    )
    print_rows(headers, rows)


def heft(sizes: list[tuple[int, int]], repeats: int) -> None:
    Heft().plan(Problem(layered(100), pairwise(8)))
    rows = []
    for tasks, hosts in sizes:
        problem = Problem(layered(tasks), pairwise(hosts))
        _ = problem.platform.network
        plans = [plan_with_bound(Heft(), problem) for _ in range(repeats)]
        plan = min(plans, key=lambda plan: plan.seconds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append((tasks, hosts, plan.seconds, plan.ratio, peak))
    print_rows(("tasks", "hosts", f"HEFT, best of {repeats}, s", "makespan / bound", "peak MB so far"), rows)


def main(what: str = "", *rules: str) -> None:
    if what == "large":
        sweeps(100_000, 1_000, 1, rules or RULES)
    elif what == "million":
        heft([(1_000_000, 1_000)], repeats=1)
    else:
        sweeps(10_000, 500, repeats=3)
        heft([(3_000, 64), (10_000, 256), (100_000, 1_000)], repeats=5)


if __name__ == "__main__":
    main(*sys.argv[1:])
