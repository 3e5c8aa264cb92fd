"""Simulated runs by seed and fault profile, covering all features of the simulator, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from headrace.core.execution_policy import ExecutionPolicy, LinkOrder
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Scheduler
from headrace.model.behaviour import Change
from headrace.model.check_case import Violation
from headrace.model.errors import HeadraceError
from headrace.model.graph import OUTSIDE, Graph
from headrace.model.platform import CONTENTIONS, Platform
from headrace.model.sited import SiteLists
from headrace.online.dheft import DHeft
from headrace.online.lheft import LHeft
from headrace.online.workqueue import Workqueue
from headrace.planners.batch.xsufferage import ExtendedSufferage
from headrace.planners.list.heft import Heft
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.testing.faults import Profile, Rng, Slow, availability, faults, link_behaviour
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from headrace.testing.invariants import judge
from headrace.testing.wild import Wild

SCHEDULERS = ("workqueue", "wild", "lheft", "heft", "dheft", "xsufferage")
WITHOUT_PLANS = ("workqueue", "wild", "lheft")
"""Schedulers that place ready tasks one by one; planners do not support multi-core tasks."""
ORDERS: tuple[LinkOrder, ...] = ("in-order", "out-of-order", "hybrid", "planned")
ALONE = ("workqueue", "wild")
"""Schedulers without compiled code other than the coordinator's."""


@dataclass(frozen=True)
class FaultCase:
    """A run to be simulated, by seed and profile; created by `fault_case`."""

    seed: int
    graph: Graph
    real: Graph
    platform: Platform
    changes: Sequence[Change]
    scheduler: Scheduler
    policy: ExecutionPolicy
    tight: bool
    """Whether storage may be too small for the run to complete."""

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.graph.name} on {self.platform.name}, {self.scheduler.name}, "
            f"{self.policy}"
        )


def fault_case(seed: int, profile: Profile, schedulers: Sequence[str] = SCHEDULERS) -> FaultCase:
    """Draw shape, network, contention, origin, scheduler and coordinator options from the seed.

    >>> case = fault_case(3, "crash", schedulers=["workqueue"])
    >>> case.changes == fault_case(3, "crash", schedulers=["workqueue"]).changes
    True
    """
    rng = np.random.default_rng([seed, 5])
    graph = random_program(seed, int(rng.integers(1, 25)), SHAPES[int(rng.integers(5))]).graph
    total = float(graph.size.sum())
    tight = bool(rng.random() < 0.15)
    share = float(rng.uniform(1.0, 3.0)) if tight else 40.0
    platform = random_platform(
        seed,
        NETWORKS[int(rng.integers(5))],
        contention=CONTENTIONS[int(rng.integers(3))],
        hosts=int(rng.integers(1, 7)),
        origin=ORIGINS[int(rng.integers(3))],
        storage=share * total if tight or rng.random() < 0.3 else np.inf,
    )
    horizon = float(graph.work.sum()) / len(platform.hosts) + 5.0
    if rng.random() < 0.3:
        platform = _with_traces(platform, rng, horizon)
    changes = faults(platform, profile, seed, horizon)
    if rng.random() < 0.3:
        graph = _with_homes_and_goals(graph, platform, changes, rng)
    if rng.random() < 0.3:
        graph = _with_cores_and_releases(graph, platform, rng, horizon)
    real = graph
    if rng.random() < 0.4:
        real = graph.with_work(graph.work * 10 ** rng.uniform(-1.0, 1.0, graph.n_tasks))
        if not np.isfinite(platform.network.storage).any():
            real = real.with_size(graph.size * 10 ** rng.uniform(-0.5, 0.5, graph.n_items))
    policy = _policy(rng)
    name = schedulers[int(rng.integers(len(schedulers)))]
    if name not in WITHOUT_PLANS:
        one = np.ones(graph.n_tasks, np.int32)
        graph, real = replace(graph, cores=one), replace(real, cores=one)
    scheduler = _scheduler(name, seed, policy, rng, horizon)
    if profile == "slow-planning" and not isinstance(scheduler, Replan):
        scheduler = Slow(scheduler, float(rng.uniform(0.01, 0.3)) * horizon)
    return FaultCase(seed, graph, real, platform, changes, scheduler, policy, tight)


def run_case(case: FaultCase) -> SimulatedRun:
    """Simulate the run; raises NoPlan if it cannot make progress."""
    return simulate_scheduler(
        case.graph,
        case.platform,
        case.scheduler,
        changes=case.changes,
        real=case.real,
        policy=case.policy,
    )


def violations_of(case: FaultCase) -> list[Violation]:
    """Violations in the run of a case. A run that cannot progress is a violation too, unless storage is tight."""
    try:
        run = run_case(case)
    except HeadraceError as problem:
        return [] if case.tight else [Violation("progress", str(problem))]
    return judge(run, case.changes, real=case.real, duplicates=case.policy.duplicate)


def _policy(rng: Rng) -> ExecutionPolicy:
    return ExecutionPolicy(
        link_order=ORDERS[int(rng.integers(4))],
        task_order="ready" if rng.random() < 0.5 else "planned",
        routes="nearest" if rng.random() < 0.5 else "planned",
        prefetch_depth=int(rng.integers(1, 4)),
        steal=bool(rng.random() < 0.3),
        duplicate=bool(rng.random() < 0.3),
        replicate=int(rng.integers(0, 3)),
        strict=bool(rng.random() < 0.2),
    )


def _scheduler(name: str, seed: int, policy: ExecutionPolicy, rng: Rng, horizon: float) -> Scheduler:
    if name == "workqueue":
        return Workqueue()
    if name == "wild":
        return Wild(seed, ordered=policy.strict)
    if name == "lheft":
        return LHeft(buffer=int(rng.integers(1, 9)))
    if name == "heft":
        return Replan(Heft())
    if name == "dheft":
        return DHeft(planning=float(rng.choice([0.0, 0.5 * horizon])))
    timings: tuple[Literal["S1", "S2", "S3"], ...] = ("S1", "S2", "S3")
    events = timings[int(rng.integers(3))]
    cost = float(rng.choice([0.0, 0.1, 0.5])) * horizon
    return Replan(
        ExtendedSufferage(),
        ReplanPolicy(events=events, planning_fixed=cost, keep=int(rng.integers(0, 3))),
        seed,
    )


def _with_traces(platform: Platform, rng: Rng, horizon: float) -> Platform:
    """Some hosts and links follow traces from the start."""
    sites = []
    for site in platform.sites:
        hosts = tuple(
            replace(host, trace=availability(rng, horizon)) if rng.random() < 0.5 else host
            for host in site.hosts
        )
        site = replace(site, hosts=hosts)
        if site.uplink is not None and rng.random() < 0.5:
            site = replace(site, uplink_trace=link_behaviour(rng, horizon, site.uplink))
        sites.append(site)
    links = tuple(
        replace(link, trace=link_behaviour(rng, horizon, link.bandwidth)) if rng.random() < 0.5 else link
        for link in platform.links
    )
    return replace(platform, sites=tuple(sites), links=links)


def _with_cores_and_releases(graph: Graph, platform: Platform, rng: Rng, horizon: float) -> Graph:
    """Some tasks use several cores, at most as many as every host has; some have a release time."""
    fewest = min(host.cores for host in platform.hosts)
    cores = rng.integers(1, fewest + 1, graph.n_tasks).astype(np.int32)
    late = rng.random(graph.n_tasks) < 0.3
    release = np.where(late, rng.uniform(0.0, 0.5, graph.n_tasks) * horizon, 0.0)
    return replace(graph, cores=cores, release=release)


def _with_homes_and_goals(graph: Graph, platform: Platform, changes: Sequence[Change], rng: Rng) -> Graph:
    """Some inputs are initially at, and some results go to, sites or hosts that have no faults."""
    touched = {change.name for change in changes if not change.what.endswith("trace")}
    touched |= {site.name for site in platform.sites for host in site.hosts if host.name in touched}
    safe = [name for name in platform.place_of if name not in touched]
    if not safe:
        return graph

    def some(items: Any) -> SiteLists:
        chosen = [int(i) for i in items if rng.random() < 0.5]
        return SiteLists.of_items({i: (safe[int(rng.integers(len(safe)))],) for i in chosen}, graph.n_items)

    outside = np.flatnonzero((graph.producer == OUTSIDE) & (graph.size > 0))
    return replace(
        graph,
        initial_locations=some(outside),
        destinations=some(np.flatnonzero(graph.result & (graph.producer >= 0))),
    )
