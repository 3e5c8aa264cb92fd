"""HEFT against recorded results of a plain implementation, and on cases worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.list.heft import Heft
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.single_host import SingleHost
from planners.cases import OWN, SHARED, example_of_the_paper, read_dag, read_net


@pytest.mark.parametrize(("tasks", "makespan"), [(100, 837.424), (300, 1797.8243)])
def test_equals_the_plain_implementation(tasks: int, makespan: float) -> None:
    graph, platform = read_dag(OWN / f"dag-square-n{tasks}.json.gz"), read_net(OWN / "net-h8.json.gz")
    plan = Heft().plan(Problem(graph, platform))
    assert plan.makespan == pytest.approx(makespan, rel=1e-6)
    assert check(graph, platform, plan) == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the larger graphs are not here")
def test_equals_the_plain_implementation_on_larger_graphs() -> None:
    rows = [json.loads(line) for line in (SHARED / "reference.jsonl").read_text().splitlines()]
    rows = [r for r in rows if r["scheduler"] == "ref_heft_textbook"]
    assert len(rows) >= 8
    for row in rows:
        graph, platform = read_dag(SHARED / row["dag"]), read_net(SHARED / f"net-h{row['hosts']}.json.gz")
        plan = Heft().plan(Problem(graph, platform))
        assert plan.makespan == pytest.approx(row["makespan"], rel=1e-6), row
        assert check(graph, platform, plan) == []


def test_the_example_of_the_paper() -> None:
    graph, platform = example_of_the_paper()
    assert Heft().plan(Problem(graph, platform)).makespan == pytest.approx(80.0)


def _fork(size: float, n: int = 8) -> Graph:
    """One task whose n outputs are read by n tasks of one second each."""
    return make_graph(
        work=[0.0] + [1.0] * n,
        size=[size] * n,
        producer=[0] * n,
        read_ptr=np.concatenate(([0], np.arange(n + 1))),
        reads=np.arange(n),
    )


def test_a_shared_item_is_moved_once_per_place() -> None:
    graph = make_graph(
        work=[0.0] + [1.0] * 8, size=[1e6], producer=[0], read_ptr=[0, *range(9)], reads=[0] * 8
    )
    platform = Platform.pairwise([1.0, 1.0], 1e7)
    plan = Heft().plan(Problem(graph, platform))
    assert len(plan.move_item) == 1
    assert plan.makespan == pytest.approx(4.1)


def test_links_that_carry_one_transfer_at_a_time_change_the_plan() -> None:
    hosts = tuple(Host(f"h{i}") for i in range(4))
    free = Platform((Site("lab", hosts, bandwidth=1e6),))
    limited = Platform((Site("lab", hosts, bandwidth=1e6),), contention="fifo")
    graph = _fork(2e6)
    wishful, booked = Heft().plan(Problem(graph, free)), Heft().plan(Problem(graph, limited))
    assert wishful.hosts_used > 1
    assert wishful.makespan < booked.makespan <= SingleHost().plan(Problem(graph, limited)).makespan
    assert check(graph, limited, booked) == []


def test_hosts_with_several_cores_and_kinds() -> None:
    graph = make_graph(
        work=[6.0] * 4, size=[], producer=[], read_ptr=[0] * 5, reads=[], kind=[0, 0, 1, 1], kinds=("a", "b")
    )
    platform = Platform((Site("lab", (Host("two", 1.0, 2), Host("b", 1.0, 1, {"b": 6.0}))),))
    plan = Heft().plan(Problem(graph, platform))
    assert plan.makespan == pytest.approx(6.0)
    assert sorted(plan.core[plan.host == 0].tolist()) == [0, 1]
    assert plan.host[2] == plan.host[3] == 1


def test_nothing_runs_across_a_task_without_work() -> None:
    """b has no work and waits for its input until 5; c is placed later, and would fit in at 3 but for b."""
    graph = make_graph(
        work=[3.0, 0.0, 4.0], size=[2e6], producer=[0], read_ptr=[0, 0, 1, 1], reads=[0], kind=[0, 1, 2],
        kinds=("a", "b", "c"),
    )  # fmt: skip
    platform = Platform.pairwise([1.0, 1.0], 1e6)
    problem, order = Problem(graph, platform), np.array([0, 1, 2], np.int32)
    fixed = host_constraints(problem_arrays(problem), fixed=np.array([0, 1, 1], np.int32))
    plan = list_plan(problem, order, "test", fixed)
    assert check(graph, platform, plan) == []
    assert plan.start.tolist() == [0.0, 5.0, 0.0]
    late = Problem(graph, platform, free_at={1: 3.0})
    assert list_plan(late, order, "test", fixed).start.tolist() == [0.0, 5.0, 5.0]
