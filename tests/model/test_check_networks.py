"""Plans written down by hand for every kind of network, and max-min fair sharing against a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.check_fair import fair_finishes
from headrace.model.plan import Plan
from headrace.model.platform import CONTENTIONS, Contention, Host, Link, Pairs, Platform, Site
from headrace.model.program import Program

from .plans import changed, plan_of, rules


def there_and_back() -> Program:
    """x (100 bytes) is read by a task of 2 s that makes the result y (40 bytes)."""
    program = Program("there and back")
    x = program.input("x", size=100)
    program.output(program.task(name="t", inputs=[x], outputs={"y": 40}, work=2.0))
    return program


def far(name: str, contention: Contention) -> tuple[Platform, int, int, int]:
    """A platform, the host of the task, its place and the origin."""
    near, host = Host("near"), Host("far")
    match name:
        case "pairs":
            rates = np.array([[1.0, 20.0], [10.0, 1.0]])
            platform = Platform(
                (Site("s", (near, host)),), (), Pairs(rates, 0.5), contention=contention, origin="near"
            )
            return platform, 1, 1, 0
        case "shared-site":
            sites = (Site("s", (near, host), latency=0.25), Site("store", latency=0.25))
            link = Link("store", "s", 20.0)
            return Platform(sites, (link,), contention=contention, origin="store"), 1, 0, 1
        case "ports":
            site = Site("s", (near, host), bandwidth=20.0, latency=0.5)
            return Platform((site,), contention=contention, origin="near"), 1, 1, 0
        case "uplinks":
            sites = (
                Site("x", (near,), bandwidth=50.0, latency=0.125, uplink=20.0, uplink_latency=0.125),
                Site("y", (host,), latency=0.125, uplink=30.0, uplink_latency=0.125),
            )
            return Platform(sites, contention=contention, origin="near"), 1, 1, 0
        case _:
            sites = (Site("x", (near,)), Site("relay"), Site("y", (host,)))
            links = (Link("x", "relay", 20.0, 0.25, shared=True), Link("relay", "y", 25.0, 0.25))
            return Platform(sites, links, contention=contention, origin="x"), 1, 2, 0


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("network", ["pairs", "shared-site", "ports", "uplinks", "sites"])
def test_there_and_back(network, contention):
    """Everywhere 0.5 s of latency and 20 bytes/s there; back the same, but 10 bytes/s in the pairs."""
    platform, host, place, origin = far(network, contention)
    back = 7.5 + 0.5 + (4.0 if network == "pairs" else 2.0)
    plan = plan_of(
        there_and_back(),
        platform,
        [(host, 0, 5.5, 7.5)],
        [(0, origin, place, 0.0, 5.5), (1, place, origin, 7.5, back)],
    )
    assert rules(plan) == []
    assert rules(changed(plan, "move_finish", 1, back + 0.01)) == ["transfer"]
    assert rules(changed(plan, "move_finish", 1, back - 0.01)) == ["transfer"]


def test_at_the_origin_nothing_moves():
    platform, *_ = far("ports", "fifo")
    assert rules(plan_of(there_and_back(), platform, [(0, 0, 0.0, 2.0)])) == []
    assert rules(plan_of(there_and_back(), platform, [(1, 0, 0.0, 2.0)])) == ["input", "result"]


@pytest.mark.parametrize(("contention", "broken"), [("none", []), ("fifo", ["link"]), ("fair", ["transfer"])])
def test_a_shared_uplink_carries_both_directions(contention, broken):
    sites = (Site("x", (Host("a"),), uplink=10.0), Site("y", (Host("b"),), uplink=100.0))
    program = Program()
    for name in ("p", "q"):
        made = program.task(name=name, outputs={f"{name}.out": 100}, work=1.0)
        program.task(name=f"{name}.use", inputs=[made], work=1.0)
    rows = [(0, 0, 0.0, 1.0), (1, 0, 11.0, 12.0), (1, 0, 0.0, 1.0), (0, 0, 11.0, 12.0)]
    moves = [(0, 0, 1, 1.0, 11.0), (2, 1, 0, 1.0, 11.0)]
    assert rules(plan_of(program, Platform(sites, contention=contention), rows, moves)) == broken


def fan_out(latency: float, finishes: tuple[float, float]) -> Plan:
    """Two items of 200 and 100 bytes leave one port of 100 bytes/s together, the second 1 s later."""
    site = Site("s", (Host("a"), Host("b"), Host("c")), bandwidth=100.0, latency=latency)
    program = Program()
    for item, size in (("x", 200), ("w", 100)):
        program.task(name=f"read {item}", inputs=[program.input(item, size=size)], work=1.0)
    platform = Platform((site,), contention="fair", origin="c")
    rows = [(host, 0, end, end + 1.0) for host, end in enumerate(finishes)]
    moves = [(0, 2, 0, 0.0, finishes[0]), (2, 2, 1, 1.0, finishes[1])]
    return plan_of(program, platform, rows, moves)


def test_fair_sharing_of_one_port():
    # x has 100 bytes/s until 1, then both have 50 for the last 100 bytes of each.
    assert rules(fan_out(0.0, (3.0, 3.0))) == []
    # With latency all is shifted.
    assert rules(fan_out(0.25, (3.25, 3.25))) == []
    assert rules(fan_out(0.0, (2.0, 3.0))) == ["transfer"]
    assert rules(fan_out(0.0, (3.0, 2.0))) == ["transfer"]
    assert rules(fan_out(0.25, (3.0, 3.0))) == ["transfer"]


def test_max_min_over_two_links():
    """f goes over both links, g over the first (10 bytes/s), h over the second (30 bytes/s).

    At first f and g have 5 each and h 25; g ends at 5, then f has 10 and h 20; f ends at 7.5 and h, alone
    with its last 75 bytes, at 10.
    """
    sites = tuple(Site(name, (Host(f"host {name}"),)) for name in "xyz")
    platform = Platform(sites, (Link("x", "y", 10.0), Link("y", "z", 30.0)), contention="fair")
    program = Program()
    f, g = program.task(name="fg", outputs={"f": 50, "g": 25}, work=0.0)
    h = program.task(name="h", outputs={"h": 250}, work=0.0)
    for item in (f, g, h):
        program.task(name=f"read {item.name}", inputs=[item], work=1.0)
    rows = [(0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 7.5, 8.5), (1, 0, 5, 6), (2, 0, 10, 11)]
    moves = [(0, 0, 2, 0, 7.5), (1, 0, 1, 0, 5), (2, 1, 2, 0, 10)]
    plan = plan_of(program, platform, rows, moves)
    assert rules(plan) == []
    for k in range(3):
        wrong = plan.move_finish[k] - 0.01
        assert rules(changed(plan, "move_finish", k, wrong)) == ["transfer"]


def slow_fair(
    begin: list[float], size: list[float], routes: list[list[int]], width: list[float]
) -> list[float]:
    """Progressive filling of all flows at every event, with nothing kept between events."""
    left, finish, now = list(size), [0.0] * len(size), 0.0
    waiting = set(range(len(size)))
    active: set[int] = set()
    while waiting or active:
        rate: dict[int, float] = {}
        while len(rate) < len(active):
            shares = []
            for link in range(len(width)):
                users = [f for f in active if link in routes[f]]
                free = [f for f in users if f not in rate]
                if free:
                    used = sum(rate[f] for f in users if f in rate)
                    shares.append(((width[link] - used) / len(free), free))
            share, free = min(shares, key=lambda pair: pair[0])
            rate.update(dict.fromkeys(free, share))
        ends = [now + left[f] / rate[f] for f in active]
        upcoming = min([begin[f] for f in waiting] + ends)
        for f in active:
            left[f] -= rate[f] * (upcoming - now)
        now = upcoming
        for f in [f for f in active if left[f] <= 1e-9 * size[f]]:
            finish[f] = now
            active.remove(f)
        for f in [f for f in waiting if begin[f] <= now]:
            waiting.remove(f)
            active.add(f)
    return finish


flows = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(1, 60),
        st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(flows, st.lists(st.integers(1, 20), min_size=5, max_size=5))
def test_fair_sharing_agrees_with_the_slow_way(flows, width):
    begin, size, routes = [list(column) for column in zip(*flows, strict=True)]
    owner = np.repeat(np.arange(len(routes)), [len(r) for r in routes])
    quick = fair_finishes(
        np.array(begin, np.float64),
        np.array(size, np.float64),
        owner,
        np.concatenate(routes),
        np.array(width, float),
    )
    assert quick == pytest.approx(slow_fair(begin, size, routes, width), rel=1e-9)


def test_links_without_limit_and_flows_without_links_take_no_time():
    begin, size = np.array([1.0, 2.0, 3.0]), np.array([10.0, 10.0, 10.0])
    ends = fair_finishes(begin, size, np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([np.inf, 5.0]))
    assert ends.tolist() == [1.0, 4.0, 3.0]
