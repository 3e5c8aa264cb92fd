"""What the coordinator tells a back end that does what it is told: starts, transfers, and what follows from losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.programs import Told, chain, finished, moved, undone
from headrace.core.coordinator import AbortTransfer, Coordinator, SendItem, StartTask, StopTask
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import ON_GRID_CHANGES, Assign, Command, Fetch
from headrace.model.events import (
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    LinkJoined,
    LinkLeft,
    Started,
    StorageJoined,
    StorageLeft,
    TaskErred,
    TaskFinished,
    TaskReleased,
)
from headrace.model.graph import Graph
from headrace.model.platform import Host, Pairs, Platform, Site
from headrace.model.program import Program

LAB = Platform.pairwise([1.0] * 3, bandwidth=10.0)
START = [Started(0.0)]


class Run:
    """A coordinator whose scheduler is told what to answer at the start; validated after every event."""

    def __init__(
        self,
        program: Program | Graph,
        platform: Platform,
        *answers: Sequence[Command],
        policy: ExecutionPolicy | None = None,
    ) -> None:
        graph = program.graph if isinstance(program, Program) else program
        self.scheduler = Told(*answers, wake=ON_GRID_CHANGES)
        self.coordinator = Coordinator(self.scheduler, graph, platform, policy=policy)

    def __call__(self, *events: Event) -> list[object]:
        answer: list[object] = list(self.coordinator.handle(events))
        self.coordinator.validate_state()
        return answer


CHAIN_HOSTS = [Assign("a", "h0", 0), Assign("b", "h1", 1), Assign("c", "h1", 2), Assign("d", "h2", 3)]


def test_a_task_starts_when_its_inputs_are_at_its_host() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS)
    assert run(*START) == [StartTask("a", "h0", 0)]
    assert run(finished("a", "h0", 1.0)) == [SendItem("y", "h0", "h1"), SendItem("y", "h0", "h2")]
    assert run(moved("y", "h0", "h2", 2.0)) == [StartTask("d", "h2", 0)]
    assert run(moved("y", "h0", "h1", 2.0)) == [StartTask("b", "h1", 0)]
    assert run(finished("b", "h1", 4.0)) == [StartTask("c", "h1", 0)]
    assert run(finished("c", "h1", 7.0), finished("d", "h2", 7.0)) == []
    assert undone(run.coordinator) == []


def test_tasks_take_the_cores_that_are_free() -> None:
    program = Program()
    for name, cores in (("one", 1), ("two", 2), ("last", 1)):
        program.task(name=name, cores=cores, work=1.0)
    platform = Platform((Site("s", (Host("h", cores=3),)),))
    run = Run(program, platform, [Assign(name, "h", k) for k, name in enumerate(("one", "two", "last"))])
    assert run(*START) == [StartTask("one", "h", 0), StartTask("two", "h", 1)]
    assert run(finished("two", "h")) == [StartTask("last", "h", 1)]


def test_a_task_with_its_inputs_goes_before_one_that_waits_unless_it_was_planned_in_order() -> None:
    program = Program()
    made = program.task(name="maker", outputs={"x": 10.0}, work=5.0)
    program.task(name="reader", inputs=[made], work=1.0)
    program.task(name="free", work=1.0)
    for in_order in (False, True):
        hosts = [
            Assign("maker", "h0", 0),
            Assign("reader", "h1", 1, in_order),
            Assign("free", "h1", 2, in_order),
        ]
        started = [StartTask("maker", "h0", 0)]
        passed = [] if in_order else [StartTask("free", "h1", 0)]
        assert Run(program, LAB, hosts)(*START) == started + passed
        ready = ExecutionPolicy(task_order="ready")
        assert Run(program, LAB, hosts, policy=ready)(*START) == [*started, StartTask("free", "h1", 0)]


def test_inputs_are_sent_for_the_tasks_at_the_head_of_a_queue_only() -> None:
    program = Program()
    for k in range(4):
        program.task(name=f"t{k}", inputs=[program.input(f"x{k}", size=10.0)], work=1.0)
    platform = Platform.pairwise([1.0, 1.0], bandwidth=1.0, origin="h0")
    hosts = [Assign(f"t{k}", "h1", k) for k in range(4)]
    for depth in (1, 3):
        run = Run(program, platform, hosts, policy=ExecutionPolicy(prefetch_depth=depth))
        assert run(*START) == [SendItem(f"x{k}", "h0", "h1") for k in range(depth)]


# Hosts that leave and return.


def test_what_ran_on_a_lost_host_is_stopped_and_starts_elsewhere() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS, [Assign("a", "h1", 0)])
    run(*START)
    assert run(HostLeft(0.5, "h0")) == [StopTask("a", "h0", 0), StartTask("a", "h1", 0)]


def far_and_near() -> Platform:
    """h3 is reached quickest from h0, then from h2, then from h1."""
    bandwidth = np.full((4, 4), 1.0)
    bandwidth[0, 3], bandwidth[2, 3], bandwidth[1, 3] = 9.0, 5.0, 2.0
    hosts = tuple(Host(f"h{k}") for k in range(4))
    return Platform((Site("all", hosts),), pairs=Pairs(bandwidth))


def spread(run: Run) -> None:
    """y is made at h0 and copied to h1 and h2."""
    run(*START)
    run(finished("a", "h0", 1.0))
    run(moved("y", "h0", "h1", 2.0))
    run(moved("y", "h0", "h2", 2.0))


def test_a_lost_transfer_is_repeated_from_the_nearest_surviving_copy() -> None:
    ends = [Assign("b", "h3", 1), Assign("c", "h3", 2), Assign("d", "h3", 3)]
    run = Run(chain(), far_and_near(), [Assign("a", "h0", 0)], ends)
    spread(run)
    run.scheduler.answers = [ends]
    assert run(TaskErred(2.5, "b", "h3", "none")) == [SendItem("y", "h0", "h3")]
    run.scheduler.answers = []
    lost = run(HostLeft(3.0, "h0"))
    assert lost == [AbortTransfer("y", "h0", "h3"), SendItem("y", "h2", "h3")]
    assert run(HostLeft(4.0, "h2")) == [AbortTransfer("y", "h2", "h3"), SendItem("y", "h1", "h3")]
    assert undone(run.coordinator) == ["b", "c", "d"], "a need not run again"


def test_without_a_surviving_copy_the_maker_runs_again() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS)
    run(*START)
    run(finished("a", "h0", 1.0))
    run.scheduler.answers = [[Assign("a", "h2", 0)]]
    lost = run(HostLeft(1.5, "h0"))
    assert lost == [
        AbortTransfer("y", "h0", "h2"),
        AbortTransfer("y", "h0", "h1"),
        StartTask("a", "h2", 0),
    ]
    assert undone(run.coordinator) == ["a", "b", "c", "d"]


def test_each_aborted_transfer_is_named_even_if_its_number_is_used_again_at_once() -> None:
    """The lost host took part in one transfer; another one begins in its stead, with other data."""
    program = Program()
    first, second = program.input("first", size=10.0), program.input("second", size=10.0)
    program.task(name="t0", inputs=[first], work=1.0)
    program.task(name="t1", inputs=[second], work=1.0)
    platform = Platform.pairwise([1.0] * 3, bandwidth=1.0, origin="h0")
    run = Run(program, platform, [Assign("t0", "h1", 0)], [Assign("t1", "h2", 1)])
    assert run(*START) == [SendItem("first", "h0", "h1")]
    assert run(HostLeft(1.0, "h1")) == [AbortTransfer("first", "h0", "h1"), SendItem("second", "h0", "h2")]


def test_a_host_that_returns_is_empty_and_can_be_used() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS, [], [Assign("a", "h0", 0)])
    run(*START)
    run(finished("a", "h0", 1.0))
    run(HostLeft(2.0, "h0"))
    assert undone(run.coordinator) == ["a", "b", "c", "d"]
    assert run(HostJoined(3.0, "h0")) == [StartTask("a", "h0", 0)]
    assert run.coordinator.view.places_of(1) == []


def test_news_of_hosts_that_are_gone_comes_too_late() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS)
    run(*START)
    run(HostLeft(1.0, "h0"))
    assert run(finished("a", "h0", 1.1)) == []
    assert run(moved("y", "h1", "h0", 1.2)) == []
    assert run(HostLeft(1.3, "h0")) == []
    assert undone(run.coordinator) == ["a", "b", "c", "d"]
    assert run.coordinator.view.down == {"h0"}


def test_a_task_that_ends_twice_counts_once() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS)
    run(*START)
    run(finished("a", "h0", 1.0))
    assert run(finished("a", "h0", 1.5)) == []
    assert undone(run.coordinator) == ["b", "c", "d"]


def test_news_of_hosts_and_places_that_do_not_exist_is_ignored() -> None:
    run = Run(chain(), LAB, CHAIN_HOSTS)
    run(*START)
    for event in (
        TaskFinished(1.0, "a", "stranger", 0.0),
        DataMoved(1.0, "y", "h0", "stranger", 0.0, 1.0),
        HostLeft(1.0, "stranger"),
        HostJoined(1.0, "stranger"),
    ):
        assert run(event) == []
    assert undone(run.coordinator) == ["a", "b", "c", "d"]


def test_a_host_that_is_absent_at_the_start_brings_the_data_that_lies_there() -> None:
    program = Program()
    there = program.input("there", size=10.0, sites=["h2"])
    program.task(name="t", inputs=[there], work=1.0)
    run = Run(program, LAB, [Assign("t", "h0", 0)], [Assign("t", "h0", 0)])
    run.coordinator.absent_at_start("h2")
    assert run(*START) == []
    assert run(HostJoined(5.0, "h2")) == [SendItem("there", "h2", "h0")]


# Links, storage, releases.


CLUSTERS = Platform(
    (
        Site("home"),
        Site("c", (Host("c0"), Host("c1")), uplink=10.0),
        Site("d", (Host("d0"),), uplink=10.0),
    ),
    contention="fifo",
    origin="home",
)


def shared_file() -> Program:
    program = Program()
    file = program.input("file", size=100.0)
    made = program.task(name="t0", inputs=[file], outputs={"made": 10.0}, work=1.0)
    program.task(name="t1", inputs=[file, made], outputs={"result": 10.0}, work=1.0)
    return program


def test_one_copy_serves_all_hosts_of_a_site_and_results_return_to_the_origin() -> None:
    run = Run(shared_file(), CLUSTERS, [Assign("t0", "c0", 0), Assign("t1", "c1", 1)])
    assert run(*START) == [SendItem("file", "home", "c")]
    assert run(moved("file", "home", "c", 10.0)) == [StartTask("t0", "c0", 0)]
    assert run(finished("t0", "c0", 11.0)) == [StartTask("t1", "c1", 0)]
    assert run(finished("t1", "c1", 12.0)) == [SendItem("result", "c", "home")]


def test_a_transfer_over_a_link_that_breaks_is_repeated_when_the_link_is_up_again() -> None:
    run = Run(shared_file(), CLUSTERS, [Assign("t0", "c0", 0), Assign("t1", "c1", 1)])
    run(*START)
    assert run(LinkLeft(1.0, "c uplink")) == [AbortTransfer("file", "home", "c")]
    assert run(LinkLeft(1.5, "d uplink")) == []
    assert run(LinkJoined(2.0, "d uplink")) == []
    assert run(LinkJoined(3.0, "c uplink")) == [SendItem("file", "home", "c")]


def test_a_fifo_link_carries_one_transfer_at_a_time() -> None:
    program = Program()
    for k in range(3):
        program.task(name=f"t{k}", inputs=[program.input(f"x{k}", size=10.0)], work=1.0)
    hosts = [Assign("t0", "c0", 0), Assign("t1", "c1", 1), Assign("t2", "d0", 2)]
    run = Run(program, CLUSTERS, hosts)
    assert run(*START) == [SendItem("x0", "home", "c"), SendItem("x2", "home", "d")]
    assert run(moved("x2", "home", "d", 1.0)) == [StartTask("t2", "d0", 0)]
    assert run(moved("x0", "home", "c", 1.0)) == [StartTask("t0", "c0", 0), SendItem("x1", "home", "c")]


def test_storage_that_is_out_of_reach_comes_back_with_its_contents() -> None:
    """What is made again meanwhile, and has not begun, need not be."""
    run = Run(shared_file(), CLUSTERS, [Assign("t0", "c0", 0), Assign("t1", "d0", 1)])
    run(*START)
    run(moved("file", "home", "c", 10.0), moved("file", "home", "d", 10.0))
    assert run(finished("t0", "c0", 11.0)) == [SendItem("made", "c", "d")]
    assert run(StorageLeft(11.5, "c")) == [AbortTransfer("made", "c", "d")]
    assert undone(run.coordinator) == ["t0", "t1"]
    run.scheduler.answers = [[Assign("t1", "d0", 1)]]
    assert run(StorageJoined(12.0, "c"), TaskErred(12.0, "t1", "d0", "asks the scheduler")) == [
        SendItem("made", "c", "d")
    ]
    assert undone(run.coordinator) == ["t1"]


def test_the_origin_does_not_get_lost() -> None:
    run = Run(shared_file(), CLUSTERS, [Assign("t0", "c0", 0), Assign("t1", "c1", 1)])
    run(*START)
    assert run(StorageLeft(1.0, "home")) == []
    assert run.coordinator.view.places_of(0) == [run.coordinator.view.place_number["home"]]


def test_work_that_arrives_while_the_run_goes_on_starts_when_it_is_released() -> None:
    program = Program()
    program.task(name="now", work=1.0)
    program.task(name="later", work=1.0, release=5.0)
    hosts = [Assign("now", "h0", 0), Assign("later", "h1", 1)]
    run = Run(program, LAB, hosts)
    assert run(*START) == [StartTask("now", "h0", 0)]
    assert run.coordinator.view.ready().tolist() == []
    assert run(TaskReleased(5.0, "later")) == [StartTask("later", "h1", 0)]
    ready = Run(program, LAB, hosts[:1])
    ready(*START)
    ready(TaskReleased(5.0, "later"))
    assert ready.coordinator.view.ready().tolist() == [1], "it waits for a host"


# Planned sources and orders.


def test_an_item_comes_from_the_source_that_is_named_not_from_the_nearest() -> None:
    run = Run(chain(), far_and_near(), [Assign("a", "h0", 0)])
    spread(run)
    for routes, source in (("planned", "h1"), ("nearest", "h0")):
        run = Run(chain(), far_and_near(), [Assign("a", "h0", 0)], policy=ExecutionPolicy(routes=routes))
        spread(run)
        run.scheduler.answers = [[Assign("d", "h3", 0), Fetch("y", "h1", "h3", 0.0)]]
        assert run(TaskErred(3.0, "b", "h3", "asks the scheduler")) == [SendItem("y", source, "h3")]


def test_an_item_is_passed_on_over_the_relay_that_is_named() -> None:
    hosts = [Assign("a", "h0", 0), Assign("d", "h3", 1)]
    relay = [Fetch("y", "h0", "h2", 0.0), Fetch("y", "h2", "h3", 1.0)]
    run = Run(chain(), far_and_near(), [*hosts, *relay])
    assert run(*START) == [StartTask("a", "h0", 0)]
    assert run(finished("a", "h0", 1.0)) == [SendItem("y", "h0", "h2")]
    assert run(moved("y", "h0", "h2", 11.0)) == [SendItem("y", "h2", "h3")]
    assert run(moved("y", "h2", "h3", 13.0)) == [StartTask("d", "h3", 0)]


def test_a_relay_that_is_lost_is_left_out() -> None:
    hosts = [Assign("a", "h0", 0), Assign("d", "h3", 1)]
    relay = [Fetch("y", "h0", "h2", 0.0), Fetch("y", "h2", "h3", 1.0)]
    run = Run(chain(), far_and_near(), [*hosts, *relay])
    run(*START)
    run(finished("a", "h0", 1.0))
    lost = run(HostLeft(2.0, "h2"))
    assert lost == [AbortTransfer("y", "h0", "h2"), SendItem("y", "h0", "h3")]


def test_fifo_links_keep_the_planned_order_even_if_that_leaves_them_idle() -> None:
    """The result of t0 is to return before the input of t1 is sent over the only link."""
    program = Program()
    made = program.task(name="t0", outputs={"result": 10.0}, work=4.0)
    program.output(made)
    program.task(name="t1", inputs=[program.input("x", size=100.0)], work=1.0)
    platform = Platform(
        (Site("home"), Site("c", (Host("c0"), Host("c1")), uplink=10.0)), contention="fifo", origin="home"
    )
    answer = [
        Assign("t0", "c0", 0),
        Assign("t1", "c1", 1),
        Fetch("result", "c", "home", 1.0),
        Fetch("x", "home", "c", 2.0),
    ]
    kept = Run(program, platform, answer)
    assert kept(*START) == [StartTask("t0", "c0", 0)]
    assert kept(finished("t0", "c0", 4.0)) == [SendItem("result", "c", "home")]
    assert kept(moved("result", "c", "home", 5.0)) == [SendItem("x", "home", "c")]
    loose = ExecutionPolicy(link_order="out-of-order", routes="nearest")
    assert Run(program, platform, answer, policy=loose)(*START) == [
        StartTask("t0", "c0", 0),
        SendItem("x", "home", "c"),
    ]


def sent_at_the_start(prefetch: bool) -> tuple[Run, list[object]]:
    """Four inputs for tasks in one queue on fair links, the last of them by way of h1."""
    program = Program()
    for k in range(4):
        program.task(None, inputs=[program.input(f"x{k}", size=1e6)], work=10.0, name=f"t{k}")
    lab = Platform.pairwise([1.0] * 3, bandwidth=1e6, contention="fair", origin="h0")
    tasks = [Assign(f"t{k}", "h2", k) for k in range(4)]
    direct = [Fetch(f"x{k}", "h0", "h2", k, prefetch) for k in range(3)]
    relayed = [Fetch("x3", "h0", "h1", 3, prefetch), Fetch("x3", "h1", "h2", 4, prefetch)]
    run = Run(program, lab, [*tasks, *direct, *relayed])
    return run, run(*START)


def test_planned_transfers_start_at_once_unless_they_are_to_be_prefetched() -> None:
    _, sent = sent_at_the_start(prefetch=False)
    assert sorted(map(str, sent)) == sorted(
        map(str, [*(SendItem(f"x{k}", "h0", "h2") for k in range(3)), SendItem("x3", "h0", "h1")])
    )


def test_prefetched_transfers_on_fair_links_wait_for_their_task_and_so_do_their_relays() -> None:
    run, sent = sent_at_the_start(prefetch=True)
    assert sent == [SendItem("x0", "h0", "h2"), SendItem("x1", "h0", "h2")]
    assert run(moved("x0", "h0", "h2", time=1.0)) == [StartTask("t0", "h2", 0), SendItem("x2", "h0", "h2")]
    run(moved("x1", "h0", "h2", time=2.0))
    answer = run(finished("t0", "h2", time=11.0))
    assert answer == [StartTask("t1", "h2", 0), SendItem("x3", "h0", "h1")]
    assert run(moved("x3", "h0", "h1", time=12.0)) == [SendItem("x3", "h1", "h2")]
