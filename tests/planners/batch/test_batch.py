"""Batch-mode planners against the plain reference, on every kind of network and contention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Planner, Problem
from headrace.model.check import require_valid
from headrace.model.constraints import Constraints
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.batch import batch_planner
from headrace.planners.batch.host_groups import host_groups
from headrace.planners.batch.maxmin import MaxMin
from headrace.planners.batch.minmin import MinMin
from headrace.planners.batch.randomized import (
    RandomExtendedSufferage,
    RandomMaxMin,
    RandomMinMin,
    RandomSufferage,
)
from headrace.planners.batch.records import CLUSTER_SUFFERAGE, FEWEST_CLUSTERS, MAXMIN, MINMIN, SUFFERAGE
from headrace.planners.batch.sufferage import Sufferage
from headrace.planners.batch.sufferage2 import SufferageTwo
from headrace.planners.batch.sweep_blocks import BLOCK
from headrace.planners.batch.xsufferage import ExtendedSufferage
from headrace.testing.generate import cases
from planners.batch import batch_reference as reference

RULES: list[tuple[Callable[[], Planner], reference.Rule]] = [
    (MinMin, reference.minmin),
    (MaxMin, reference.maxmin),
    (Sufferage, reference.sufferage),
    (ExtendedSufferage, reference.xsufferage),
    (SufferageTwo, reference.sufferage2),
]
NUMBERS = {
    reference.minmin: MINMIN,
    reference.maxmin: MAXMIN,
    reference.sufferage: SUFFERAGE,
    reference.xsufferage: CLUSTER_SUFFERAGE,
    reference.sufferage2: FEWEST_CLUSTERS,
}
DRAWN = [
    (RandomMinMin, reference.minmin),
    (RandomMaxMin, reference.maxmin),
    (RandomSufferage, reference.sufferage),
    (RandomExtendedSufferage, reference.xsufferage),
]


def problems(n: int, seed: int) -> Iterator[Problem]:
    """Cases of every kind but fair links, where times are those of the replay."""
    for program, platform in cases(n, seed, tasks=9):
        if platform.contention != "fair":
            yield Problem(program.graph, platform, seed=seed)


def grids(n: int, tasks: int = 9) -> Iterator[Problem]:
    """Sweeps and small graphs on sites with shared storage behind uplinks, where rows wait to be renewed."""
    for seed in range(n):
        rng = np.random.default_rng([seed, 5])
        program = Program(f"sweep-{seed}")
        shared = [program.input(f"s{i}", size=float(rng.integers(1, 60))) for i in range(3)]
        for t in range(tasks):
            own = [program.input(f"p{t}.{i}", size=float(rng.integers(0, 4))) for i in range(2)]
            some = [s for s in shared if rng.random() < 0.5]
            before = [f"o{rng.integers(t)}"] if t > 5 and seed % 2 else []
            program.task(
                inputs=[*own, *some, *before],
                outputs={f"o{t}": float(rng.integers(0, 4))},
                work=float(rng.integers(1, 20)),
                name=f"t{t}",
            )
        sites = [
            Site(
                f"c{c}",
                tuple(
                    Host(f"h{c}.{i}", float(rng.integers(1, 4)), 1 + i % 2) for i in range(rng.integers(1, 4))
                ),
                uplink=float(rng.integers(1, 4)),
                uplink_latency=float(rng.integers(0, 2)),
            )
            for c in range(2 + seed % 4)
        ]
        origin = "store" if seed % 3 else "c0"
        platform = Platform((*sites, Site("store")), contention="fifo", origin=origin)
        holders = {0: (1, 0)} if seed % 5 == 4 else {}
        free_at = {0: 7.0} if seed % 4 == 3 else {}
        yield Problem(program.graph, platform, holders, free_at, seed)
        yield in_the_middle(program, platform, rng, seed)


def several_cores(n: int) -> Iterator[Problem]:
    """Cases of every kind in which some tasks hold two or three cores, which the first host always has."""
    for seed in range(n):
        rng = np.random.default_rng([seed, 7])
        plain = [*problems(3, seed=seed), *grids(1, tasks=7 + seed % 5)][seed % 4 :][:1]
        for problem in plain:
            sites = [
                replace(
                    site, hosts=tuple(replace(host, cores=int(rng.integers(1, 4))) for host in site.hosts)
                )
                for site in problem.platform.sites
            ]
            large = next(i for i, site in enumerate(sites) if site.hosts)
            first, *others = sites[large].hosts
            sites[large] = replace(sites[large], hosts=(replace(first, cores=3), *others))
            graph = problem.graph.with_fields(
                cores=rng.integers(1, 4, problem.graph.n_tasks).astype(np.int32)
            )
            yield replace(problem, graph=graph, platform=replace(problem.platform, sites=tuple(sites)))


def in_the_middle(program: Program, platform: Platform, rng: np.random.Generator, seed: int) -> Problem:
    """Some inputs are at sites or on their way there already, hosts and links are busy."""
    graph, network = program.graph, platform.network
    places = np.unique(network.host_place)
    holders, since = dict[int, tuple[int, ...]](), dict[tuple[int, int], float]()
    for item in np.flatnonzero(graph.producer < 0).tolist():
        at = [int(p) for p in places if p != network.origin and rng.random() < 0.3]
        if at:
            holders[item] = tuple(sorted([*at, network.origin]))
            since |= {(item, p): float(rng.integers(1, 20)) for p in at if rng.random() < 0.5}
    links = {link: float(rng.integers(1, 20)) for link in range(network.n_links) if rng.random() < 0.5}
    free_at = {host: float(rng.integers(9)) for host in range(0, len(platform.hosts), 2)}
    return Problem(graph, platform, holders, free_at, seed, since=since, link_free_at=links)


def exact_limits(
    problem: Problem, rule: reference.Rule, tolerance: float = batch_planner.EXACT
) -> tuple[int, int]:
    """Up to how many ready tasks the planner keeps all keys current, in the first level and in others."""
    arrays = problem_arrays(problem)
    groups = host_groups(problem.platform.network, arrays)
    levels = batch_planner._level_offsets(arrays.tasks.level)
    batch = batch_planner._new_batch(problem, arrays, groups, levels, NUMBERS[rule], tolerance, by_usage=True)
    first, later = batch.exact.tolist()
    return first, later


def require_same(planner: Planner, problem: Problem, plain: reference.Reference) -> None:
    plan = planner.plan(problem)
    where = f"{planner.name}: {problem.graph.name} on {problem.platform.name}"
    tasks = range(problem.graph.n_tasks)
    assert plan.host.tolist() == [plain.host[t] for t in tasks], where
    assert plan.core.tolist() == [plain.core[t] for t in tasks], where
    assert plan.start.tolist() == [plain.start[t] for t in tasks], where
    moves = zip(
        plan.move_item, plan.move_source, plan.move_target, plan.move_start, plan.move_finish, strict=True
    )
    assert [tuple(m) for m in moves] == plain.moves, where


@pytest.mark.parametrize(("planner", "rule"), RULES)
def test_equals_the_reference(planner: Callable[[], Planner], rule: reference.Rule) -> None:
    for problem in problems(225, seed=3):
        require_same(planner(), problem, reference.run(problem, rule))


@pytest.mark.parametrize(("planner", "rule"), RULES)
def test_equals_the_reference_with_tasks_of_several_cores(
    planner: Callable[[], Planner], rule: reference.Rule
) -> None:
    for problem in several_cores(40):
        require_same(planner(), problem, reference.run(problem, rule))
        if not problem.holders and not problem.free_at:  # `check` starts from an idle grid
            require_valid(problem.graph, problem.platform, planner().plan(problem))


@pytest.mark.parametrize("small", [16, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("planner", "rule"), RULES)
def test_equals_the_reference_on_clusters_behind_uplinks(
    planner: Callable[[], Planner], rule: reference.Rule, small: int
) -> None:
    for problem in [*grids(small), *grids(small // 8, tasks=40)]:
        plain = reference.run(problem, rule, exact=exact_limits(problem, rule))
        require_same(planner(), problem, plain)


@pytest.mark.parametrize("small", [6, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("planner", "rule"), RULES)
def test_equals_the_reference_with_keys_that_are_kept(
    planner: Callable[[], Planner],
    rule: reference.Rule,
    small: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_planner, "EXACT_ON_SHARED_LINKS", 3)
    monkeypatch.setattr(batch_planner, "EXACT_IN_SWEEPS", 5)
    kept = different = 0
    for problem in [*grids(small, tasks=15), *grids(small // 6, tasks=60), *problems(4 * small, seed=8)]:
        exact = exact_limits(problem, rule)
        plain = reference.run(problem, rule, exact=exact)
        require_same(planner(), problem, plain)
        kept += int(np.bincount(problem.graph.level).max()) > min(exact)
        different += plain.host != reference.run(problem, rule).host
    assert kept > small
    assert different > 0


@pytest.mark.parametrize(("planner", "rule"), RULES)
def test_constraints_that_exclude_nothing_change_nothing(
    planner: Callable[[], Planner], rule: reference.Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_planner, "EXACT_ON_SHARED_LINKS", 3)
    monkeypatch.setattr(batch_planner, "EXACT_IN_SWEEPS", 5)
    for problem in [*grids(8, tasks=20), *problems(16, seed=9)]:
        none = Constraints.none(problem.graph.n_tasks, len(problem.platform.hosts))
        free, bound = planner().plan(problem), planner().plan(replace(problem, constraints=none))
        assert free.host.tolist() == bound.host.tolist(), problem.graph.name
        assert free.start.tolist() == bound.start.tolist(), problem.graph.name


@pytest.mark.parametrize(
    ("planner", "rule"),
    [
        (RandomSufferage, reference.sufferage),
        (RandomMaxMin, reference.maxmin),
        (RandomMinMin, reference.minmin),
    ],
)
def test_draws_among_kept_keys_equal_the_reference(
    planner: Callable[[float], Planner],
    rule: reference.Rule,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_planner, "EXACT_ON_SHARED_LINKS", 3)
    monkeypatch.setattr(batch_planner, "EXACT_IN_SWEEPS", 5)
    for problem in grids(8, tasks=20):
        exact = exact_limits(problem, rule, 0.3)
        require_same(planner(0.3), problem, reference.run(problem, rule, 0.3, exact=exact))


@pytest.mark.parametrize("few", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("planner", "rule"), [(MinMin, reference.minmin), (MaxMin, reference.maxmin)])
def test_equals_the_reference_with_several_blocks_of_tasks(
    planner: Callable[[], Planner], rule: reference.Rule, few: int
) -> None:
    for problem in grids(few, tasks=2 * BLOCK + 7):
        plain = reference.run(problem, rule, exact=exact_limits(problem, rule))
        require_same(planner(), problem, plain)


@pytest.mark.parametrize(("planner", "rule"), DRAWN)
@pytest.mark.parametrize("tolerance", [0.0, 0.3])
def test_draws_equal_the_reference(
    planner: Callable[[float], Planner], rule: reference.Rule, tolerance: float
) -> None:
    for problem in [*problems(45, seed=4), *grids(20), *grids(2, tasks=40)]:
        plain = reference.run(problem, rule, tolerance, exact=exact_limits(problem, rule, tolerance))
        require_same(planner(tolerance), problem, plain)


def test_inputs_in_reading_order_equal_the_reference() -> None:
    different = 0
    for problem in grids(30):
        plain = reference.run(problem, reference.minmin, by_usage=False)
        require_same(MinMin(by_usage=False), problem, plain)
        different += plain.moves != reference.run(problem, reference.minmin).moves
    assert different > 10
