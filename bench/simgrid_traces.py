"""A grid whose hosts and links follow traces: the simulator with its coordinator against SimGrid 4.1.

python -m bench.simgrid_traces [--simgrid FOLDER]

Both carry out the same queues on the grid of bench.simgrid_sweep, with fair links. Hosts change up and down,
uplinks only down: SimGrid never lets a transfer go faster than its links could when it began. Integration is exact on
both sides, so the times should be the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.simgrid_case import UPLINK, as_case, grid, planned
from bench.simgrid_sweep import Measured, in_simgrid, install
from bench.tools import print_rows
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import ON_GRID_CHANGES, AssignMany
from headrace.core.view import RunView
from headrace.model.events import Event, Started
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.trace import LinkTrace, Trace
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.grid_state import TASK_ENDED
from headrace.simulator.events.run import SimulatedRun

CASES = ((400, 1_200_000, 60.0), (400, 6_000_000, 7.0), (10_000, 1_200_000, 300.0), (10_000, 6_000_000, 60.0))
"""Tasks, bytes of shared files, mean seconds between changes of a host or link."""
AHEAD = 2


def walking(every: float, until: float, seed: int) -> Platform:
    """The grid, each host and each uplink with a series of its own until then."""
    platform = grid()
    sites = []
    for s, site in enumerate(platform.sites):
        hosts = tuple(
            replace(h, trace=_series(0.1, 1.0, every, until, [seed, s, i])) for i, h in enumerate(site.hosts)
        )
        if site.uplink is not None:
            series = _series(0.5 * UPLINK, 2.0 * UPLINK, every, until, [seed, s, 99])
            series = Trace(series.time, np.sort(series.value)[::-1])
            site = replace(site, uplink_trace=LinkTrace(series, Trace.constant(0.0)))
        sites.append(replace(site, hosts=hosts))
    return replace(platform, sites=tuple(sites))


def _series(low: float, high: float, every: float, until: float, seed: list[int]) -> Trace:
    rng = np.random.default_rng(seed)
    count = int(until / every) + 1
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(0.5, 1.5, count) * every)))
    return Trace(time, rng.uniform(low, high, count + 1))


def as_profile(trace: Trace) -> tuple[list[float], list[float]]:
    """Moments and the values from there on."""
    return trace.time.tolist(), trace.value.tolist()


class AsPlanned:
    """Queues as they are in a plan; data is fetched by need."""

    name = "as-planned"
    wake = ON_GRID_CHANGES

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def react(self, view: RunView, events: Sequence[Event]) -> list[AssignMany]:
        if not any(isinstance(event, Started) for event in events):
            return []
        order = np.lexsort((np.arange(len(self.plan.start)), self.plan.start)).astype(np.int32)
        return [AssignMany(order, self.plan.host[order], np.arange(len(order), dtype=np.float64))]


def here(plan: Plan, platform: Platform) -> tuple[float, SimulatedRun]:
    """CPU seconds and the run, with queues as they are in the plan."""

    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        run = simulate_scheduler(
            plan.graph, platform, AsPlanned(plan), policy=ExecutionPolicy(prefetch_depth=AHEAD, strict=True)
        )
        best = min(best, time.process_time() - began)
    return best, run


def compared(python: Path, tasks: int, shared: int, every: float) -> list[object]:
    plan = planned(tasks, shared)
    platform = walking(every, 3.0 * plan.makespan, seed=tasks)
    seconds, run = here(plan, platform)
    case = as_case(plan, AHEAD) | {
        "availability": [as_profile(h.trace) for h in platform.hosts if h.trace is not None],
        "bandwidth": [
            as_profile(s.uplink_trace.bandwidth) for s in platform.sites if s.uplink_trace is not None
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case))
        other: Measured = in_simgrid(python, path)
    finish = np.zeros(tasks)
    ended = run.log_kind == TASK_ENDED
    finish[run.log_subject[ended]] = run.log_time[ended]
    apart = float(np.abs(finish / np.array(other.finish) - 1.0).max())
    return [
        f"{tasks:,}", f"{shared / 1e6:g}", every, run.makespan, abs(run.makespan / other.makespan - 1.0), apart,
        round(tasks / other.seconds), round(tasks / seconds), other.seconds / seconds,
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--simgrid", type=Path, default=Path(__file__).parents[1] / ".bench-simgrid")
    python = install(parser.parse_args().simgrid)
    print_rows(
        ["tasks", "shared MB", "changes every s", "makespan s", "difference", "largest of a task",
         "SimGrid tasks / CPU s", "here", "ratio"],
        [compared(python, *case) for case in CASES],
    )  # fmt: skip


if __name__ == "__main__":
    main()
