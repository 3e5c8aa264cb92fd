"""Stealing inside a cluster, copies of late tasks and their cancellation: by hand."""

from __future__ import annotations

import pytest

from core.fixed import Fixed
from headrace.core.execution_policy import ExecutionPolicy
from headrace.model.behaviour import Change
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.model.trace import Trace
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.testing.invariants import judge

CLUSTER = Platform(
    (
        Site("home"),
        Site("c", (Host("h0"), Host("h1"), Host("h2")), uplink=1e6),
        Site("d", (Host("k"),), uplink=1e6),
    ),
    origin="home",
)


def independent(*work: float) -> Graph:
    n = len(work)
    return make_graph(work=work, size=[0.0] * n, producer=range(n), read_ptr=[0] * (n + 1), reads=[])


def done_by(run: SimulatedRun) -> list[str]:
    return [run.platform.hosts[h].name for h in run.executed.host.tolist()]


def test_idle_hosts_of_the_same_cluster_steal_from_the_tail() -> None:
    graph = independent(10.0, 10.0, 10.0, 10.0, 10.0)
    hosts = Fixed(*["h0"] * 5)
    alone = simulate_scheduler(graph, CLUSTER, hosts)
    shared = simulate_scheduler(graph, CLUSTER, hosts, policy=ExecutionPolicy(steal=True))
    assert judge(shared) == []
    assert (alone.makespan, alone.stolen) == (50.0, 0)
    assert (shared.makespan, shared.stolen) == (20.0, 3)
    assert done_by(shared)[0] == "h0"
    assert done_by(shared)[3:] == ["h2", "h1"], "the last ones are taken first, by the first idle host"
    assert "k" not in done_by(shared), "another cluster has other storage"


def test_nothing_is_stolen_that_its_host_could_start_itself() -> None:
    graph = independent(10.0, 10.0)
    run = simulate_scheduler(graph, CLUSTER, Fixed("h0", "h1"), policy=ExecutionPolicy(steal=True))
    assert run.stolen == 0


@pytest.mark.parametrize(("ends", "copied", "makespan"), [(9.0, 1, 13.0), (7.0, 0, 301.0)])
def test_a_task_that_is_late_is_copied_and_the_slower_one_cancelled(
    ends: float, copied: int, makespan: float
) -> None:
    """t0 was to take 4 s, its host nearly stops after 1 s. When h1 has nothing left to do after twice that time, it
    starts a copy, which ends first."""
    slow = [Change(1.0, "host-trace", "h0", Trace.constant(0.01)), Change(0.0, "host-down", "h2")]
    slow.append(Change(0.0, "host-down", "k"))
    run = simulate_scheduler(
        independent(4.0, ends),
        CLUSTER,
        Fixed("h0", "h1"),
        changes=slow,
        policy=ExecutionPolicy(duplicate=True),
    )
    assert judge(run, slow, duplicates=True) == []
    assert run.duplicates == copied
    assert run.makespan == pytest.approx(makespan)
    stopped = [line.split()[2:4] for line in run.log_lines() if line.split()[1] == "stop"]
    assert stopped == ([["t0", "h0"]] if copied else [])


def test_the_latest_of_several_late_tasks_is_copied() -> None:
    """Both are late when h2 becomes free; t1 was to end first."""
    slow = [Change(0.0, "host-trace", name, Trace.constant(0.01)) for name in ("h0", "h1")]
    slow.append(Change(0.0, "host-down", "k"))
    run = simulate_scheduler(
        independent(4.0, 2.0, 9.0),
        CLUSTER,
        Fixed("h0", "h1", "h2"),
        changes=slow,
        policy=ExecutionPolicy(duplicate=True),
    )
    assert judge(run, slow, duplicates=True) == []
    assert run.executed.finish[1:].tolist() == pytest.approx([11.0, 9.0])
