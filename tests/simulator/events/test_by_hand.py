"""Simulated runs whose times are worked out by hand, and runs that follow a plan beside the plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.fixed import Fixed
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan import Replan
from headrace.core.scheduler import Problem
from headrace.model.behaviour import Change
from headrace.model.errors import NoPlan
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Pairs, Platform, Site
from headrace.model.trace import LinkTrace, Trace
from headrace.online.workqueue import Workqueue
from headrace.planners.list.heft import Heft
from headrace.planners.timed import plan_with_bound
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.simulator.replay.replay import replay
from headrace.testing.generate import cases
from headrace.testing.invariants import judge


def simulated(graph: Graph, platform: Platform, *hosts: str, changes: Sequence[Change] = ()) -> SimulatedRun:
    run = simulate_scheduler(graph, platform, Fixed(*hosts), changes=changes)
    assert judge(run, changes) == []
    return run


def lines(run: SimulatedRun, *words: str) -> list[str]:
    """Lines of the log with these words, times rounded."""
    found = []
    for line in run.log_lines():
        time, what, *rest = line.split()
        if what in words:
            found.append(" ".join([f"{float(time):g}", what, *rest]))
    return found


def chain(*work: float, size: float = 10.0) -> Graph:
    """Each task reads what the one before makes."""
    n = len(work)
    return make_graph(
        work=work,
        size=[size] * n,
        producer=range(n),
        read_ptr=[0, *range(n)],
        reads=range(n - 1),
    )


def test_a_chain_on_one_host() -> None:
    run = simulated(chain(4.0, 2.0, 6.0), Platform.pairwise([2.0], 1.0), "h0", "h0", "h0")
    assert lines(run, "start", "end") == [
        "0 start t0 h0 0",
        "2 end t0 h0 0",
        "2 start t1 h0 0",
        "3 end t1 h0 0",
        "3 start t2 h0 0",
        "6 end t2 h0 0",
    ]


def test_a_chain_over_two_hosts_waits_for_transfers() -> None:
    """10 bytes at 5 B/s with 1 s of latency take 3 s."""
    platform = Platform.pairwise([1.0, 1.0], 5.0, latency=1.0)
    run = simulated(chain(2.0, 2.0), platform, "h0", "h1")
    assert lines(run, "send", "arrive", "start") == [
        "0 start t0 h0 0",
        "2 send d0 h0 h1",
        "5 arrive d0 h0 h1",
        "5 start t1 h1 0",
    ]
    assert run.makespan == 7.0


def fork_join() -> Graph:
    """t0 makes 20 and 60 bytes for t1 and t2, which make 10 bytes each for t3."""
    return make_graph(
        work=[1.0, 2.0, 3.0, 1.0],
        size=[20.0, 60.0, 10.0, 10.0],
        producer=[0, 0, 1, 2],
        read_ptr=[0, 0, 1, 2, 4],
        reads=[0, 1, 2, 3],
        result=[False] * 4,
    )


@pytest.mark.parametrize(
    ("contention", "arrivals", "makespan"),
    [
        ("none", [3.0, 7.0], 12.0),  # 1 + 2 and 1 + 6; t2 ends at 10, 1 s back, 1 s of t3
        ("fifo", [3.0, 9.0], 14.0),  # the second waits until the first is over
        ("fair", [5.0, 9.0], 14.0),  # 5 B/s each until 20 bytes are through, then 40 bytes at 10 B/s
    ],
)
def test_a_fork_and_join_under_each_contention(contention, arrivals, makespan) -> None:  # type: ignore[no-untyped-def]
    hosts = tuple(Host(f"h{i}") for i in range(3))
    platform = Platform((Site("lab", hosts, bandwidth=10.0),), contention=contention)
    run = simulated(fork_join(), platform, "h0", "h1", "h2", "h0")
    assert [line for line in lines(run, "arrive") if " h0 " in line] == [
        f"{arrivals[0]:g} arrive d0 h0 h1",
        f"{arrivals[1]:g} arrive d1 h0 h2",
    ]
    assert run.makespan == pytest.approx(makespan)


def test_availability_is_integrated_exactly() -> None:
    """1 for 5 s, then 0.5, then 0 for 5 s, and round again: 12 s of work take 5 + 5 + 5 + 5 - 0.5 s."""
    trace = Trace.steps([1.0, 0.5, 0.0], 5.0)
    platform = Platform((Site("lab", (Host("h0", trace=trace),)),))
    run = simulated(chain(12.0), platform, "h0")
    assert run.makespan == pytest.approx(15.0 + 4.5)


def test_a_host_that_slows_down_keeps_what_it_has_done() -> None:
    """Load 0.5 until 4 s: 2 of 5 done. Then a quarter: 3 / 0.25 = 12 s more."""
    platform = Platform((Site("lab", (Host("h0", load=0.5),)),))
    slower = Change(4.0, "host-trace", "h0", Trace.constant(0.25))
    assert simulated(chain(5.0), platform, "h0", changes=[slower]).makespan == pytest.approx(16.0)


def test_a_link_that_slows_down_keeps_what_it_has_sent() -> None:
    """10 B/s from 2 s on; from 4 s on 5 B/s and more latency, which counts only for what is sent later."""
    platform = Platform.pairwise([1.0, 1.0], 10.0)
    slower = Change(4.0, "link-trace", "h0 -> h1", LinkTrace(Trace.constant(5.0), Trace.constant(3.0)))
    run = simulated(chain(2.0, 1.0, size=60.0), platform, "h0", "h1", changes=[slower])
    assert lines(run, "arrive") == ["12 arrive d0 h0 h1"]  # 20 bytes by 4 s, then 40 / 5
    late = simulated(chain(5.0, 1.0, size=60.0), platform, "h0", "h1", changes=[slower])
    assert lines(late, "arrive") == ["20 arrive d0 h0 h1"]  # 5 + 3 + 60 / 5


def test_a_link_that_is_down_breaks_transfers_off() -> None:
    platform = Platform.pairwise([1.0, 1.0], 10.0)
    changes = [Change(4.0, "link-down", "h0 -> h1"), Change(9.0, "link-up", "h0 -> h1")]
    run = simulated(chain(2.0, 1.0, size=60.0), platform, "h0", "h1", changes=changes)
    assert lines(run, "send", "cut", "arrive") == [
        "2 send d0 h0 h1",
        "4 cut d0 h0 h1",
        "9 send d0 h0 h1",
        "15 arrive d0 h0 h1",
    ]


def test_what_a_lost_host_made_is_made_again() -> None:
    """h0 leaves while t1 reads from it: t0 and t1 run again on h1, though t0 had ended."""
    platform = Platform.pairwise([1.0, 1.0], 10.0)
    run = simulate_scheduler(
        chain(2.0, 3.0, 4.0), platform, Replan(Heft()), changes=(gone := [Change(4.0, "host-down", "h0")])
    )
    assert judge(run, gone) == []
    assert lines(run, "start", "stop", "end")[2:] == [
        "2 start t1 h0 0",
        "4 stop t1 h0 0",
        "4 start t0 h1 0",
        "6 end t0 h1 0",
        "6 start t1 h1 0",
        "9 end t1 h1 0",
        "9 start t2 h1 0",
        "13 end t2 h1 0",
    ]
    assert run.redone == 1


def test_the_origin_keeps_its_data_when_its_host_leaves() -> None:
    graph = make_graph(
        work=[2.0], size=[10.0, 30.0], producer=[-1, 0], read_ptr=[0, 1], reads=[0], result=[False, True]
    )
    platform = Platform.pairwise([1.0, 1.0], 10.0, origin="h0")
    run = simulated(graph, platform, "h1", changes=[Change(0.5, "host-down", "h0")])
    assert lines(run, "arrive", "end") == ["1 arrive d0 h0 h1", "3 end t0 h1 0", "6 arrive d1 h1 h0"]


def test_a_run_without_hosts_waits_for_one() -> None:
    platform = Platform.pairwise([1.0], 10.0)
    changes = [Change(1.0, "host-down", "h0"), Change(7.0, "host-up", "h0")]
    run = simulate_scheduler(chain(2.0), platform, Workqueue(), changes=changes)
    assert judge(run, changes) == []
    assert run.makespan == 9.0


def test_a_run_that_cannot_end_says_so() -> None:
    with pytest.raises(NoPlan, match="nothing more can happen"):
        simulate_scheduler(
            chain(2.0), Platform.pairwise([1.0], 1.0), Workqueue(), changes=[Change(1.0, "host-down", "h0")]
        )


def test_following_a_plan_without_contention_takes_no_longer_than_the_plan() -> None:
    """Every host keeps the planned order and starts as soon as it can; transfers are sent as data is made."""
    equal = total = 0
    for program, platform in cases(225, seed=2):
        if platform.contention != "none" or np.isfinite(platform.network.storage).any():
            continue
        plan = plan_with_bound(Heft(), Problem(program.graph, platform))
        keep_order = ExecutionPolicy(strict=True, prefetch_depth=program.graph.n_tasks)
        run = simulate_scheduler(program.graph, platform, Replan(Heft()), policy=keep_order)
        assert run.makespan <= replay(plan).makespan * (1 + 1e-9), (program.name, platform.name)
        assert run.makespan >= plan.bound * (1 - 1e-9)
        total += 1
        equal += run.makespan == pytest.approx(plan.makespan)
    assert total > 30
    assert equal > total / 2


def test_pairs_have_latencies_of_their_own() -> None:
    pairs = Pairs(np.full((2, 2), 10.0), np.array([[0.0, 4.0], [1.0, 0.0]]))
    platform = Platform((Site("all", (Host("h0"), Host("h1"))),), pairs=pairs)
    traced = Change(0.0, "link-trace", "h0 -> h1", LinkTrace(Trace.constant(10.0), Trace.constant(0.5)))
    assert simulated(chain(1.0, 1.0), platform, "h0", "h1").makespan == 7.0
    assert simulated(chain(1.0, 1.0), platform, "h0", "h1", changes=[traced]).makespan == 3.5
