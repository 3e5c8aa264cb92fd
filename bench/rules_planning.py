"""Cost of obeying constraints: heft on 10,000 tasks x 256 hosts with and without 50 placement and order constraints.

    python -m bench.rules_planning [--tasks 10000] [--hosts 256] [--runs 5]

Prints the median planning time of both, their ratio (bar: at most 1.3), and verifies the constrained plan.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import numpy as np

from bench.sweep import layered, pairwise
from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints, Limit
from headrace.planners.constraint_failures import failures
from headrace.planners.list.heft import Heft
from headrace.testing.generate import random_platform


def constraints(tasks: int, hosts: int, seed: int = 0) -> Constraints:
    """50 constraints: 15 groups of tasks with allowed hosts, 10 orders, 10 groups together, 5 apart, 10 limits."""
    rng = np.random.default_rng(seed)
    made = Constraints.none(tasks, hosts)
    allowed = np.concatenate((made.allowed, rng.random((15, hosts)) < 0.2))
    number, together = made.allowed_class.copy(), made.together.copy()
    for k in range(15):
        number[rng.choice(tasks, 20, replace=False)] = k + 1
    for k in range(10):
        alike = np.flatnonzero(number == 0)
        together[rng.choice(alike, 5, replace=False)] = k
    free = np.flatnonzero((together < 0) & (number == 0))
    apart = tuple(rng.choice(free, 6, replace=False).astype(np.int32) for _ in range(5))
    pairs = np.sort(
        rng.integers(0, tasks, size=(10, 2)), axis=1
    )  # lower numbers come first in these programs
    limits = tuple(
        Limit(
            rng.random(tasks) < 0.01,
            np.arange(hosts) == h,
            count=float(rng.integers(1, 5)),
            rule=f"limit {h}",
        )
        for h in range(10)
    )
    return replace(
        made,
        allowed=allowed,
        allowed_class=number,
        together=together,
        apart=apart,
        before=pairs[pairs[:, 0] < pairs[:, 1]].astype(np.int32),
        limits=limits,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    graph = layered(given.tasks)
    sites = random_platform(1, "uplinks", contention="fifo", hosts=given.hosts)
    for name, platform in (("pairwise, no contention", pairwise(given.hosts)), ("sites, fifo links", sites)):
        plain = Problem(graph, platform)
        obeying = replace(plain, constraints=constraints(given.tasks, given.hosts))
        taken: dict[str, list[float]] = {"without": [], "with": []}
        for run in range(given.runs + 1):
            for which, problem in (("without", plain), ("with", obeying)):
                began = time.perf_counter()
                plan = Heft().plan(replace(problem))
                if run:  # the first one compiles
                    taken[which].append(time.perf_counter() - began)
        assert not list(failures(obeying, plan))
        without, with_them = (statistics.median(taken[which]) for which in ("without", "with"))
        print(
            f"{name}: {without:.3f} s without, {with_them:.3f} s with constraints, "
            f"ratio {with_them / without:.2f}"
        )


if __name__ == "__main__":
    main()
