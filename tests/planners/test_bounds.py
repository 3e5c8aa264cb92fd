"""Bounds are proven: none exceeds the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.graph import make_graph
from headrace.model.platform import Host as MachineHost
from headrace.model.platform import Platform, Site
from headrace.planners.bounds import lower_bound
from headrace.planners.heft import Heft
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from planners.oracle import best_makespan


@pytest.mark.parametrize("network", NETWORKS)
def test_bound_is_not_above_the_optimum_nor_heft_below_it(network: str) -> None:
    tight = 0
    for seed in range(24):
        program = random_program(seed, tasks=4, shape=SHAPES[seed % len(SHAPES)])
        platform = random_platform(seed, network, hosts=3, origin=ORIGINS[seed % 3])  # type: ignore[arg-type]
        problem = Problem(program.graph, platform)
        optimum = best_makespan(problem)
        bound = lower_bound(problem)
        assert bound <= optimum * (1 + 1e-9), f"seed {seed}"
        assert Heft().plan(problem).makespan >= optimum * (1 - 1e-9), f"seed {seed}"
        tight += bound >= optimum * (1 - 1e-9)
    assert tight >= 4


def test_area_counts_no_more_cores_than_tasks() -> None:
    graph = make_graph(work=[6.0, 6.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    platform = Platform.pairwise([2.0, 1.0, 1.0, 1.0], 1e6)
    assert lower_bound(Problem(graph, platform)) == pytest.approx(4.0)  # 12 / (2 + 1), not 12 / 5


def test_inputs_from_an_origin_without_hosts_cross_its_link() -> None:
    graph = make_graph(
        work=[1.0] * 10, size=[5e6] * 10, producer=[-1] * 10, read_ptr=np.arange(11), reads=np.arange(10)
    )
    hosts = tuple(MachineHost(f"h{i}") for i in range(10))
    sites = (Site("home"), Site("lab", hosts, uplink=1e6))
    for contention, bound in (("none", 6.0), ("fifo", 50.0), ("fair", 50.0)):
        platform = Platform(sites, contention=contention, origin="home")  # type: ignore[arg-type]
        assert lower_bound(Problem(graph, platform)) == pytest.approx(bound)
