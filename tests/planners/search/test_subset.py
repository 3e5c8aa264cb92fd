"""HEFT on the best subset of hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.list.heft import Heft
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import by_decreasing_rank, mean_costs, upward_rank
from headrace.planners.search.subset import Subset, host_subsets
from headrace.testing.generate import cases
from planners.cases import graph_of


def test_subsets_are_prefixes_by_capacity_and_connection_and_sites() -> None:
    a = Site("a", (Host("a0", 1.0), Host("a1", 4.0)), uplink=1.0)
    b = Site("b", (Host("b0", 2.0), Host("b1", 1.0, cores=3)), uplink=9.0)
    c = Site("c", (Host("c0", 2.5),), uplink=9.0)
    problem = Problem(graph_of([1.0], []), Platform((a, b, c)))
    found = [tuple(s.tolist()) for s in host_subsets(problem)]
    assert found == [
        (0, 1, 2, 3, 4),
        (1,), (3,),  # the most capable; the most capable of the best connected
        (1, 3), (3, 4),
        (1, 2, 3, 4),
        (0, 1), (2, 3), (4,),
    ]  # fmt: skip


def test_other_hosts_get_nothing() -> None:
    graph = graph_of([1.0] * 6, [])
    problem = Problem(graph, Platform.pairwise([1.0, 9.0, 1.0, 9.0], 1.0))
    allowed = host_constraints(problem_arrays(problem), hosts=np.array([2, 0], np.int32))
    plan = list_plan(problem, graph.order, "test", allowed)
    assert sorted(set(plan.host.tolist())) == [0, 2]
    assert plan.makespan == pytest.approx(3.0)


def test_never_worse_than_heft_and_better_where_links_are_limited() -> None:
    better = 0
    for program, platform in cases(90, seed=5):
        problem = Problem(program.graph, platform)
        plan, heft = Subset().plan(problem), Heft().plan(problem)
        assert check(program.graph, platform, plan) == []
        assert plan.makespan <= heft.makespan
        better += plan.makespan < heft.makespan * (1 - 1e-9)
        if plan.makespan < heft.makespan:
            assert f"of {len(platform.hosts)} hosts" in plan.notes[-1]
    assert better >= 5


def test_means_count_allowed_hosts_only() -> None:
    graph = graph_of([1.0, 6.0, 1.0], [(0, 1, 4.0), (0, 2, 5.0)])
    bandwidth = np.array([[1.0, 1.0, 9.0], [1.0, 1.0, 9.0], [9.0, 9.0, 1.0]])
    problem = Problem(graph, Platform.pairwise([1.0, 2.0, 50.0], bandwidth))
    arrays = problem_arrays(problem)
    rank = upward_rank(arrays.tasks, mean_costs(arrays, np.array([0, 1], np.int32)))
    assert rank.tolist() == pytest.approx([0.75 + 4.0 + 4.5, 4.5, 0.75])
    assert by_decreasing_rank(arrays.tasks, rank).tolist() == [0, 1, 2]


def test_hosts_that_cannot_return_results_are_left_out() -> None:
    sites = (Site("home", (Host("h", 1.0),)), Site("away", (Host("fast", 50.0),)))
    graph = replace(graph_of([2.0, 2.0], [(0, 1, 1.0)]), result=np.array([True]))
    problem = Problem(graph, Platform(sites, (Link("home", "away", 1.0, oneway=True),), origin="home"))
    plan = Subset().plan(problem)
    assert plan.host.tolist()[0] == 0
    away = host_constraints(problem_arrays(problem), hosts=np.array([1], np.int32))
    with pytest.raises(NoPlan):
        list_plan(problem, graph.order, "test", away)
