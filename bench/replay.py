"""Carrying a fixed plan of 100,000 tasks out: tasks per CPU second, and many runs on one core and on all.

python -m bench.replay
"""

from __future__ import annotations

import time
from dataclasses import replace

from bench.large import layered
from bench.simgrid_case import planned
from bench.tools import print_rows
from headrace.core.scheduler import Problem
from headrace.experiment.repeat import repeat
from headrace.model.plan import Plan
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.planners.registry import make
from headrace.simulator.replay.plan_replay import PlanReplays
from headrace.simulator.replay.replay import Replayer

TASKS = 100_000
WAYS: tuple[tuple[Contention, int | None], ...] = (
    ("none", None),
    ("none", 2),
    ("fifo", None),
    ("fair", None),
    ("fair", 2),
)
RUNS = 40


def many_hosts() -> Platform:
    """256 hosts with ports of 1 Gbit/s."""
    hosts = tuple(Host(f"h{i}", 2.0 if i < 64 else 1.0) for i in range(256))
    return Platform((Site("a", hosts, bandwidth=125e6, latency=1e-4),))


def speed(plan: Plan, depth: int | None) -> tuple[float, float]:
    """Least CPU seconds of three: from the plan on, and when what waits for what is known."""
    whole = again = float("inf")
    Replayer.of(plan, prefetch_depth=depth).times()
    for _ in range(3):
        began = time.process_time()
        replayer = Replayer.of(plan, prefetch_depth=depth)
        ready = time.process_time()
        replayer.times()
        ended = time.process_time()
        whole, again = min(whole, ended - began), min(again, ended - ready)
    return whole, again


def main() -> None:
    plans = {
        "sweep, 22 hosts": planned(TASKS, 1_200_000),
        "layered, 256 hosts": make("heft").plan(Problem(layered().graph, many_hosts())),
    }
    rows: list[tuple[object, ...]] = []
    for name, plan in plans.items():
        for contention, depth in WAYS:
            under = replace(plan, platform=replace(plan.platform, contention=contention))
            whole, again = speed(under, depth)
            way = contention if depth is None else f"{contention}, prefetch {depth}"
            rows.append((name, len(plan.move_item), way, f"{TASKS / whole:,.0f}", f"{TASKS / again:,.0f}"))
    print_rows(("program", "transfers", "links", "tasks/CPU s", "carried out again"), rows)
    rows = []
    for name, plan in plans.items():
        for contention in ("none", "fair"):
            once = PlanReplays(
                replace(plan, platform=replace(plan.platform, contention=contention)), error=0.2
            )
            one, both = (repeat(once, RUNS, workers=workers).seconds for workers in (1, None))
            rows.append((name, contention, one, both, f"{RUNS * TASKS / both:,.0f}"))
    print_rows(("program", "links", f"{RUNS} runs, 1 worker, s", "all cores, s", "tasks/s"), rows)


if __name__ == "__main__":
    main()
