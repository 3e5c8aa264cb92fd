import math

import numpy as np
import pytest

from headrace.model.errors import BadPlatform
from headrace.model.platform import Host, Link, Pairs, Platform, Site

LAB = Site("lab", (Host("a"), Host("b")))


def test_rates_take_kinds_and_load_into_account():
    fast = Host("a", speed=4.0, kinds={"fft": 10.0}, load=0.5)
    platform = Platform((Site("s", (fast, Host("b", speed=3.0))),))
    assert platform.speeds(["", "fft", "other"]).tolist() == [[2.0, 3.0], [5.0, 3.0], [2.0, 3.0]]


def test_without_keeps_the_other_hosts_and_their_links():
    bandwidth = np.arange(9.0).reshape(3, 3) + 1
    latency = bandwidth / 10
    hosts = tuple(Host(n, speed=s) for n, s in (("a", 1.0), ("b", 2.0), ("c", 3.0)))
    platform = Platform((Site("s", hosts),), pairs=Pairs(bandwidth, latency), origin="c")
    rest = platform.without({"b"})
    assert [h.speed for h in rest.hosts] == [1.0, 3.0]
    assert rest.network.bandwidth(0, 1) == bandwidth[0, 2]
    assert rest.network.latency(1, 0) == latency[2, 0]
    assert rest.network.origin == 1


def test_a_pairwise_platform():
    platform = Platform.pairwise(
        [2, 1], [[0, 5], [7, 0]], latency=0.5, contention="fifo", cores=3, origin="h1"
    )
    assert [(h.name, h.speed, h.cores) for h in platform.hosts] == [("h0", 2.0, 3), ("h1", 1.0, 3)]
    assert platform.network.seconds(1, 0, 14.0) == 2.5
    assert (platform.contention, platform.network.origin) == ("fifo", 1)


def test_this_machine():
    platform = Platform.local(3)
    assert [h.name for h in platform.hosts] == ["w0", "w1", "w2"]
    assert platform.network.n_places == 3
    assert [h.speed for h in Platform.local(speeds=[4, 1]).hosts] == [4.0, 1.0]


def pairs(matrix: object, **more: object) -> dict[str, object]:
    return {"sites": (LAB,), "pairs": Pairs(np.array(matrix, np.float64), **more)}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"sites": ()}, ["no host"]),
        ({"sites": (Site("empty"),)}, ["no host"]),
        ({"sites": (LAB,), "contention": "unfair"}, ["'unfair'"]),
        ({"sites": (LAB, Site("a"))}, ["'a'", "2 times"]),
        ({"sites": (Site("s", (Host("a", speed=0.0),)),)}, ["host 'a'", "speed is 0.0"]),
        ({"sites": (Site("s", (Host("a", speed=math.nan),)),)}, ["host 'a'", "nan"]),
        ({"sites": (Site("s", (Host("a", kinds={"fft": -1.0}),)),)}, ["host 'a'", "-1.0", "fft"]),
        ({"sites": (Site("s", (Host("a", load=1.0),)),)}, ["host 'a'", "load is 1.0"]),
        ({"sites": (Site("s", (Host("a", cores=0),)),)}, ["host 'a'", "cores is 0"]),
        ({"sites": (Site("s", (Host("a"),), bandwidth=0.0),)}, ["site 's'", "bandwidth is 0.0"]),
        ({"sites": (Site("s", (Host("a"),), uplink=-2.0),)}, ["site 's'", "uplink is -2.0"]),
        ({"sites": (Site("s", (Host("a"),), latency=-1.0),)}, ["site 's'", "latency is -1.0"]),
        (
            {"sites": (Site("s", (Host("a"),), uplink_latency=math.nan),)},
            ["site 's'", "uplink_latency is nan"],
        ),
        ({"sites": (Site("s", (Host("a"),), storage=-1.0),)}, ["site 's'", "storage is -1.0"]),
        ({"sites": (LAB,), "links": (Link("lab", "moon", 1.0),)}, ["no site 'moon'"]),
        ({"sites": (LAB,), "links": (Link("lab", "lab", 1.0),)}, ["connects a site to itself"]),
        ({"sites": (LAB, Site("b2")), "links": (Link("lab", "b2", 0.0),)}, ["bandwidth is 0.0"]),
        ({"sites": (LAB, Site("b2")), "links": (Link("lab", "b2", 1.0, -1.0),)}, ["latency -1.0"]),
        ({"sites": (LAB,), "origin": "moon"}, ["origin 'moon'"]),
        (pairs([[1, 1, 1]] * 3), ["(3, 3)", "2 hosts"]),
        (pairs([[1, 0], [1, 1]]), ["host 0 to host 1", "0.0"]),
        (pairs([[1, math.nan], [1, 1]]), ["host 0 to host 1", "nan"]),
        (pairs([[1, 1], [1, 1]], latency=-1.0), ["latency"]),
        (
            {"sites": (Site("s", (Host("a"),), bandwidth=1.0),), "pairs": Pairs(np.ones((1, 1)))},
            ["pairwise network cannot be combined"],
        ),
    ],
)
def test_values_that_no_algorithm_can_use(parts, words):
    with pytest.raises(BadPlatform) as caught:
        Platform(name="p", **parts)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.hint
    assert str(caught.value).startswith("p: ")
