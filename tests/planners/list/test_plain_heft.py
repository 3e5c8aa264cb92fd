"""The compiled HEFT does what a HEFT of under a hundred lines of code does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.scheduler import Problem
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.planners.list.heft import Heft
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from planners.cases import OWN, example_of_the_paper, graph_of, read_dag, read_net
from planners.list.plain_heft import PlainHeft


def compare(graph: Graph, platform: Platform) -> None:
    """Same hosts, starts and finishes."""
    made, plain = Heft().plan(Problem(graph, platform)), PlainHeft(graph, platform).plan()
    assert [plain[t][0] for t in range(graph.n_tasks)] == made.host.tolist()
    for row, times in ((1, made.start), (2, made.finish)):
        assert [plain[t][row] for t in range(graph.n_tasks)] == pytest.approx(
            times.tolist(), rel=1e-9, abs=1e-9
        )


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 30),
    st.sampled_from(SHAPES),
    st.sampled_from(NETWORKS),
    st.sampled_from(ORIGINS),
    st.integers(1, 6),
)
def test_without_contention(seed, tasks, shape, network, origin, hosts):
    graph = random_program(seed, tasks, shape).graph
    compare(worked(graph, seed), random_platform(seed, network, hosts=hosts, origin=origin))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from(NETWORKS), st.integers(1, 5))
def test_with_one_transfer_at_a_time(seed, tasks, network, hosts):
    """An item for each edge: then there is one copy to send, and no choice among several."""
    rng = np.random.default_rng(seed)
    ends = [(a, b) for b in range(tasks) for a in range(b) if rng.random() < 2.0 / tasks]
    edges = [(a, b, float(rng.uniform(1e4, 1e7))) for a, b in ends]
    graph = graph_of(rng.uniform(0.5, 20.0, tasks).tolist(), edges)
    compare(graph, random_platform(seed, network, contention="fifo", hosts=hosts))


def test_known_graphs():
    compare(*example_of_the_paper())
    compare(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))


def worked(graph: Graph, seed: int) -> Graph:
    """Every task has some work: without it hosts tie, and rounding decides."""
    least = np.random.default_rng(seed).uniform(0.1, 0.2, graph.n_tasks)
    return replace(graph, work=np.maximum(graph.work, least))
