"""Search under contention: list passes equal the list scheduler, plans are valid, never longer, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.planners.list.heft import Heft
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import ListScheduler
from headrace.planners.registry import make
from headrace.planners.search.annealing_search import order_of
from headrace.planners.search.best import Best
from headrace.planners.search.contended import contended
from headrace.planners.search.contended_moves import Moves
from headrace.planners.search.contended_state import Passes, link_use
from headrace.planners.search.critical_chain import critical_tasks
from headrace.planners.search.restarts import Restarted, shared_inputs
from headrace.simulator.replay.replay import replay
from headrace.testing.exact_links import solved_makespan
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

FEW = settings(max_examples=20, deadline=None)


def busy(seed: int, tasks: int = 30, hosts: int = 5) -> Problem:
    """A problem with fifo links that much data must cross."""
    graph = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)]).graph
    platform = random_platform(
        seed, NETWORKS[seed % len(NETWORKS)], contention="fifo", hosts=hosts, origin=ORIGINS[seed % 3]
    )
    return Problem(graph.with_fields(size=20 * graph.size), platform)


def from_scratch(problem: Problem, order: np.ndarray, host: np.ndarray, waits: bool) -> float:  # type: ignore[type-arg]
    scheduler = ListScheduler(problem)
    scheduler.place(order, host_constraints(scheduler.arrays, fixed=host), results_wait=waits)
    if waits:
        scheduler.return_results()
    return scheduler.plan("").makespan


@FEW
@given(st.integers(0, 10_000), st.booleans())
def test_a_trial_gives_what_the_list_scheduler_gives_from_scratch(seed: int, waits: bool) -> None:
    """Also after many trials that were accepted or not, from whatever state each of them begins."""
    problem = busy(seed, tasks=40)
    plan = Heft().plan(problem)
    passes = Passes(problem, results_wait=waits)
    order, host = order_of(plan), plan.host.astype(np.int32)
    passes.accept(order, 0, passes.trial(order, host, 0, np.inf))
    moves = Moves(problem, passes, seed)
    moves.note_current()
    made = 0
    for step in range(60):
        move = moves.kinds[step % len(moves.kinds)]()
        if move is None:
            continue
        found = passes.trial(move.order, move.host, move.first, np.inf)
        chosen = passes.schedule.placement.host.copy()
        assert (chosen == move.host)[move.host >= 0].all()
        assert found == pytest.approx(from_scratch(problem, move.order, chosen, waits), rel=1e-12)
        made += 1
        if step % 3:
            passes.accept(move.order, move.first, found)
            moves.note_current()
    assert made > 10


@FEW
@given(st.integers(0, 10_000))
def test_a_pass_that_is_cut_would_have_been_too_long(seed: int) -> None:
    problem = busy(seed)
    plan = Heft().plan(problem)
    passes = Passes(problem)
    order, host = order_of(plan), plan.host.astype(np.int32)
    whole = passes.trial(order, host, 0, np.inf)
    assert passes.trial(order, host, 0, whole) == whole
    assert passes.trial(order, host, 0, 0.999 * whole) == np.inf


@FEW
@given(st.integers(0, 10_000))
def test_moves_keep_tasks_after_their_predecessors(seed: int) -> None:
    problem = busy(seed)
    graph = problem.graph
    plan = Heft().plan(problem)
    passes = Passes(problem)
    order = order_of(plan)
    passes.accept(order, 0, passes.trial(order, plan.host.astype(np.int32), 0, np.inf))
    moves = Moves(problem, passes, seed)
    moves.note_current()
    for kind in moves.kinds * 5:
        if (move := kind()) is None:
            continue
        position = np.empty(graph.n_tasks, np.int64)
        position[move.order] = np.arange(graph.n_tasks)
        reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
        maker = graph.producer[graph.reads]
        assert (position[maker[maker >= 0]] < position[reader[maker >= 0]]).all()
        same = np.arange(graph.n_tasks) < move.first
        assert (move.order[same] == passes.order[same]).all()
        assert (move.host[move.order[same]] == passes.host[move.order[same]]).all()


def test_the_chain_ends_with_what_ends_last_and_covers_the_critical_tasks_of_single_chains() -> None:
    for seed in range(10):
        problem = busy(seed)
        plan = Heft().plan(problem)
        passes = Passes(problem)
        order = order_of(plan)
        made = passes.trial(order, plan.host.astype(np.int32), 0, np.inf)
        chain = passes.chain()
        decoded = passes.plan("decoded")
        assert decoded.makespan == made
        assert len(chain) >= 1
        if decoded.finish.max() == made:
            assert int(np.argmax(decoded.finish)) in chain.tolist()
            assert np.intersect1d(chain, critical_tasks(decoded, problem.holders)).size > 0


@pytest.mark.slow
@pytest.mark.parametrize("network", ["ports", "uplinks", "sites"])
def test_plans_are_valid_shorter_and_reproducible(network: str) -> None:
    shorter = 0
    for seed in range(4):
        graph = random_program(seed, tasks=60, shape=SHAPES[seed % len(SHAPES)]).graph
        platform = random_platform(seed, network, contention="fifo", hosts=6, origin="site")  # type: ignore[arg-type]
        problem = Problem(graph.with_fields(size=20 * graph.size), platform)
        heft = Heft().plan(problem)
        first, again = (
            contended(problem, heft, 0.2, 3, np.inf, lambda makespan: None, lambda: False) for _ in range(2)
        )
        assert check(problem.graph, problem.platform, first) == []
        assert replay(first).makespan == pytest.approx(first.makespan, rel=1e-9)
        assert np.array_equal(first.host, again.host)
        assert np.array_equal(first.start, again.start)
        assert first.makespan <= heft.makespan
        shorter += first.makespan < 0.999 * heft.makespan
    assert shorter >= 2


def test_a_search_in_which_no_move_changes_anything_ends() -> None:
    """A chain on one host."""
    graph = random_program(1, tasks=5, shape="chain").graph
    platform = random_platform(1, "ports", contention="fifo", hosts=1)
    problem = Problem(graph, platform)
    heft = Heft().plan(problem)
    plan = contended(problem, heft, 0.01, 3, np.inf, lambda makespan: None, lambda: False)
    assert plan.makespan == pytest.approx(heft.makespan)


def test_close_to_the_optimum_of_small_cases() -> None:
    hits = 0
    for seed in range(6):
        problem = busy(seed, tasks=6, hosts=3)
        optimum = solved_makespan(problem, 60.0)
        found = Best(time=0.3).plan(problem).makespan
        assert found >= optimum.bound * (1 - 1e-3), f"seed {seed}: the oracle is not the optimum"
        hits += found <= optimum.makespan * (1 + 1e-3)
    assert hits >= 5


def test_restarts_are_no_worse_than_heft_and_their_order_gives_their_plan_again() -> None:
    better = 0
    for seed in range(6):
        problem = busy(seed, tasks=40)
        heft = Heft().plan(problem)
        restarted = Restarted(problem, heft, seed)
        restarted.run(0.05)
        plan = restarted.plan
        assert check(problem.graph, problem.platform, plan) == []
        assert plan.makespan <= heft.makespan * (1 + 1e-9)
        if restarted.order is not None:
            again = [from_scratch(problem, restarted.order, plan.host, waits) for waits in (False, True)]
            assert any(made == pytest.approx(plan.makespan, rel=1e-9) for made in again)
        better += plan.makespan < 0.999 * heft.makespan
    assert better >= 2


def test_the_use_of_links_is_a_share_of_the_makespan() -> None:
    plan = Heft().plan(busy(4))
    use = link_use(plan)
    assert use.min() >= 0
    assert use.max() <= 1 + 1e-9


def test_tasks_with_the_same_largest_shared_input_are_a_group() -> None:
    problem = busy(11, tasks=25)
    graph = problem.graph
    largest, group = shared_inputs(problem)
    for task in range(graph.n_tasks):
        shared = [
            i for i in graph.reads_of(task).tolist() if len(graph.readers_of(i)) > 1 and graph.size[i] > 0
        ]
        assert (largest[task] >= 0) == bool(shared)
        if shared:
            assert graph.size[largest[task]] == max(graph.size[i] for i in shared)
    for a in range(graph.n_tasks):
        for b in range(a):
            assert (group[a] == group[b]) == (largest[a] == largest[b] >= 0)


def test_auto_is_no_worse_than_the_quick_schedulers_on_busy_links() -> None:
    names = (
        "heft",
        "cpop",
        "peft",
        "wu-gajski",
        "locality",
        "subset",
        "restarts",
        "single-host",
        "round-robin",
    )
    for seed in range(5):
        problem = busy(seed)
        least = min(make(name).plan(problem).makespan for name in names)
        assert make("auto").plan(problem).makespan <= least * (1 + 1e-9)
