"""Hosts chosen by rollouts: plans that are valid, reproducible, and shorter than HEFT's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.check import require_valid
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform
from headrace.planners.list.heft import Heft
from headrace.planners.search.annealing_search import _Search, annealed
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program


def layered(tasks: int, width: int, seed: int) -> Graph:
    """Layers of this width; each task reads from three of the layer before it, each time an item of its own."""
    random = np.random.default_rng(seed)
    layer = np.arange(tasks) // width
    reads = np.where(layer > 0, 3, 0)
    source = np.repeat((layer - 1) * width, reads) + random.integers(0, width, int(reads.sum()))
    return make_graph(
        work=random.uniform(1.0, 100.0, tasks),
        size=random.uniform(1.0, 100.0, len(source)),
        producer=source,
        read_ptr=np.concatenate(([0], np.cumsum(reads))),
        reads=np.arange(len(source)),
    )


def pairwise(hosts: int, seed: int = 1) -> Platform:
    random = np.random.default_rng(seed)
    return Platform.pairwise(random.uniform(1.0, 4.0, hosts), random.uniform(1.0, 4.0, (hosts, hosts)))


def test_shorter_than_heft_on_layers() -> None:
    problem = Problem(layered(400, 20, seed=3), pairwise(24))
    heft = Heft().plan(problem)
    plan, _ = _Search(problem, heft, 0).rolled(heft, 0, 0.2, lambda: False)
    require_valid(problem.graph, problem.platform, plan)
    assert plan.makespan < 0.97 * heft.makespan


def test_without_tries_it_is_heft() -> None:
    problem = Problem(layered(300, 12, seed=4), pairwise(9))
    heft = Heft().plan(problem)
    plan, _ = _Search(problem, heft, 0).rolled(heft, 0, 0.2, lambda: True)
    assert np.array_equal(plan.host, heft.host)
    assert plan.makespan == pytest.approx(heft.makespan)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    tasks=st.integers(2, 40),
    shape=st.sampled_from(SHAPES),
    network=st.sampled_from(NETWORKS),
    origin=st.sampled_from(ORIGINS),
)
def test_valid_and_the_same_for_a_seed(seed: int, tasks: int, shape, network, origin) -> None:  # type: ignore[no-untyped-def]
    problem = Problem(
        random_program(seed, tasks, shape).graph, random_platform(seed, network, hosts=3, origin=origin)
    )
    heft = Heft().plan(problem)
    first, second = (_Search(problem, heft, 5).rolled(heft, 5, 0.002, lambda: False)[0] for _ in range(2))
    require_valid(problem.graph, problem.platform, first)
    assert np.array_equal(first.host, second.host)
    assert first.makespan == second.makespan


def test_annealing_starts_from_it_and_is_never_worse() -> None:
    problem = Problem(layered(400, 20, seed=5), pairwise(24))
    heft = Heft().plan(problem)
    told: list[float] = []
    plan = annealed(problem, heft, 0.5, 0, work_clock() + 60.0, told.append)
    require_valid(problem.graph, problem.platform, plan)
    assert told == sorted(told, reverse=True)
    assert plan.makespan <= told[0] < heft.makespan
