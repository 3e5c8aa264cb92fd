"""Routes, latencies and durations of every kind of network, worked out by hand."""

import math

import numpy as np
import pytest

from headrace.model.errors import BadPlatform
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Host, Link, Pairs, Platform, Site


def names(platform: Platform, source: int, target: int) -> list[str]:
    network = platform.network
    return [network.link_names[link] for link in network.route(source, target)]


def hosts(*names_: str) -> tuple[Host, ...]:
    return tuple(Host(name) for name in names_)


def test_pairs():
    latency = np.array([[0.0, 0.5], [0.25, 0.0]])
    platform = Platform(
        (Site("all", hosts("a", "b")),), pairs=Pairs(np.array([[1.0, 10.0], [20.0, 1.0]]), latency)
    )
    network = platform.network
    assert network.seconds(0, 1, 100.0) == 0.5 + 100 / 10
    assert network.seconds(1, 0, 100.0) == 0.25 + 100 / 20
    assert network.seconds(0, 0, 100.0) == 0.0
    assert network.seconds(0, 1, 0.0) == 0.0
    assert names(platform, 0, 1) == ["a -> b"]
    assert names(platform, 1, 0) == ["b -> a"]
    assert network.route(1, 1) == []
    assert network.link_bandwidth.tolist() == [10.0, 20.0]
    assert network.origin == EVERYWHERE


def test_pairs_number_links_row_by_row_over_sites():
    bandwidth = np.arange(9.0).reshape(3, 3) + 1
    platform = Platform(
        (Site("x", hosts("a")), Site("y", hosts("b", "c"), storage=7.0)), pairs=Pairs(bandwidth), origin="y"
    )
    network = platform.network
    for i in range(3):
        for j in range(3):
            if i != j:
                (link,) = network.route(i, j)
                assert network.link_bandwidth[link] == bandwidth[i, j]
                assert network.bandwidth(i, j) == bandwidth[i, j]
    assert network.site.tolist() == [0, 1, 1]
    assert network.storage.tolist() == [math.inf, 7.0]
    assert network.origin == 1


def test_hosts_of_a_site_without_bandwidth_share_one_place():
    network = Platform((Site("s", hosts("a", "b")),), origin="b").network
    assert network.place_names == ("s",)
    assert network.host_place.tolist() == [0, 0]
    assert network.origin == 0
    assert network.n_links == 0


def test_ports():
    platform = Platform((Site("s", hosts("a", "b", "c"), bandwidth=100.0, latency=0.5),), origin="c")
    network = platform.network
    assert network.place_names == ("a", "b", "c")
    assert names(platform, 0, 2) == ["a out", "c in"]
    assert network.seconds(0, 2, 50.0) == 0.5 + 50 / 100
    assert network.origin == 2
    assert network.bandwidth(1, 1) == math.inf


def uplinks(**more: object) -> Platform:
    return Platform(
        (
            Site("x", hosts("a", "b"), bandwidth=100.0, latency=0.1, uplink=10.0, uplink_latency=1.0),
            Site("y", hosts("c", "d"), latency=0.2, uplink=20.0, uplink_latency=2.0),
            Site("store"),
        ),
        **more,
    )


def test_uplinks_meet_in_a_hub_and_are_shared_by_both_directions():
    platform = uplinks(origin="store")
    network = platform.network
    assert network.place_names == ("a", "b", "y", "store")
    assert network.host_place.tolist() == [0, 1, 2, 2]
    assert names(platform, 0, 1) == ["a out", "b in"]
    assert network.seconds(0, 1, 50.0) == pytest.approx(0.1 + 0.5)
    assert names(platform, 0, 2) == ["a out", "x uplink", "y uplink"]
    assert names(platform, 2, 1) == ["y uplink", "x uplink", "b in"]
    assert network.seconds(0, 2, 50.0) == pytest.approx(0.1 + 1.0 + 2.0 + 0.2 + 50 / 10)
    # A site without an uplink sits at the hub.
    assert names(platform, 3, 2) == ["y uplink"]
    assert network.seconds(3, 2, 50.0) == pytest.approx(2.0 + 0.2 + 50 / 20)
    assert network.origin == 3
    assert network.site.tolist() == [0, 0, 1, 2]


def test_a_port_can_be_the_narrowest_part():
    platform = Platform(
        (Site("x", hosts("a", "b"), bandwidth=5.0, uplink=10.0), Site("y", hosts("c"), uplink=20.0))
    )
    assert platform.network.bandwidth(0, 2) == 5.0


def test_links_over_several_hops_shared_and_not():
    platform = Platform(
        (Site("x", hosts("a")), Site("relay"), Site("y", hosts("b"))),
        (
            Link("x", "relay", 1e6, latency=0.1, shared=True),
            Link("relay", "y", 2e6, latency=0.2),
        ),
    )
    network = platform.network
    assert names(platform, 0, 2) == ["x -> relay", "relay -> y"]
    assert names(platform, 2, 0) == ["y -> relay", "x -> relay"]
    assert network.seconds(0, 2, 3e6) == pytest.approx(0.3 + 3.0)
    assert network.n_links == 3


def test_the_quickest_of_two_ways_is_taken():
    slow_direct = (Link("x", "y", 1e4), Link("x", "relay", 1e6), Link("relay", "y", 1e6))
    sites = (Site("x", hosts("a")), Site("relay"), Site("y", hosts("b")))
    assert names(Platform(sites, slow_direct), 0, 2) == ["x -> relay", "relay -> y"]
    quick_direct = (Link("x", "y", 1e6), *slow_direct[1:])
    assert names(Platform(sites, quick_direct), 0, 2) == ["x -> y"]


def test_a_oneway_link_leads_one_way():
    platform = Platform((Site("x", hosts("a")), Site("y", hosts("b"))), (Link("x", "y", 10.0, oneway=True),))
    network = platform.network
    assert network.seconds(0, 1, 20.0) == 2.0
    assert network.bandwidth(1, 0) == 0.0
    assert network.seconds(1, 0, 20.0) == math.inf
    assert network.route(1, 0) == []


def test_sites_that_nothing_joins():
    platform = Platform((Site("x", hosts("a")), Site("y", hosts("b"))))
    with pytest.raises(BadPlatform, match="no route between sites 'x' and 'y'"):
        _ = platform.network


def test_a_pairwise_origin_must_be_a_host():
    platform = Platform((Site("x", hosts("a")), Site("store")), pairs=Pairs(np.ones((1, 1))), origin="store")
    with pytest.raises(BadPlatform, match="origin 'store' is not a host"):
        _ = platform.network
