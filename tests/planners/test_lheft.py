"""L-HEFT: the rank of equation 3, and where tasks without traffic go."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.board import Board
from headrace.planners.lheft import LHeft
from headrace.planners.locality import rank_ready
from headrace.planners.problem_arrays import arrays_of
from planners.cases import graph_of


def _board(
    platform: Platform, sizes: list[float], reads: list[list[int]], held: dict[int, tuple[int, ...]]
) -> Board:
    """A board with ready tasks that read items which lie at the given places."""
    graph = make_graph(
        work=np.ones(len(reads)),
        size=sizes,
        producer=[-1] * len(sizes),
        read_ptr=np.concatenate(([0], np.cumsum([len(r) for r in reads]))),
        reads=[i for r in reads for i in r],
    )
    problem = Problem(graph, platform, held)
    return Board(problem, arrays_of(problem))


def test_rank_is_level_then_least_traffic_then_longer_run_time() -> None:
    """Bytes to be moved: 0 (one host holds both), 3 (the larger of two is held), 0 (none read), 5, 3, 0."""
    platform = Platform.pairwise([1.0, 1.0, 1.0], 1.0)
    held = {0: (0,), 1: (0, 1), 2: (1,), 3: (2,)}
    board = _board(platform, [7.0, 3.0, 5.0, 9.0], [[0, 1], [0, 1, 2], [], [2, 3], [1, 0, 2], [2]], held)
    level, seconds = np.array([1, 1, 1, 1, 1, 0]), np.array([1.0, 1.0, 2.0, 1.0, 4.0, 1.0])
    order, stays = rank_ready(board, np.arange(6, dtype=np.int32), level.astype(np.int32), seconds)
    assert order.tolist() == [5, 2, 0, 4, 1, 3]
    assert stays.tolist() == [True, True, True, False, False, False]
    assert not board.scratch.held.any()


def test_a_place_without_hosts_is_no_holder() -> None:
    platform = Platform((Site("store"), Site("lab", (Host("a"), Host("b")), uplink=1.0)), origin="store")
    board = _board(platform, [7.0], [[0]], {})
    _, stays = rank_ready(board, np.array([0], np.int32), np.zeros(1, np.int32), np.ones(1))
    assert stays.tolist() == [False]


def test_tasks_without_traffic_stay_even_where_that_is_later() -> None:
    """Both readers stay on the host that made their inputs, though the other one is idle and near."""
    graph = graph_of([2.0, 4.0, 4.0], [(0, 1, 1e-3), (0, 2, 1e-3)])
    plan = LHeft().plan(Problem(graph, Platform.pairwise([1.0, 1.0], 1.0)))
    assert plan.host.tolist() == [0, 0, 0]
    assert plan.makespan == pytest.approx(10.0)


def test_of_several_holders_the_one_that_finishes_first() -> None:
    """All hosts of the site share their data: each is a holder, and the quicker one takes the longer task."""
    hosts = (Host("slow", 1.0), Host("quick", 3.0))
    graph = graph_of([3.0, 2.9, 6.0], [(0, 1, 1.0), (0, 2, 1.0)])
    platform = Platform((Site("lab", hosts, uplink=1.0), Site("far", (Host("idle", 2.0),), uplink=9.0)))
    plan = LHeft().plan(Problem(graph, platform))
    assert plan.host.tolist() == [1, 0, 1]


def test_levels_come_one_after_the_other() -> None:
    """A long task of level 1 is placed before the short one of level 2, whatever their traffic."""
    graph = graph_of([1.0, 1.0, 9.0, 1.0], [(0, 2, 5.0), (1, 2, 5.0), (0, 3, 1.0), (2, 3, 1.0)])
    plan = LHeft().plan(Problem(graph, Platform.pairwise([1.0, 1.0], 1.0)))
    assert plan.start[3] >= plan.finish[2]
    assert plan.host[3] == plan.host[2]
