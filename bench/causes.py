"""How often the root of a cause chain is the delay that was planted: python -m bench.causes (about 20 s).

Each run has run times that differ by up to 3 % from the estimates and one delay: a task that takes longer, an item that
is larger, a host that slows down, or a host that leaves. Delays that lengthen the run by less than a tenth are drawn
again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from bench.tools import print_rows
from headrace.api import plan as make_plan
from headrace.core.replan import Replan
from headrace.model.behaviour import Change
from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import CONTENTIONS
from headrace.planners.registry import make
from headrace.report.causes import Causes, Step
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.faults import parse_faults
from headrace.simulator.events.trace import events_of
from headrace.testing.generate import NETWORKS, SHAPES, random_platform, random_program

KINDS = ("task", "size", "slow", "lost")
NOISE = 0.03
NOTABLE = 1.1
"""The least makespan with the delay, relative to that without it."""


@dataclass(frozen=True)
class Planted:
    """A run with one delay: its kind, and the task, item or host that it befell."""

    kind: str
    name: str
    plan: Plan
    events: list[Event]

    @property
    def last(self) -> str:
        """The task that ended last."""
        done = [event for event in self.events if isinstance(event, TaskFinished)]
        return max(done, key=lambda event: event.time).task

    def found_by(self, root: Step | None, causes: Causes) -> bool:
        """Whether a root is this delay."""
        if root is None:
            return False
        done = causes.run.activities[root.activity]
        if self.kind == "lost":
            return root.reason == "fault" and self.name in root.text
        if self.kind == "slow":
            return root.reason == "compute" and done.place == self.name
        return root.reason == ("compute" if self.kind == "task" else "size") and done.name == self.name


def planted(seed: int, tasks: int = 40) -> Planted:
    """The run of a seed; the kind of its delay is `seed % 4`."""
    kind = KINDS[seed % len(KINDS)]
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt])
        made = _attempt(kind, int(rng.integers(2**31)), tasks, rng)
        if made is not None:
            return made
    raise AssertionError(f"no notable delay found for seed {seed}")


def _attempt(kind: str, seed: int, tasks: int, rng: np.random.Generator) -> Planted | None:
    graph = random_program(seed, tasks, SHAPES[seed % len(SHAPES)]).graph
    contention = CONTENTIONS[seed // 5 % len(CONTENTIONS)]
    platform = random_platform(seed, NETWORKS[seed // 15 % len(NETWORKS)], contention=contention)
    plan = make_plan(graph, platform, "heft")
    real = graph.with_work(graph.work * rng.uniform(1 - NOISE, 1 + NOISE, graph.n_tasks))
    plain = _run(plan, real, [])
    name, delayed, faults = _plant(kind, plan, real, rng)
    if not name:
        return None
    changes = parse_faults(faults, platform, plan.makespan, seed) if faults else []
    events = _run(plan, delayed, changes)
    if _end(events) < NOTABLE * _end(plain):
        return None
    return Planted(kind, name, plan, events)


def _plant(kind: str, plan: Plan, real: Graph, rng: np.random.Generator) -> tuple[str, Graph, str]:
    """What is delayed ("": this run has nothing to delay), the real program, and faults of the grid."""
    if kind == "task":
        task = int(rng.integers(real.n_tasks))
        work = real.work.copy()
        work[task] *= rng.uniform(2, 6)
        return real.task_names[task], real.with_work(work), ""
    if kind == "size":
        if not len(plan.move_item):
            return "", real, ""
        item = int(rng.choice(plan.move_item))
        size = real.size.copy()
        size[item] *= rng.uniform(3, 10)
        return real.item_names[item], real.with_size(size), ""
    host = plan.platform.hosts[int(rng.choice(plan.host))].name
    if len(plan.platform.hosts) < 2:
        return "", real, ""
    at = rng.uniform(0.05, 0.6)
    how = f"kill={host}@{at:.0%}" if kind == "lost" else f"slow={host}*0.3@{at:.0%}"
    return host, real, how


def _run(plan: Plan, real: Graph, changes: list[Change]) -> list[Event]:
    scheduler = Replan(make("heft"), first=plan)
    run = simulate_scheduler(plan.graph, plan.platform, scheduler, real=real, changes=changes)
    size = dict(zip(real.item_names, real.size.tolist(), strict=True))
    # Workers report how large an item really was.
    return [replace(e, size=size[e.item]) if isinstance(e, DataMoved) else e for e in events_of(run)]


def _end(events: list[Event]) -> float:
    return max(event.time for event in events if isinstance(event, TaskFinished))


def main(runs: int = 100) -> int:
    """Print how many roots are the planted delay, by kind; returns their number."""
    found: Counter[str] = Counter()
    for seed in range(runs):
        case = planted(seed)
        causes = Causes(case.plan, case.events)
        if case.found_by(causes.root(case.last), causes):
            found[case.kind] += 1
        else:
            print(seed, case.kind, case.name, [(step.reason, step.text) for step in causes.chain(case.last)])
    rows = [[kind, len(range(k, runs, len(KINDS))), found[kind]] for k, kind in enumerate(KINDS)]
    print_rows(("planted", "runs", "root found"), [*rows, ["all", runs, found.total()]])
    return found.total()


if __name__ == "__main__":
    main()
