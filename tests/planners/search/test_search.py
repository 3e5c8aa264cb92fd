"""The search by moves: what it updates step by step equals what is computed from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.arrays.compiling import entry
from headrace.core.scheduler import Problem
from headrace.planners.list.heft import Heft
from headrace.planners.search import annealing_search
from headrace.planners.search.incremental_eval import compute_finish, compute_tail
from headrace.planners.search.records import SearchTables, Solution
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, NetworkKind, random_platform, random_program


def problem_of(seed: int, network: NetworkKind, tasks: int) -> Problem:
    program = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)])
    platform = random_platform(seed, network, hosts=4, origin=ORIGINS[seed % 3])
    return Problem(program.graph, platform, free_at={0: 3.0} if seed % 2 else {})


def searched(problem: Problem, seed: int) -> annealing_search._Search:
    plan = Heft().plan(problem)
    search = annealing_search._Search(problem, plan, seed)
    search.begin(plan)
    search.run(0.002, 0.02, 0.01)
    return search


@entry
def evaluate(tables: SearchTables, solution: Solution) -> None:
    """All times of a solution, from scratch."""
    for task in solution.order:
        compute_finish(tables, solution, task)
    for task in solution.order[::-1]:
        compute_tail(tables, solution, task)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("tasks", [12, 200])
def test_times_after_many_moves_are_those_computed_from_scratch(network: NetworkKind, tasks: int) -> None:
    accepted = 0
    for seed in range(5):
        problem = problem_of(seed, network, tasks)
        search = searched(problem, seed)
        s = search.solution
        accepted += not np.array_equal(s.host, Heft().plan(problem).host)
        updated = (s.finish.copy(), s.returned.copy(), s.tail.copy())
        evaluate(search.tables, s)
        for before, after in zip(updated, (s.finish, s.returned, s.tail), strict=True):
            assert before == pytest.approx(after, rel=1e-12)
        assert search.makespan == pytest.approx(float(s.returned.max()), rel=1e-12)
        assert np.array_equal(search.trial.finish, s.finish)
    assert accepted > 0


@pytest.mark.parametrize("network", NETWORKS)
def test_chains_of_cores_follow_the_order(network: NetworkKind) -> None:
    search = searched(problem_of(3, network, 200), 3)
    s = search.solution
    assert np.array_equal(s.order[s.position], np.arange(200))
    for core in range(len(s.first)):
        on_core = s.order[s.core[s.order] == core]
        chain, task = [], int(s.first[core])
        while task >= 0:
            chain.append(task)
            task = int(s.next[task])
        assert chain == on_core.tolist()
        assert s.before[on_core].tolist() == [-1, *chain[:-1]][: len(chain)]
        for block in range(len(s.last)):
            earlier = on_core[s.position[on_core] < block * 64]
            assert s.last[block, core] == (earlier[-1] if len(earlier) else -1)


def test_the_plan_is_as_long_as_the_search_says_or_shorter() -> None:
    shorter = 0
    for seed in range(20):
        problem = problem_of(seed, "pairs", 30)
        search = searched(problem, seed)
        plan = search.plan("best")
        assert plan.makespan <= search.best * (1 + 1e-9)
        shorter += plan.makespan < Heft().plan(problem).makespan * (1 - 1e-9)
    assert shorter >= 5
