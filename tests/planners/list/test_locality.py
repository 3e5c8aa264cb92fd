"""The planner `locality`: how ready tasks are ranked, and where tasks without traffic go."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.list.locality import Locality, rank_ready
from headrace.planners.partial_schedule import empty_schedule
from planners.cases import graph_of


def _problem(
    platform: Platform, sizes: list[float], reads: list[list[int]], held: dict[int, tuple[int, ...]]
) -> Problem:
    """Ready tasks that read items which lie at the given places."""
    graph = make_graph(
        work=np.ones(len(reads)),
        size=sizes,
        producer=[-1] * len(sizes),
        read_ptr=np.concatenate(([0], np.cumsum([len(r) for r in reads]))),
        reads=[i for r in reads for i in r],
    )
    return Problem(graph, platform, held)


def test_rank_is_least_traffic_then_longer_run_time() -> None:
    """Bytes to be moved: 0 (one host holds both), 3 (the larger of two is held), 0 (none read), 5, 3, 0."""
    platform = Platform.pairwise([1.0, 1.0, 1.0], 1.0)
    held = {0: (0,), 1: (0, 1), 2: (1,), 3: (2,)}
    reads = [[0, 1], [0, 1, 2], [], [2, 3], [1, 0, 2], [2]]
    arrays = problem_arrays(_problem(platform, [7.0, 3.0, 5.0, 9.0], reads, held))
    seconds = np.array([1.0, 1.0, 2.0, 1.0, 4.0, 1.0])
    copies = empty_schedule(arrays).copies
    order, stay = rank_ready(arrays, copies, np.arange(6, dtype=np.int32), seconds)
    assert order.tolist() == [2, 0, 5, 4, 1, 3]
    assert stay.tolist() == [True, True, True, False, False, False]


def test_a_lower_level_comes_first() -> None:
    graph = graph_of([1.0, 9.0, 1.0], [(0, 1, 5.0)])
    arrays = problem_arrays(Problem(graph, Platform.pairwise([1.0, 1.0], 1.0)))
    copies = empty_schedule(arrays).copies
    order, _ = rank_ready(arrays, copies, np.array([1, 0, 2], np.int32), np.array([1.0, 9.0, 2.0]))
    assert order.tolist() == [2, 0, 1]


def test_a_place_without_hosts_is_no_holder() -> None:
    platform = Platform((Site("store"), Site("lab", (Host("a"), Host("b")), uplink=1.0)), origin="store")
    arrays = problem_arrays(_problem(platform, [7.0], [[0]], {}))
    _, stay = rank_ready(arrays, empty_schedule(arrays).copies, np.array([0], np.int32), np.ones(1))
    assert stay.tolist() == [False]


def test_tasks_without_traffic_stay_even_where_that_is_later() -> None:
    """Both readers stay on the host that made their inputs, though the other one is idle and near."""
    graph = graph_of([2.0, 4.0, 4.0], [(0, 1, 1e-3), (0, 2, 1e-3)])
    plan = Locality().plan(Problem(graph, Platform.pairwise([1.0, 1.0], 1.0)))
    assert plan.host.tolist() == [0, 0, 0]
    assert plan.makespan == pytest.approx(10.0)


def test_of_several_holders_the_one_that_finishes_first() -> None:
    """All hosts of the site share their data: each is a holder, and the quicker one takes the longer task."""
    hosts = (Host("slow", 1.0), Host("quick", 3.0))
    graph = graph_of([3.0, 2.9, 6.0], [(0, 1, 1.0), (0, 2, 1.0)])
    platform = Platform((Site("lab", hosts, uplink=1.0), Site("far", (Host("idle", 2.0),), uplink=9.0)))
    plan = Locality().plan(Problem(graph, platform))
    assert plan.host.tolist() == [1, 0, 1]


def test_levels_come_one_after_the_other() -> None:
    """A long task of level 1 is placed before the short one of level 2, whatever their traffic."""
    graph = graph_of([1.0, 1.0, 9.0, 1.0], [(0, 2, 5.0), (1, 2, 5.0), (0, 3, 1.0), (2, 3, 1.0)])
    plan = Locality().plan(Problem(graph, Platform.pairwise([1.0, 1.0], 1.0)))
    assert plan.start[3] >= plan.finish[2]
    assert plan.host[3] == plan.host[2]
