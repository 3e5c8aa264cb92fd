"""Replays event by event: shared links and inputs prefetched, against a slow plain reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.graph import Graph, make_graph
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.planners.registry import make
from headrace.simulator.replay.dependencies import route_seconds
from headrace.simulator.replay.replay import Replayer, replay
from headrace.testing.generate import cases
from simulator.replay.reference import SlowReplay, max_min_rates


def plans(count: int, seed: int) -> Iterator[Plan]:
    """Plans under contention none and fair, of planners that move much and one that moves little."""
    for i, (program, platform) in enumerate(cases(count, seed=seed, tasks=24)):
        contention = ("fair", "fair", "none")[i % 3]
        problem = Problem(program.graph, replace(platform, contention=contention))
        plan = make(("round-robin", "maxmin", "heft")[i % 4 % 3]).plan(problem)
        release = np.random.default_rng(i).uniform(0, 30, program.graph.n_tasks) * (i % 4 == 3)
        yield replace(plan, graph=replace(plan.graph, release=release))


@pytest.mark.parametrize("prefetch_depth", [None, 1, 2, 4])
def test_times_are_those_of_the_slow_reference(prefetch_depth: int | None) -> None:
    moved = 0
    for number, plan in enumerate(plans(60, seed=21)):
        start, finish = Replayer.of(plan, prefetch_depth=prefetch_depth).times()
        slow_start, slow_finish = SlowReplay(plan, prefetch_depth).run()
        assert start == pytest.approx(np.array(slow_start), rel=1e-9, abs=1e-9), f"case {number}"
        assert finish == pytest.approx(np.array(slow_finish), rel=1e-9, abs=1e-9), f"case {number}"
        moved += len(plan.move_item)
    assert moved > 400


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_turns_on_links_are_those_of_the_slow_reference(contention: Contention) -> None:
    """With other run times than planned, so that transfers wait for their turn on idle links."""
    longer = 0
    for number, (program, platform) in enumerate(cases(45, seed=33, tasks=20)):
        fifo, random = replace(platform, contention="fifo"), np.random.default_rng(number)
        plan = make(("round-robin", "maxmin", "heft")[number % 3]).plan(Problem(program.graph, fifo))
        work = plan.graph.work * random.uniform(0.5, 2.0, plan.graph.n_tasks)
        size = plan.graph.size * random.uniform(0.5, 2.0, plan.graph.n_items)
        changed = replace(plan.graph, work=work, size=size)
        plan = replace(
            plan,
            graph=changed,
            platform=replace(platform, contention=contention),
            in_turn=contention == "fair",
        )
        start, finish = Replayer.of(plan).times()
        slow_start, slow_finish = SlowReplay(plan).run()
        assert start == pytest.approx(np.array(slow_start), rel=1e-9, abs=1e-9), f"case {number}"
        assert finish == pytest.approx(np.array(slow_finish), rel=1e-9, abs=1e-9), f"case {number}"
        moves = slice(plan.graph.n_tasks, None)
        longer += int((finish[moves] - start[moves] > route_seconds(plan) * (1 + 1e-6)).sum())
    assert (longer > 10) == (contention == "fair")


def test_prefetch_delays_transfers() -> None:
    delayed = 0
    for plan in plans(40, seed=5):
        at_once, ahead = replay(plan), replay(plan, prefetch_depth=1)
        delayed += int((ahead.move_start > at_once.move_start + 1e-9).sum())
    assert delayed > 15


def test_max_min_rates_of_the_textbook() -> None:
    """Three links in a row; one long flow, one on each link: the long one gets the least fair share."""
    assert max_min_rates([[0, 1, 2], [0], [1], [2]], [10.0, 4.0, 6.0]) == pytest.approx([2.0, 8.0, 2.0, 4.0])


def _from_origin(sizes: list[float], uplinks: list[float], contention: str = "fair") -> Plan:
    """A task at each site for each size; all inputs come from the origin at once."""
    n = len(sizes)
    graph = make_graph(
        work=np.ones(n), size=sizes, producer=[-1] * n, read_ptr=np.arange(n + 1), reads=np.arange(n)
    )
    sites = [Site(f"s{i}", (Host(f"h{i}", cores=n),), uplink=u) for i, u in enumerate(uplinks)]
    platform = Platform((*sites, Site("origin")), contention=contention, origin="origin")  # type: ignore[arg-type]
    host = np.arange(n, dtype=np.int32) % len(uplinks)
    return Plan(
        graph, platform, "by hand", host=host, core=(np.arange(n) // len(uplinks)).astype(np.int32),
        start=np.zeros(n), finish=np.ones(n), move_item=np.arange(n, dtype=np.int32),
        move_source=np.full(n, len(uplinks), np.int32), move_target=host, move_start=np.zeros(n),
        move_finish=np.zeros(n),
    )  # fmt: skip


def test_many_flows_on_one_link_end_as_equal_sharing_says() -> None:
    sizes = np.random.default_rng(3).integers(1, 1000, 500).astype(float)
    happened = replay(_from_origin(sizes.tolist(), [10.0]))
    by_size = np.sort(sizes)
    # While the i-th smallest is served, so are all larger ones.
    steps = np.diff(by_size, prepend=0.0) * np.arange(len(sizes), 0, -1) / 10.0
    expected = np.cumsum(steps)[np.searchsorted(by_size, sizes)]
    assert happened.move_finish == pytest.approx(expected)


def test_links_that_share_nothing_do_not_matter_to_each_other() -> None:
    alone = replay(_from_origin([30.0, 70.0], [10.0]))
    both = replay(_from_origin([30.0, 5.0, 70.0, 9.0], [10.0, 2.0]))
    assert both.move_finish[[0, 2]].tolist() == pytest.approx(alone.move_finish.tolist())


def test_links_without_a_limit_take_no_time() -> None:
    happened = replay(_from_origin([30.0, 70.0], [np.inf]))
    assert happened.move_finish.tolist() == [0.0, 0.0]


def test_an_item_that_is_sent_on_is_called_for_where_it_is_needed() -> None:
    """origin -> a -> b for the second task of b: neither hop starts before the first task there."""
    graph = make_graph(work=[5.0, 1.0], size=[0.0, 20.0], producer=[-1, -1], read_ptr=[0, 1, 2], reads=[0, 1])
    sites = (Site("a", uplink=10.0), Site("b", (Host("h"),), uplink=10.0), Site("origin"))
    platform = Platform(sites, contention="fair", origin="origin")
    plan = Plan(
        graph, platform, "by hand", host=np.zeros(2, np.int32), core=np.zeros(2, np.int32),
        start=np.array([0.0, 7.0]), finish=np.array([5.0, 8.0]), move_item=np.array([1, 1], np.int32),
        move_source=np.array([2, 0], np.int32), move_target=np.array([0, 1], np.int32),
        move_start=np.array([0.0, 2.0]), move_finish=np.array([2.0, 4.0]),
    )  # fmt: skip
    held = replace(plan, graph=replace(graph, release=np.array([3.0, 0.0])))
    assert replay(held, prefetch_depth=1).move_start.tolist() == [3.0, 5.0]
    assert replay(held, prefetch_depth=2).move_start.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("prefetch_depth", [0, -1])
def test_inputs_are_sent_at_least_one_task_ahead(prefetch_depth: int) -> None:
    with pytest.raises(UsageError, match=f"prefetch_depth is {prefetch_depth}"):
        replay(_from_origin([1.0], [1.0]), prefetch_depth=prefetch_depth)


def test_fifo_plans_have_the_order_on_links_and_take_no_prefetch_depth() -> None:
    with pytest.raises(UsageError, match="take turns"):
        replay(_from_origin([1.0], [1.0], "fifo"), prefetch_depth=1)


def _with_several_cores(seed: int) -> tuple[Graph, Plan]:
    """Independent tasks of 1 to 3 cores on a host of 4, each as early as the ones before it allow."""
    rng = np.random.default_rng(seed)
    n, cores = 30, 4
    needs = rng.integers(1, 4, n).astype(np.int32)
    work = rng.uniform(1, 9, n)
    graph = replace(
        make_graph(work=work, size=[], producer=[], read_ptr=np.zeros(n + 1), reads=[]), cores=needs
    )
    free = np.zeros(cores)
    core, start = np.zeros(n, np.int32), np.zeros(n)
    for t in range(n):
        taken = np.argsort(free, kind="stable")[: needs[t]]
        core[t], start[t] = taken[0], free[taken].max()
        free[taken] = start[t] + work[t]
    platform = Platform((Site("s", (Host("h", cores=cores),)),))
    return graph, Plan(
        graph, platform, "by hand", np.zeros(n, np.int32), core, start, start + work, **NO_MOVES
    )


def test_tasks_of_several_cores_that_take_no_time_do_not_wait_for_each_other() -> None:
    """In topological order the third task comes before the second."""
    graph = make_graph(
        work=[0.0, 0.0, 0.0],
        size=[1.0],
        producer=[0],
        read_ptr=[0, 0, 1, 1],
        reads=[0],
        cores=np.array([1, 1, 2]),
    )
    platform = Platform((Site("s", (Host("h", cores=3),)),))
    plan = make("heft").plan(Problem(graph, platform))
    assert replay(plan).makespan == 0.0


def test_tasks_that_hold_several_cores_never_have_more_than_there_are() -> None:
    for seed in range(20):
        graph, plan = _with_several_cores(seed)
        assert check(graph, plan.platform, plan) == []
        assert np.all(replay(plan).finish <= plan.finish + 1e-9)
        drawn = graph.with_work(graph.work * np.random.default_rng(seed).uniform(0.2, 3.0, graph.n_tasks))
        assert check(drawn, plan.platform, replace(replay(plan, work=drawn.work), graph=drawn)) == []
