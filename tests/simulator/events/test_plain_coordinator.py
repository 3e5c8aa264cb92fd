"""The compiled coordinator does what a plain one does, on small grids whose hosts come and go and lose data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import EVERY_EVENT, Assign
from headrace.core.view import RunView
from headrace.model.behaviour import Change
from headrace.model.events import Event
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from simulator.events.plain_coordinator import PlainRun


class Decide:
    """Each time a task needs a host it goes to another one; all tasks get one at the start if `ahead`."""

    def __init__(self, tasks: int, ahead: bool) -> None:
        self.left = list(range(tasks)) if ahead else []
        self.times = dict.fromkeys(range(tasks), 0)

    def __call__(self, ready: Sequence[int], hosts: Sequence[int]) -> dict[int, int]:
        chosen = dict.fromkeys([*self.left, *ready])
        self.left = []
        for task in chosen:
            self.times[task] += 1
        return {t: hosts[(7 * t + 3 * self.times[t]) % len(hosts)] for t in chosen}


class Scripted:
    """The same decisions as a scheduler."""

    name = "scripted"
    wake = EVERY_EVENT

    def __init__(self, decide: Decide) -> None:
        self.decide = decide

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        hosts = view.platform.hosts
        up = [h for h, host in enumerate(hosts) if host.name not in view.down]
        chosen = self.decide(sorted(view.ready().tolist()), up)
        names = view.graph.task_names
        return [Assign(names[task], hosts[host].name, float(task)) for task, host in chosen.items()]


def simulated(
    graph: Graph, platform: Platform, changes: Sequence[Change], decide: Decide, prefetch: int
) -> tuple[list[tuple[str, float]], int]:
    """The log of the simulator, and how many tasks were done again."""
    policy = ExecutionPolicy(prefetch_depth=prefetch)
    run = simulate_scheduler(graph, platform, Scripted(decide), changes=changes, policy=policy)
    rows = []
    for line in run.log_lines():
        time, what = line.split(" ", 1)
        rows.append((what, float(time)))
    return rows, run.redone


def some_changes(seed: int, platform: Platform, horizon: float, count: int) -> list[Change]:
    """Hosts that leave and come; the last change of the first host lets it stay, so that every run ends."""
    rng = np.random.default_rng([seed, 9])
    changes = [Change(4.0 * horizon, "host-up", platform.hosts[0].name)] if count else []
    for _ in range(count):
        host = platform.hosts[int(rng.integers(len(platform.hosts)))]
        down = float(rng.uniform(0.0, horizon))
        changes.append(Change(down, "host-down", host.name))
        if rng.random() < 0.6:
            changes.append(Change(down + float(rng.uniform(0.1, horizon)), "host-up", host.name))
    return sorted(changes, key=lambda change: change.time)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    tasks=st.integers(1, 25),
    shape=st.sampled_from(SHAPES),
    network=st.sampled_from(NETWORKS),
    origin=st.sampled_from(ORIGINS),
    hosts=st.integers(1, 6),
    count=st.integers(0, 8),
    prefetch=st.integers(1, 3),
    ahead=st.booleans(),
)
def test_both_do_the_same(seed, tasks, shape, network, origin, hosts, count, prefetch, ahead):
    graph = random_program(seed, tasks, shape).graph
    platform = random_platform(seed, network, hosts=hosts, origin=origin)
    horizon = float(graph.work.sum()) / hosts + 1.0
    changes = some_changes(seed, platform, horizon, count)
    plain = PlainRun(graph, platform, changes, Decide(tasks, ahead), prefetch)
    expected = sorted(plain.run())
    rows, redone = simulated(graph, platform, changes, Decide(tasks, ahead), prefetch)
    rows.sort()
    assert [what for what, _ in rows] == [what for what, _ in expected]
    assert [t for _, t in rows] == pytest.approx([t for _, t in expected], rel=1e-9, abs=1e-9)
    assert redone == plain.redone


def test_what_is_lost_is_made_again():
    """Not by chance only: among these runs some do work again and some cut transfers."""
    redone = cut = 0
    for seed in range(30):
        graph = random_program(seed, 15, "layered").graph
        platform = random_platform(seed, "ports", hosts=3)
        plain = PlainRun(graph, platform, some_changes(seed, platform, 60.0, 6), Decide(15, False), 2)
        cut += sum(what.startswith("cut") for what, _ in plain.run())
        redone += plain.redone
    assert redone > 30
    assert cut > 3
