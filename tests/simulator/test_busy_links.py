"""How long a transfer keeps links busy under `fifo`: in check, planners, replay, runs and reports, partly by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.plan import Plan
from headrace.model.trace import LinkTrace, Trace
from headrace.planners.registry import make
from headrace.report.resources import link_uses as reported_uses
from headrace.report.timeline import Timeline
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.replay.dependencies import link_uses, transfer_order
from headrace.simulator.replay.replay import replay
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program
from headrace.testing.invariants import judge
from model.plans import plan_of

FEW = settings(max_examples=30, deadline=None)
A, C, B, D = 0, 1, 2, 3
U, V, W, Q = 0, 1, 2, 3
LIST_AND_BATCH = (
    "heft",
    "cpop",
    "peft",
    "locality",
    "minmin",
    "maxmin",
    "sufferage",
    "xsufferage",
    "round-robin",
)


def two_sites(contention: str = "fifo", routing: str = "quickest") -> hr.Platform:
    """Ports of 100 B/s at x and 50 B/s at y, joined by a link of 10 B/s and 3 s."""
    x = hr.Site("x", (hr.Host("a"), hr.Host("c")), bandwidth=100.0)
    y = hr.Site("y", (hr.Host("b"), hr.Host("d")), bandwidth=50.0)
    return hr.Platform((x, y), (hr.Link("x", "y", 10.0, 3.0),), contention=contention, routing=routing)


def program() -> hr.Program:
    """b needs u and v (200 bytes each) from a and q (100) from d; c needs w (100) from a."""
    made = hr.Program("by hand")
    u, v, w = made.task(None, name="on a", outputs={"u": 200, "v": 200, "w": 100}, work=1.0)
    q = made.task(None, name="on d", outputs={"q": 100}, work=1.0)
    made.task(None, name="on b", inputs=[u, v, q], work=1.0)
    made.task(None, name="on c", inputs=[w], work=1.0)
    return made


def by_hand(platform: hr.Platform, w: float = 3.0, q: float = 5.0, v: float = 21.0) -> Plan:
    """u leaves a at 1 and is at b at 1 + 3 + 20. It keeps the port of a busy until 3, that of b until 5, and the link
    until 21; then w, q and v may start."""
    last = max(v + 23.0, 24.0)
    return plan_of(
        program(),
        platform,
        [(A, 0, 0.0, 1.0), (D, 0, 0.0, 1.0), (B, 0, last, last + 1.0), (C, 0, w + 1.0, w + 2.0)],
        [(U, A, B, 1.0, 24.0), (V, A, B, v, v + 23.0), (W, A, C, w, w + 1.0), (Q, D, B, q, q + 2.0)],
    )


def rules(plan: Plan) -> list[str]:
    return [found.rule for found in check(plan.graph, plan.platform, plan)]


def test_check_knows_when_each_link_is_idle_again() -> None:
    assert rules(by_hand(two_sites())) == []
    assert rules(by_hand(two_sites(), w=2.9)) == ["link"]
    assert rules(by_hand(two_sites(), q=4.9)) == ["link"]
    assert rules(by_hand(two_sites(), v=20.9)) == ["link"]
    (found,) = check(program(), two_sites(), by_hand(two_sites(), q=4.9))
    assert "keeps link 'b in' busy, until 5.0" in found.message


def test_link_by_link_a_transfer_keeps_links_busy_until_it_finishes() -> None:
    hops = two_sites(routing="links")
    assert rules(by_hand(hops)) == ["link"] * 5  # w and q on one link each, v on three
    assert rules(by_hand(hops, w=24.0, q=24.0, v=26.0)) == []


def test_replay_and_run_give_the_times_by_hand() -> None:
    plan = by_hand(two_sites())
    again = replay(by_hand(two_sites(), w=30.0, q=40.0, v=50.0))
    assert again.move_start.tolist() == pytest.approx(plan.move_start.tolist())
    assert again.move_finish.tolist() == pytest.approx(plan.move_finish.tolist())
    run = hr.simulate(plan.graph, plan.platform, _Given(plan))
    assert sorted(run.executed.move_start.tolist()) == pytest.approx([1.0, 3.0, 5.0, 21.0])
    assert run.makespan == pytest.approx(45.0)


def test_a_link_that_slows_down_is_busy_for_longer() -> None:
    """10 B/s until 11: 100 bytes of u are through. Then 5 B/s: busy until 31, and v takes 3 + 40 s."""
    plan = by_hand(two_sites())
    slower = LinkTrace(Trace.constant(5.0), Trace.constant(3.0))
    changes = [Change(11.0, "link-trace", "x -> y", slower)]
    once = Replan(_Given(plan), ReplanPolicy(events="once"))
    run = simulate_scheduler(plan.graph, plan.platform, once, changes=changes)
    assert judge(run, changes) == []
    assert sorted(run.executed.move_start.tolist()) == pytest.approx([1.0, 3.0, 5.0, 31.0])
    assert run.executed.move_finish.max() == pytest.approx(74.0)


def test_on_fair_links_transfers_take_turns_on_the_slow_links_of_their_routes() -> None:
    """u and v take turns on the link of 10 B/s. w and q, which have all of the ports at 1, wait for nobody.

    u flows from 4; at 21 it has 30 bytes left, which need as long as its latency of 3 s.
    """
    plan = replay(replace(by_hand(two_sites("fair")), in_turn=True))
    assert rules(plan) == []
    assert plan.move_start.tolist() == pytest.approx([1.0, 21.0, 1.0, 1.0])
    assert plan.move_finish.tolist() == pytest.approx([24.0, 44.0, 2.0, 3.0])
    run = hr.simulate(plan.graph, plan.platform, _Given(plan))
    assert sorted(run.executed.move_start.tolist()) == pytest.approx([1.0, 1.0, 1.0, 21.0])
    assert run.makespan == pytest.approx(plan.makespan)


def test_on_fair_links_a_turn_lasts_longer_if_other_transfers_slow_it_down() -> None:
    """Two files of 100 bytes for s wait for each other on the store's uplink of 10 B/s; a third one goes to t, over an
    uplink of 4 B/s, and shares it from 2 s on. The first then flows at 6 B/s, and has 20 bytes left after 80 / 6 s, as
    many as its route carries in 2 s of latency. From 2 s later on there are three flows, each at 10 / 3 B/s."""
    made = hr.Program("shared")
    for name, size in (("slow", 100), ("first", 100), ("second", 100)):
        made.task(None, name=name, inputs=[made.input(f"in {name}", size=size)], work=1.0)
    sites = (
        hr.Site("store", uplink=10.0, uplink_latency=1.0),
        hr.Site("s", (hr.Host("h", cores=2),), uplink=10.0, uplink_latency=1.0),
        hr.Site("t", (hr.Host("g"),), uplink=4.0, uplink_latency=1.0),
    )
    platform = hr.Platform(sites, contention="fair", origin="store")
    plan = plan_of(
        made,
        platform,
        [(1, 0, 30.0, 31.0), (0, 0, 30.0, 31.0), (0, 1, 30.0, 31.0)],
        [(0, 0, 2, 0.0, 0.0), (2, 0, 1, 0.0, 0.0), (4, 0, 1, 0.1, 0.0)],
    )
    replayed = replay(replace(plan, in_turn=True))
    assert replayed.move_start.tolist() == pytest.approx([0.0, 0.0, 2.0 + 80.0 / 6.0])
    assert replayed.move_finish.tolist() == pytest.approx([27.4, 4.0 + 80.0 / 6.0 + 2.4, 32.0])
    assert rules(replayed) == []
    run = hr.simulate(made, platform, _Given(replayed))
    assert sorted(run.executed.move_finish.tolist()) == pytest.approx(sorted(replayed.move_finish.tolist()))


def test_reports_show_links_while_they_are_busy() -> None:
    plan = by_hand(two_sites())
    names = plan.platform.network.link_names
    spans = {(names[link], k): (start, end) for link, start, end, k in reported_uses(plan)}
    assert spans["a out", U] == (1.0, 3.0)
    assert spans["x -> y", U] == (1.0, 21.0)
    assert spans["b in", U] == (1.0, 5.0)
    line = Timeline.of_plan(plan)
    waits = {activity.name: wait for activity, wait in zip(line.activities, line.waits, strict=True)}
    for item in ("w", "q", "v"):  # u, for which they waited, arrives after w and q
        assert waits[item].kind == "link"
        assert line.activities[waits[item].before].name == "u"


def test_small_files_do_not_block_an_uplink_of_high_latency() -> None:
    """1,100 files of 1 kB need 0.02 s of latency and 8.8 ms of a link of 1 Gbit/s, not 22 s."""
    many = hr.Program("many")
    for k in range(1100):
        many.task(None, name=f"t{k}", inputs=[many.input(f"in{k}", size=1000)], work=0.001)
    far = hr.Site(
        "far", (hr.Host("f", cores=64),), bandwidth="1 Gbit/s", uplink="1 Gbit/s", uplink_latency=0.02
    )
    platform = hr.Platform((hr.Site("store"), far), contention="fifo", origin="store")
    for name in ("heft", "minmin", "round-robin"):
        plan = hr.plan(many, platform, name)
        assert check(many, platform, plan) == []
        assert plan.makespan < 0.06, name


def test_a_link_without_a_limit_is_never_busy() -> None:
    sites = (hr.Site("store"), hr.Site("s", (hr.Host("h", cores=2),)))
    link = hr.Link("store", "s", float("inf"), latency=2.0)
    platform = hr.Platform(sites, (link,), contention="fifo", origin="store")
    both = hr.Program("both")
    for name in "ab":
        both.task(None, name=name, inputs=[both.input(f"in {name}", size=10)], work=1.0)
    plan = hr.plan(both, platform, "heft")
    assert rules(plan) == []
    assert plan.move_start.tolist() == [0.0, 0.0]
    assert replay(plan).makespan == plan.makespan == 3.0


def test_of_two_transfers_with_one_start_the_smaller_comes_first() -> None:
    """So late that 1 byte takes no time on the link: it may start together with a larger one, but not after it."""
    begin = 2.0**54
    made = hr.Program("late")
    for name, size in (("big", 1e9), ("small", 1)):
        made.task(None, name=name, inputs=[made.input(f"in {name}", size=size)], work=1.0)
    sites = (hr.Site("store"), hr.Site("s", (hr.Host("h", cores=2),), uplink=10.0))
    platform = hr.Platform(sites, contention="fifo", origin="store")
    plan = plan_of(
        made,
        platform,
        [(0, 0, begin + 1e8, begin + 1e8 + 4), (0, 1, begin, begin)],
        [(0, 0, 1, begin, begin + 1e8), (1, 0, 1, begin, begin)],
    )
    assert transfer_order(plan).tolist() == [1, 0]


def case(seed: int, tasks: int = 15) -> Problem:
    """A program with so much data that links are busy."""
    graph = random_program(seed, tasks=tasks, shape=SHAPES[seed % len(SHAPES)]).graph
    network, origin = NETWORKS[seed // 5 % len(NETWORKS)], ORIGINS[seed // 3 % len(ORIGINS)]
    platform = random_platform(seed, network, contention="fifo", hosts=4, origin=origin)
    return Problem(graph.with_fields(size=10 * graph.size), platform)


@FEW
@given(st.integers(0, 10_000), st.sampled_from(LIST_AND_BATCH))
def test_plans_are_valid_and_are_carried_out_as_planned(seed: int, scheduler: str) -> None:
    problem = case(seed)
    plan = make(scheduler).plan(problem)
    assert check(problem.graph, problem.platform, plan) == []
    again = replay(plan)
    assert again.makespan <= plan.makespan * (1 + 1e-12)
    if scheduler in ("minmin", "maxmin", "sufferage", "xsufferage", "round-robin"):  # without gaps
        assert np.all(again.start <= plan.start + 1e-9)
    run = hr.simulate(problem.graph, problem.platform, _Given(again))
    assert run.makespan == pytest.approx(again.makespan, rel=1e-9)
    assert judge(run) == []


@FEW
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_check_rejects_a_transfer_that_starts_on_a_busy_link(seed: int, random: object) -> None:
    problem = case(seed)
    plan = make("round-robin").plan(problem)
    uses = link_uses(plan)
    longest = np.flatnonzero(uses.seconds > 1e-3)
    assume(len(longest) > 0)
    use = int(random.choice(longest.tolist()))  # type: ignore[attr-defined]
    others = uses.move[(uses.link == uses.link[use]) & (uses.move != uses.move[use])]
    others = others[plan.graph.size[plan.move_item[others]] > 0]
    assume(len(others) > 0)
    late = int(random.choice(others.tolist()))  # type: ignore[attr-defined]
    start, finish = plan.move_start.copy(), plan.move_finish.copy()
    start[late] = plan.move_start[uses.move[use]] + uses.seconds[use] / 2
    finish[late] = start[late] + (plan.move_finish[late] - plan.move_start[late])
    broken = replace(plan, move_start=start, move_finish=finish)
    assert "link" in rules(broken)


class _Given:
    """A planner with one plan."""

    name = "given"

    def __init__(self, made: Plan) -> None:
        self.made = made

    def plan(self, problem: Problem) -> Plan:
        return self.made
