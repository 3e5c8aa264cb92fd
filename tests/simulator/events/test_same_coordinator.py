"""The coordinator driven by events and commands does what the compiled simulator does with the same transitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from core.virtual_grid import VirtualGrid
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import Scheduler
from headrace.model.behaviour import Change
from headrace.model.graph import Graph
from headrace.model.platform import Contention, Platform
from headrace.online.adapter import make_scheduler
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from headrace.testing.wild import Wild

POLICIES = (
    ExecutionPolicy(),
    ExecutionPolicy(task_order="ready", link_order="out-of-order", routes="nearest", prefetch_depth=3),
    ExecutionPolicy(link_order="in-order", routes="nearest", strict=True),
    ExecutionPolicy(link_order="hybrid", steal=True),
)
SCHEDULERS = ("lheft", "workqueue", "dheft", "heft", "minmin")


def both(
    graph: Graph,
    platform: Platform,
    make: Callable[[], Scheduler],
    policy: ExecutionPolicy,
    changes: Sequence[Change] = (),
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Everything that happened, in both, by what it was and when."""
    run = simulate_scheduler(graph, platform, make(), policy=policy, changes=changes)
    compiled = []
    for line in run.log_lines():
        time, what = line.split(" ", 1)
        compiled.append((what, float(time)))
    return sorted(compiled), sorted(VirtualGrid(graph, platform, make(), changes, policy).run())


def a_case(seed: int, contention: Contention) -> tuple[Graph, Platform]:
    rng = np.random.default_rng([seed, 3])
    graph = random_program(seed, int(rng.integers(1, 20)), SHAPES[seed % 5]).graph
    platform = random_platform(
        seed,
        NETWORKS[seed // 5 % 5],
        contention=contention,
        hosts=int(rng.integers(1, 6)),
        origin=ORIGINS[seed % 3],
    )
    return graph, platform


def require_same(left: list[tuple[str, float]], right: list[tuple[str, float]]) -> None:
    assert [what for what, _ in left] == [what for what, _ in right]
    assert [time for _, time in left] == pytest.approx([time for _, time in right], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("contention", ["none", "fifo"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_log_is_the_same(scheduler: str, contention: Contention) -> None:
    for seed in range(50):
        graph, platform = a_case(seed, contention)
        require_same(*both(graph, platform, lambda: make_scheduler(scheduler), POLICIES[seed % 4]))


def leaving_and_returning(graph: Graph, platform: Platform) -> list[Change]:
    last = platform.hosts[-1].name
    horizon = float(graph.work.sum()) / len(platform.hosts) + 1.0
    return [Change(0.21 * horizon, "host-down", last), Change(0.53 * horizon, "host-up", last)]


@pytest.mark.parametrize("contention", ["none", "fifo"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_log_is_the_same_when_hosts_leave_and_return(scheduler: str, contention: Contention) -> None:
    for seed in range(50):
        graph, platform = a_case(seed, contention)
        changes = leaving_and_returning(graph, platform)
        require_same(*both(graph, platform, lambda: make_scheduler(scheduler), POLICIES[seed % 4], changes))


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_whatever_a_scheduler_says_the_state_is_consistent_and_every_task_runs(
    contention: Contention,
) -> None:
    for seed in range(60):
        graph, platform = a_case(seed, contention)
        changes = leaving_and_returning(graph, platform) if seed % 2 else []
        rows = VirtualGrid(graph, platform, Wild(seed), changes, POLICIES[seed % 4]).run()
        ended = {what.split()[1] for what, _ in rows if what.startswith("end")}
        assert ended == set(graph.task_names)
