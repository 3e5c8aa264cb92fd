"""Chains that share hosts: any flow and prices give a bound, and the search finds large ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Graph, make_graph
from headrace.model.platform import Contention, Host, Pairs, Platform, Site
from headrace.planners.bounding import anytime
from headrace.planners.bounding.chain_flows import join_delays
from headrace.planners.bounding.chain_prices import chain_bounds, chains_of, flow_bound, least_away
from headrace.planners.bounding.work_table import WorkTable, work_table
from headrace.planners.bounds import CHAIN, full_bound, lower_bound
from headrace.planners.registry import make
from headrace.testing.exact_links import linked_case, proven_optimum
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from planners.oracle import best_makespan

TOLERANCE = 1 + 1e-9


def _any_bound(problem: Problem, seed: int, most: float = np.inf) -> float:
    """The bound of random flows, some of them far from any path, and random prices."""
    random = np.random.default_rng(seed)
    table = work_table(problem)
    chains = chains_of(table, float(lower_bound(problem)))
    edge = random.exponential(1.0, len(chains.maker)) * (random.random(len(chains.maker)) < 0.7)
    enter = random.exponential(1.0, len(chains.order)) * (random.random(len(chains.order)) < 0.3)
    price = random.exponential(1.0, len(table.cores)) * (random.random(len(table.cores)) < 0.8)
    edge, enter, price = (v * 10.0 ** random.uniform(-2, 2) for v in (edge, enter, price))
    mask = np.isfinite(table.chain) if np.isinf(most) else table.chain <= most * TOLERANCE
    return flow_bound(table, chains, edge, enter, price, mask, most)


def _searched(problem: Problem) -> float:
    """The best bound of the search, which starts from half a known bound, so that it reports worse ones, too."""
    found = list(chain_bounds(work_table(problem), 0.5 * lower_bound(problem), np.inf, work_clock() + 60))
    assert found == sorted(found)
    return found[-1] if found else 0.0


def _holds_by_brute_force(seed: int, flow: int) -> None:
    """On all kinds of network, with speeds per kind, several cores and tasks of no work."""
    program = random_program(seed, tasks=4, shape=SHAPES[seed % len(SHAPES)])
    network = NETWORKS[seed // 5 % len(NETWORKS)]
    platform = random_platform(seed, network, hosts=3, origin=ORIGINS[seed // 25 % 3])
    problem = Problem(program.graph, platform)
    optimum = best_makespan(problem)
    assert _any_bound(problem, flow) <= optimum * TOLERANCE
    assert _any_bound(problem, flow, most=optimum) <= optimum * TOLERANCE
    if seed % 5 == 0:
        assert _searched(problem) <= optimum * TOLERANCE


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), flow=st.integers(0, 10_000))
def test_any_flow_and_prices_give_a_bound(seed: int, flow: int) -> None:
    _holds_by_brute_force(seed, flow)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 10_000), flow=st.integers(0, 10_000))
def test_any_flow_and_prices_give_a_bound_in_hundreds_of_cases(seed: int, flow: int) -> None:
    _holds_by_brute_force(seed, flow)


@cache
def _optimum(seed: int, contention: Contention) -> float | None:
    proven = proven_optimum(linked_case(seed, contention), seconds=20.0)
    return None if proven is None else proven[1]


def _holds(seeds: range) -> int:
    """Assert that no bound exceeds the optimum; how many were compared."""
    compared = 0
    for seed in seeds:
        contention: Contention = "fifo" if seed % 2 else "none"
        problem, optimum = linked_case(seed, contention), _optimum(seed, contention)
        if optimum is None:
            continue
        for flow in range(8):
            assert _any_bound(problem, flow) <= optimum * TOLERANCE, (seed, flow)
            assert _any_bound(problem, flow, most=optimum) <= optimum * TOLERANCE, (seed, flow)
        assert _searched(problem) <= optimum * TOLERANCE, seed
        compared += 1
    return compared


def test_bounds_hold_with_releases_wide_tasks_and_forbidden_hosts() -> None:
    seeds = range(200, 220)
    cases = [linked_case(seed, "none") for seed in seeds]
    assert any(case.graph.release.any() for case in cases)
    assert any(case.graph.cores.max() > 1 for case in cases)
    assert any(case.constraints is not None for case in cases)
    assert any((case.graph.work == 0).any() for case in cases)
    assert _holds(seeds) > 15


@pytest.mark.slow
def test_bounds_hold_in_hundreds_of_cases() -> None:
    assert _holds(range(220, 520)) > 270


def _path_graph(work: list[float], size: float = 0.0) -> Graph:
    n = len(work)
    return make_graph(
        work=work, size=[size] * (n - 1), producer=range(n - 1), read_ptr=[0, *range(n)], reads=range(n - 1)
    )


def _parallel_chains(count: int, length: int) -> Graph:
    number = np.arange(count * length)
    reads = number % length > 0
    return make_graph(
        work=np.ones(len(number)), size=np.zeros(int(reads.sum())), producer=number[reads] - 1,
        read_ptr=np.concatenate(([0], np.cumsum(reads))), reads=np.arange(int(reads.sum())),
    )  # fmt: skip


def _one_site(speeds: list[float]) -> Platform:
    return Platform((Site("s", tuple(Host(f"h{k}", speed) for k, speed in enumerate(speeds))),))


def _bound_of(table: WorkTable, edge: Floats, enter: Floats, price: Floats) -> float:
    return flow_bound(table, chains_of(table, 1e-9), edge, enter, price, np.isfinite(table.chain), np.inf)


def test_without_flow_it_is_the_bound_of_work_and_without_prices_that_of_a_chain() -> None:
    random = np.random.default_rng(4)
    problem = Problem(_path_graph(random.uniform(1, 9, 6).tolist()), _one_site([4.0, 2.0, 1.0]))
    table, work = work_table(problem), float(problem.graph.work.sum())
    assert _bound_of(table, np.zeros(5), np.zeros(6), np.array([4.0, 2.0, 1.0])) == pytest.approx(work / 7)
    assert _bound_of(table, np.ones(5), np.eye(6)[0], np.zeros(3)) == pytest.approx(work / 4)
    for scale in (1e-6, 1e6):
        assert _bound_of(table, np.full(5, scale), scale * np.eye(6)[0], np.zeros(3)) == pytest.approx(
            work / 4
        )


def test_a_flow_through_one_task_is_its_chain_bound() -> None:
    """Heads and tails on each class are those of the chain bound, communication and releases included."""
    for seed in range(10):
        problem = linked_case(seed, "none")
        table = work_table(problem)
        best = table.chain.min(axis=1)
        task = int(np.argmax(best))
        enter = np.eye(len(best))[task]
        found = _bound_of(
            table, np.zeros(len(chains_of(table, 1.0).maker)), enter, np.zeros(len(table.cores))
        )
        assert found == pytest.approx(float(best[task]))


def test_two_chains_share_a_fast_host() -> None:
    """Two chains of 2000 s at speed 1; one host of speed 4, three of speed 1.

    A share y of each chain on the fast host takes 2 * 2000 y / 4 s there, and the chain takes 2000 (y / 4 + 1 - y):
    both are 800 s for y = 0.8. The chain bound is 500 s, that of work 4000 / 7 s.
    """
    problem = Problem(_parallel_chains(2, 2000), _one_site([4.0, 1.0, 1.0, 1.0]))
    assert lower_bound(problem) < 670.0
    bound = full_bound(problem, seconds=20.0)
    assert 796.0 < bound <= 800.0 * TOLERANCE
    assert bound.name == anytime.CHAINS
    assert make("heft").plan(problem).makespan >= bound


def test_the_search_finds_the_larger_of_work_and_chain_at_least() -> None:
    """Within 1 %, on graphs that neither bound is made for."""
    for seed in range(6):
        program = random_program(seed, tasks=60, shape=("layered", "random")[seed % 2])
        speeds = np.random.default_rng(seed).uniform(1.0, 4.0, 12).tolist()
        problem = Problem(program.graph, _one_site(speeds))
        assert _searched(problem) >= 0.99 * lower_bound(problem)


def _cheapest(flow: Floats, away: Floats, run: Floats) -> float:
    """Every choice of inputs made at the task's place, and every order in which they were made."""
    best = np.inf
    every = range(len(flow))
    for count in range(1, len(flow) + 1):
        for here in combinations(every, count):
            moved = sum(flow[e] * away[e] for e in every if e not in here)
            for order in permutations(here):
                waits = sum(flow[a] * run[b] for k, a in enumerate(order) for b in order[k + 1 :])
                best = min(best, moved + waits)
    return best


def test_inputs_are_moved_or_made_one_after_another() -> None:
    random = np.random.default_rng(8)
    for _ in range(50):
        makers = int(random.integers(1, 5))
        graph = make_graph(
            work=[*random.uniform(1, 9, makers), 1.0], size=random.uniform(1, 9, makers), producer=range(makers),
            read_ptr=[*[0] * (makers + 1), makers], reads=range(makers),
        )  # fmt: skip
        table = work_table(Problem(graph, Platform.pairwise([2.0, 1.0], 1.0)))
        chains = chains_of(table, 1e-9)
        flow, delay = random.random(makers), np.zeros(makers)
        total = join_delays(chains, flow, delay)
        assert total == pytest.approx(_cheapest(flow, chains.away, graph.work[:makers] / 2.0))
        assert total == pytest.approx(float((flow * delay).sum()))


def test_data_may_take_a_detour_over_the_quickest_links() -> None:
    """From a to b takes 100 s, over c 2 s: no data takes less than 1 s to another place."""
    bandwidth = np.array([[1.0, 1.0, 100.0], [1.0, 1.0, 100.0], [100.0, 100.0, 1.0]])
    hosts = (Host("a"), Host("b"), Host("c", 1e-3))
    problem = Problem(_path_graph([1.0, 1.0], 100.0), Platform((Site("s", hosts),), pairs=Pairs(bandwidth)))
    assert least_away(problem, np.array([100.0, 0.0])) == pytest.approx([1.0, 0.0], rel=1e-3)
    several = replace(
        problem, platform=Platform((Site("s", (*hosts[:2], Host("c", cores=2))),), pairs=Pairs(bandwidth))
    )
    assert not least_away(several, np.array([100.0])).any()


def test_large_problems_have_the_chain_at_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick bound leaves out the places of tasks if there are many; the full one does not."""
    program = random_program(3, tasks=12, shape="chain")
    problem = Problem(program.graph, random_platform(3, "pairs", hosts=3))
    placed = lower_bound(problem)
    monkeypatch.setattr("headrace.planners.placed_bounds.MOST_STEPS", 0)
    assert lower_bound(problem) < placed
    heard = []
    assert full_bound(problem, seconds=20.0, tell=heard.append) >= placed
    assert (float(placed), CHAIN) in [(float(bound), bound.name) for bound in heard]
