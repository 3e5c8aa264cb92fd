"""Scripts of a changing grid: who is there when, and what is refused."""

import pytest

from headrace.model.behaviour import (
    AddCluster,
    AddHost,
    ChangeCluster,
    ChangeHost,
    GridEvent,
    LinkTrace,
    RemoveCluster,
    RemoveHost,
    Trace,
    grid_script,
)
from headrace.model.errors import BadPlatform
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program

NET = LinkTrace(Trace.steps([1e4, 3e4], 5.0), Trace.constant(0.05))
BEHAVIOURS = {
    "net": NET,
    "cpu": Trace.steps([1.0, 0.5, 0.0], 5.0),
    "off": Trace.constant(0.0),
    "hot": Trace.constant(1.5),
}
BASE: list[GridEvent] = [
    AddCluster(0, "a", "net", 1),
    AddHost(0, "a", "a1", "cpu", 1, 0),
    AddHost(0, "a", "a2", "cpu", 4, 2),
]


def test_who_is_there_when() -> None:
    script = grid_script(
        [
            *BASE,
            RemoveHost(10, "a1"),
            RemoveCluster(20, "a"),
            AddCluster(30, "a", "net"),
            AddHost(30, "a", "a2", "cpu", 0, 2),
        ],
        BEHAVIOURS,
    )
    assert [script.present(t) for t in (0, 10, 20, 30)] == [("a1", "a2"), ("a2",), (), ("a2",)]
    assert [(c.time, c.what, c.name) for c in script.changes[3:]] == [
        (10, "host-down", "a1"),
        (20, "host-down", "a2"),
        (20, "link-down", "a"),
        (30, "link-up", "a"),
        (30, "host-up", "a2"),
    ]


def test_series_begin_with_their_event() -> None:
    script = grid_script(
        [*BASE, ChangeHost(12, "a1", "cpu", 2), ChangeCluster(13, "a", "net", 1)], BEHAVIOURS
    )
    up, change, link = script.changes[1], script.changes[3], script.changes[4]
    assert isinstance(up.behaviour, Trace)
    assert isinstance(change.behaviour, Trace)
    assert isinstance(link.behaviour, LinkTrace)
    assert [up.behaviour.at(t) for t in (0, 5, 10)] == [0.5, 0.0, 1.0]
    assert [change.behaviour.at(t) for t in (12, 17)] == [0.0, 1.0]
    assert [link.behaviour.bandwidth.at(t) for t in (13, 18)] == [3e4, 1e4]


def test_the_platform_has_all_that_ever_joins_and_means_for_planners() -> None:
    script = grid_script([*BASE, AddCluster(5, "b", "net"), AddHost(5, "b", "b1", "cpu")], BEHAVIOURS)
    assert [h.name for h in script.platform.hosts] == ["a1", "a2", "b1"]
    assert [h.name for h in script.start().hosts] == ["a1", "a2"]
    host, site = script.platform.hosts[1], script.platform.sites[1]
    assert (host.arch, host.load) == (2, pytest.approx(0.5))
    assert (site.uplink, site.uplink_latency, script.platform.contention) == (2e4, 0.05, "fifo")
    assert script.platform.origin == "origin"
    assert list(script.platform.network.link_trace) == [0, 1]


def test_a_cluster_may_be_called_origin() -> None:
    script = grid_script([AddCluster(0, "origin", "net"), AddHost(0, "origin", "h", "cpu")], BEHAVIOURS)
    assert script.platform.origin == "origin_"


def test_events_are_sorted_and_equal_times_stay_in_order() -> None:
    script = grid_script([RemoveHost(9, "a1"), *BASE, AddHost(9, "a", "a1", "cpu", 0, 0)], BEHAVIOURS)
    assert script.present(9) == ("a1", "a2")


def test_changes_of_what_has_left_are_noted_and_have_no_effect() -> None:
    script = grid_script(
        [*BASE, RemoveCluster(5, "a"), ChangeCluster(9, "a", "net"), RemoveHost(9, "a1")], BEHAVIOURS
    )
    assert len(script.ignored) == 2
    assert "'a' is not present" in script.ignored[0]
    assert script.changes[-1].time == 5


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([AddHost(0, "x", "h", "cpu")], "no cluster 'x'"),
        ([*BASE, AddCluster(1, "a", "net")], "already present"),
        ([*BASE, AddHost(1, "a", "a1", "cpu")], "already present"),
        ([*BASE, RemoveHost(1, "nobody")], "no host 'nobody'"),
        ([*BASE, ChangeHost(1, "a1", "net")], "describes a link"),
        ([*BASE, ChangeCluster(1, "a", "cpu")], "describes a host"),
        ([*BASE, ChangeHost(1, "a1", "missing")], "no behaviour 'missing'"),
        ([*BASE, AddHost(1, "a", "h", "off")], "always 0"),
        ([*BASE, AddHost(1, "a", "h", "hot")], "> 1"),
        ([*BASE, AddHost(1, "a", "h", "cpu", -1)], "offset is -1"),
        ([*BASE, AddHost(1, "a", "h", "cpu", 0, -1)], "architecture is -1"),
        ([*BASE, RemoveHost(float("nan"), "a1")], "time is nan"),
        ([*BASE, RemoveHost(5, "a1"), AddHost(6, "a", "a1", "cpu", 0, 1)], "architecture 0"),
    ],
)
def test_inconsistent_scripts_are_refused(events: list[GridEvent], words: str) -> None:
    with pytest.raises(BadPlatform, match=words):
        grid_script(events, BEHAVIOURS)


def test_run_times_by_architecture_are_rates() -> None:
    script = grid_script(BASE, {**BEHAVIOURS, "cpu": Trace.constant(1.0)})
    program = Program("p")
    program.task(None, name="a", work=[600, 500, 300])
    program.task(None, name="b", work=2.0)
    program.task(None, name="c", work=["1 min", "50 s", "30 s"])
    graph = program.graph
    assert graph.kind.tolist() == [0, 0, 0]
    assert graph.speed_class.tolist() == [0, 1, 0], "a and c are as fast as each other everywhere"
    rates = script.platform.rates(graph)
    assert (graph.work[0] / rates[0]).tolist() == [600.0, 300.0]
    assert rates[1].tolist() == [1.0, 1.0]
    program.task(None, name="d", work=[2, 1])
    with pytest.raises(BadPlatform, match="architecture 2, but the program has run times only for 0 to 1"):
        script.platform.rates(program.graph)


def test_speeds_for_a_kind_and_for_an_architecture_multiply() -> None:
    host = Host("a", speed=2.0, kinds={"fft": 3.0}, load=0.5, arch=1)
    program = Program("p")
    program.task(None, work=[8, 4], kind="fft")
    program.task(None, work=[8, 4])
    assert Platform((Site("s", (host,)),)).rates(program.graph).tolist() == [[3.0], [2.0]]


def test_what_is_real_is_kept_beside_the_estimates() -> None:
    program = Program("p")
    program.task(None, name="t", work=3.0)
    assert program.real is program.graph
    program.reality = make_graph(work=[4.0], size=[0.0], producer=[0], read_ptr=[0, 0], reads=[])
    assert (program.graph.work[0], program.real.work[0]) == (3.0, 4.0)
