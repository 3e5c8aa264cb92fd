"""Bounds are proven: none exceeds the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.graph import make_graph
from headrace.model.platform import Host as MachineHost
from headrace.model.platform import Pairs, Platform, Site
from headrace.planners import placed_bounds
from headrace.planners.bounds import lower_bound
from headrace.planners.list.heft import Heft
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, NetworkKind, random_platform, random_program
from planners.oracle import best_makespan


@pytest.mark.parametrize("network", NETWORKS)
def test_bound_is_not_above_the_optimum_nor_heft_below_it(
    network: NetworkKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight = better = 0
    for seed in range(100):  # of each kind of network: 500 in all
        program = random_program(seed, tasks=4, shape=SHAPES[seed % len(SHAPES)])
        platform = random_platform(seed, network, hosts=3, origin=ORIGINS[seed % 3])
        problem = Problem(program.graph, platform)
        optimum = best_makespan(problem)
        bound = lower_bound(problem)
        assert bound <= optimum * (1 + 1e-9), f"seed {seed}"
        assert Heft().plan(problem).makespan >= optimum * (1 - 1e-9), f"seed {seed}"
        tight += bound >= optimum * (1 - 1e-9)
        with monkeypatch.context() as patch:
            patch.setattr(placed_bounds, "MOST_STEPS", 0)
            simple = lower_bound(problem)
        assert simple <= bound * (1 + 1e-9), f"seed {seed}"
        better += simple < bound * (1 - 1e-9)
    assert tight >= 10
    assert better >= (0 if network == "shared-site" else 5)


def test_data_that_is_passed_on_does_not_break_the_bound() -> None:
    """From a to c straight takes 100 s, by way of b 2 s: the bound must allow for that."""
    bandwidth = np.array([[1.0, 100.0, 1.0], [100.0, 1.0, 100.0], [1.0, 100.0, 1.0]])
    hosts = (
        MachineHost("a", kinds={"x": 100.0}),
        MachineHost("b", 1e-3),
        MachineHost("c", kinds={"y": 100.0}),
    )
    platform = Platform((Site("all", hosts),), pairs=Pairs(bandwidth))
    graph = make_graph(
        work=[100.0, 100.0], size=[100.0], producer=[0], read_ptr=[0, 0, 1], reads=[0], kind=[0, 1],
        kinds=("x", "y"),
    )  # fmt: skip
    assert lower_bound(Problem(graph, platform)) == pytest.approx(
        3.0
    )  # each task 1 s, a hop between them 1 s


def test_predecessors_whose_data_takes_long_share_a_host() -> None:
    """Four tasks of 1 s, joined: either all on one host, or the last one waits 3 s for data from another."""
    graph = make_graph(
        work=[1.0] * 5, size=[3.0] * 4, producer=range(4), read_ptr=[0, 0, 0, 0, 0, 4], reads=range(4)
    )
    for bandwidth, bound in ((1e9, 2.0), (1.5, 4.0), (1.0, 5.0), (0.1, 5.0)):
        platform = Platform.pairwise([1.0] * 4, bandwidth)
        problem = Problem(graph, platform)
        assert lower_bound(problem) == pytest.approx(bound, rel=1e-5)
        assert best_makespan(problem) == pytest.approx(bound)


def test_successors_whose_data_takes_long_share_a_host() -> None:
    graph = make_graph(work=[1.0] * 5, size=[3.0], producer=[0], read_ptr=[0, 0, 1, 2, 3, 4], reads=[0] * 4)
    for bandwidth, bound in ((1e9, 2.0), (1.5, 4.0), (1.0, 5.0), (0.1, 5.0)):
        problem = Problem(graph, Platform.pairwise([1.0] * 4, bandwidth))
        assert lower_bound(problem) == pytest.approx(bound, rel=1e-5)


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


def test_data_from_another_site_crosses_the_borders_of_both() -> None:
    """Hosts of a site are joined by quick links, so the quickest hops of places do not know the uplinks."""
    makers = Site("a", tuple(MachineHost(f"a{i}", kinds={"y": 1e-3}) for i in range(2)), uplink=2e6)
    readers = Site("b", tuple(MachineHost(f"b{i}", kinds={"x": 1e-3}) for i in range(2)), uplink=1e6)
    graph = make_graph(
        work=[1.0, 1.0], size=[1e7, 3e7], producer=[0, -1], read_ptr=[0, 0, 2], reads=[0, 1], kind=[0, 1],
        kinds=("x", "y"),
    )  # fmt: skip
    for input_at, bound in ((None, 12.0), ("a", 31.0), ("b", 12.0)):
        problem = Problem(graph, Platform((makers, readers), contention="none", origin=input_at))
        assert lower_bound(problem) == pytest.approx(bound, rel=1e-3)
        assert best_makespan(problem) >= bound * (1 - 1e-9)
    back = graph.with_fields(result=np.array([True, False]), reads=np.array([0, 0], np.int32))
    assert lower_bound(Problem(back, Platform((makers, readers), origin="b"))) == pytest.approx(
        12.0, rel=1e-3
    )
