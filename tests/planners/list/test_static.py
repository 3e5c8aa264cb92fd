"""CPOP, PEFT, Wu-Gajski: against plain implementations of their definitions, and worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats, Graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.list.cpop import Cpop
from headrace.planners.list.heft import Heft
from headrace.planners.list.peft import Peft
from headrace.planners.list.ranks import mean_costs, ready_queue_order
from headrace.planners.list.wu_gajski import WuGajski
from headrace.testing.generate import NETWORKS, random_platform, random_program
from planners.cases import SHARED, example_of_the_paper, graph_of, read_dag, read_net


def test_cpop_on_the_example_of_the_paper() -> None:
    graph, platform = example_of_the_paper()
    plan = Cpop(always_bind=True).plan(Problem(graph, platform))
    assert plan.makespan == pytest.approx(86.0)
    assert [int(plan.host[t]) for t in (0, 1, 8, 9)] == [1, 1, 1, 1]  # the critical path
    assert plan.notes == ()


def test_cpop_says_when_it_lets_the_critical_path_go() -> None:
    graph, platform = example_of_the_paper()
    plan = Cpop().plan(Problem(graph, platform))
    assert plan.makespan < 86.0
    assert "would take 86 s" in plan.notes[-1]
    assert check(graph, platform, plan) == []


def test_cpop_keeps_the_critical_path_together_where_that_pays() -> None:
    """0 -> 1 -> 3 is critical. Free, 1 would follow its data; bound, all of it is on the fast host."""
    graph = graph_of([4.0, 8.0, 1.0, 4.0], [(0, 1, 4.0), (0, 2, 1.0), (1, 3, 4.0), (2, 3, 1.0)])
    plan = Cpop().plan(Problem(graph, Platform.pairwise([1.0, 2.0, 1.0], 1.0)))
    assert plan.host[[0, 1, 3]].tolist() == [1, 1, 1]
    assert plan.notes == ()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded graphs are not here")
def test_cpop_is_as_good_as_the_recorded_results() -> None:
    rows = [json.loads(line) for line in (SHARED / "reference.jsonl").read_text().splitlines()]
    rows = [r for r in rows if r["scheduler"] == "saga CPoP"]
    assert len(rows) >= 9
    ratios = []
    for row in rows:
        graph, platform = read_dag(SHARED / row["dag"]), read_net(SHARED / f"net-h{row['hosts']}.json.gz")
        plan = Cpop().plan(Problem(graph, platform))
        assert check(graph, platform, plan) == []
        ratios.append(plan.makespan / row["makespan"])
    assert np.exp(np.mean(np.log(ratios))) <= 1.01


def _plain_table(problem: Problem) -> Floats:
    """PEFT's table [tasks, hosts] by its definition: for every task and host all hosts of all successors."""
    graph, network = problem.graph, problem.platform.network
    rates, costs = problem.platform.rates(graph), mean_costs(problem_arrays(problem))
    latency, seconds = costs.latency, costs.seconds_per_byte
    hosts = range(len(problem.platform.hosts))
    table = np.zeros((graph.n_tasks, len(hosts)))
    for task in graph.order[::-1].tolist():
        moved = _bytes_to_successors(graph, task)
        for h in hosts:
            for later, size in moved.items():
                ways = []
                for w in hosts:
                    apart = network.host_place[w] != network.host_place[h] and size > 0
                    move = latency + size * seconds if apart else 0.0
                    ways.append(
                        table[later, w] + graph.work[later] / rates[graph.speed_class[later], w] + move
                    )
                table[task, h] = max(table[task, h], min(ways))
    return table


def _bytes_to_successors(graph: Graph, task: int) -> dict[int, float]:
    moved: dict[int, float] = {}
    for item in graph.writes_of(task).tolist():
        for reader in graph.readers_of(item).tolist():
            moved[reader] = moved.get(reader, 0.0) + float(graph.size[item])
    return moved


@pytest.mark.parametrize("network", NETWORKS)
def test_peft_table_is_as_defined(network: str) -> None:
    for seed in range(6):
        platform = random_platform(seed, network, hosts=4)  # type: ignore[arg-type]
        problem = Problem(random_program(seed, 15, "random").graph, platform)
        table = Peft().table(problem_arrays(problem))[:, platform.network.host_place]
        assert table == pytest.approx(_plain_table(problem), rel=1e-12)
        assert table.max() > 0


def test_peft_looks_ahead() -> None:
    """Task 0 ends sooner on h0, but what follows needs h1, far away."""
    kinds = {"b": 10.0}
    platform = Platform((Site("lab", (Host("h0", 1.1), Host("h1", 1.0, kinds=kinds)), bandwidth=1.0),))
    graph = graph_of([4.0, 20.0], [(0, 1, 5.0)])
    both = np.array([0, 1], np.int32)
    graph = replace(
        graph, kind=both, kinds=("a", "b"), speed_class=both, class_kind=both, arch_speeds=np.ones((2, 1))
    )
    assert Heft().plan(Problem(graph, platform)).host.tolist() == [0, 1]
    plan = Peft().plan(Problem(graph, platform))
    assert plan.host.tolist() == [1, 1]
    assert plan.makespan == pytest.approx(6.0)


def test_peft_refuses_a_table_that_is_too_large() -> None:
    graph, platform = example_of_the_paper()
    assert Peft(max_entries=30).plan(Problem(graph, platform)).makespan > 0
    with pytest.raises(NoPlan, match="10 tasks x 3 places has more than 29 entries"):
        Peft(max_entries=29).plan(Problem(graph, platform))


def test_ready_queue_waits_for_predecessors_and_breaks_ties_by_position() -> None:
    graph = graph_of([1.0] * 5, [(0, 3, 1.0), (1, 4, 1.0), (0, 4, 1.0)])
    tasks = problem_arrays(Problem(graph, Platform.pairwise([1.0], 1.0))).tasks
    order = ready_queue_order(tasks, np.array([1.0, 2.0, 1.0, 9.0, 8.0]))
    assert order.tolist() == [1, 0, 3, 4, 2]


def test_wu_gajski_starts_tasks_as_early_as_it_can() -> None:
    """The second task starts at once on the slow host, where HEFT would wait for the fast one."""
    graph = graph_of([4.0, 3.0], [])
    platform = Platform.pairwise([10.0, 1.0], 1.0)
    assert Heft().plan(Problem(graph, platform)).host.tolist() == [0, 0]
    plan = WuGajski().plan(Problem(graph, platform))
    assert plan.host.tolist() == [0, 1]
    assert plan.start.tolist() == [0.0, 0.0]


def test_wu_gajski_books_what_it_starts_early() -> None:
    """On links that carry one transfer at a time, the start counted is that with the transfer booked."""
    graph = graph_of([1.0, 2.0, 2.0, 2.0, 2.0], [(0, t, 3.0) for t in range(1, 5)])
    hosts = tuple(Host(f"h{i}") for i in range(3))
    for contention, starts in (("none", [0, 1, 3, 4, 4]), ("fifo", [0, 1, 3, 4, 5])):
        platform = Platform((Site("lab", hosts, bandwidth=1.0),), contention=contention)  # type: ignore[arg-type]
        plan = WuGajski().plan(Problem(graph, platform))
        assert sorted(plan.start.tolist()) == starts
