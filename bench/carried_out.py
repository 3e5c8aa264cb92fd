"""Plans carried out by the coordinator against the same plans replayed, where relays and copies matter.

python -m bench.carried_out [PLANNER]       40 cases of relays and copies
python -m bench.carried_out disks           co-schedules of grids with small disks; 3 minutes

A replay keeps everything the plan says. The coordinator turns the plan into queues and transfers and is not
allowed to plan again. 40 seeded cases of hosts with their own disks at several sites.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import headrace as hr
from bench.generated.relays import RelayShape, relay_case
from bench.tools import print_rows
from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.model.platform import Contention
from headrace.planners.coschedule.planner import Coschedule
from headrace.testing.tiered_grid import tiered_grid

SHAPES: tuple[RelayShape, ...] = ("bag", "inputs", "stages", "pairs")
CONTENTIONS: tuple[Contention, ...] = ("fair", "fifo")
CASES = 40
LIMIT = 1.02


class Outcome(NamedTuple):
    """One case."""

    name: str
    contention: str
    planned: float
    carried_out: float

    @property
    def ratio(self) -> float:
        return self.carried_out / self.planned


def cases() -> Iterator[tuple[hr.Program, hr.Platform]]:
    """Shapes, contentions and networks in turn."""
    for k in range(CASES):
        yield relay_case(k, SHAPES[k % 4], CONTENTIONS[k // 4 % 2], graph=k // 8 % 2 == 1)


def outcome(program: hr.Program, platform: hr.Platform, planner: str) -> Outcome:
    """A plan, replayed and carried out without planning again."""
    plan = hr.plan(program, platform, planner)
    planned = hr.replay(plan).makespan
    once = hr.SimulationConfig(hr.ReplanPolicy(replan="neither"))
    run = hr.simulate(program, platform, planner, once)
    return Outcome(f"{program.name}, {platform.name}", platform.contention, planned, run.makespan)


def main(planner: str = "heft") -> None:
    """The table, and for each contention median, worst and how many are within the limit."""
    found = [outcome(program, platform, planner) for program, platform in cases()]
    print_rows(
        ["case", "replayed s", "carried out s", "ratio"],
        [(o.name, o.planned, o.carried_out, o.ratio) for o in found],
    )
    rows = []
    for contention in CONTENTIONS:
        ratios = [o.ratio for o in found if o.contention == contention]
        within = sum(ratio <= LIMIT for ratio in ratios)
        rows.append((contention, median(ratios), max(ratios), f"{within} of {len(ratios)}"))
    print_rows(["contention", "median ratio", "worst ratio", f"at most {LIMIT}"], rows)


class _Made:
    """A planner that has its plan already."""

    name = "coschedule"

    def __init__(self, plan: Plan) -> None:
        self.made = plan

    def plan(self, problem: Problem) -> Plan:
        return self.made


def disks(seconds: float = 6.0) -> None:
    """Co-schedules of grids whose small sites hold few files, carried out without planning again."""
    rows = []
    for jobs in (40, 200, 1000):
        ratios = []
        for seed in range(20, 26):
            program, platform = tiered_grid(jobs, seed)
            plan = hr.plan(program, platform, Coschedule(time=seconds))
            once = hr.SimulationConfig(hr.ReplanPolicy(replan="neither"))
            ratios.append(hr.simulate(program, platform, _Made(plan), once).makespan / plan.makespan)
        rows.append((jobs, len(ratios), median(ratios), max(ratios)))
    print_rows(["jobs", "grids", "median carried out / planned", "worst"], rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["disks"]:
        disks()
    else:
        main(*sys.argv[1:])
