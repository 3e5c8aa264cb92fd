"""What each command of a scheduler does: cancel, requeue, replicate, remove; and names that do not exist."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.programs import Told, chain, finished, moved, undone
from headrace.core.coordinator import Coordinator, DropCopy, SendItem, StartTask, StopTask
from headrace.core.scheduler import (
    EVERY_EVENT,
    Assign,
    AssignMany,
    Cancel,
    Command,
    Fetch,
    Remove,
    Replicate,
    Requeue,
    RequeueTail,
)
from headrace.model.errors import NoPlan
from headrace.model.events import Event, Started
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.model.program import Program
from headrace.testing.wild import Wild

LAB = Platform.pairwise([1.0] * 3, bandwidth=10.0)
START = Started(0.0)


class Run:
    """Handles one event at a time and then has the scheduler say something; validated after it."""

    def __init__(self, program: Program, platform: Platform = LAB) -> None:
        self.scheduler = Told(wake=EVERY_EVENT)
        self.coordinator = Coordinator(self.scheduler, program.graph, platform)
        self.view = self.coordinator.view

    def __call__(self, event: Event, *commands: Command) -> list[object]:
        self.scheduler.answers = [commands]
        answer: list[object] = list(self.coordinator.handle([event]))
        self.coordinator.validate_state()
        return answer

    def names(self, tasks: Sequence[int]) -> list[str]:
        return [self.view.graph.task_names[t] for t in tasks]


def three(work: float = 5.0) -> Program:
    program = Program()
    for name in "abc":
        program.task(name=name, outputs={f"{name}.out": 10.0}, work=work)
    return program


def test_tasks_by_number_are_assigned_as_by_name() -> None:
    run = Run(three())
    many = AssignMany(np.array([2, 0, 1], np.int32), np.array([0, 0, 1], np.int32), np.array([2.0, 1.0, 3.0]))
    assert run(START, many) == [StartTask("a", "h0", 0), StartTask("b", "h1", 0)]
    assert run.names(run.view.queue(0)) == ["c"]


def test_a_task_that_is_assigned_again_leaves_its_queue() -> None:
    run = Run(three())
    run(START, Assign("a", "h0", 0), Assign("b", "h0", 1), Assign("c", "h0", 2))
    assert run(finished("a", "h0", 1.0), Assign("c", "h1", 0)) == [
        StartTask("b", "h0", 0),
        StartTask("c", "h1", 0),
    ]


def test_a_running_task_is_not_assigned_again() -> None:
    run = Run(three())
    run(START, Assign("a", "h0", 0))
    assert run(finished("b", "h2", 1.0), Assign("a", "h1", 0)) == []
    assert run.names(np.flatnonzero(run.view.running).tolist()) == ["a"]


def test_a_cancelled_task_is_stopped_and_ready_again() -> None:
    run = Run(three())
    run(START, Assign("a", "h0", 0), Assign("b", "h0", 1))
    assert run(finished("c", "h2"), Cancel("a")) == [StopTask("a", "h0", 0), StartTask("b", "h0", 0)]
    assert run.names(run.view.ready().tolist()) == ["a"]
    assert run(finished("b", "h0", 6.0), Cancel("b"), Assign("a", "h1", 0)) == [StartTask("a", "h1", 0)]
    assert undone(run.coordinator) == ["a"], "what has ended is not cancelled"


def test_cancelling_takes_a_queued_task_off_its_queue() -> None:
    run = Run(three())
    run(START, Assign("a", "h0", 0), Assign("b", "h0", 1))
    run(finished("c", "h2"), Cancel("b"))
    assert run.names(run.view.ready().tolist()) == ["b"]
    assert run.view.queue(0) == []


def test_a_requeued_task_is_ready_again_and_a_running_one_goes_on() -> None:
    run = Run(three())
    run(START, Assign("a", "h0", 0), Assign("b", "h0", 1))
    assert run(finished("c", "h2"), Requeue("a"), Requeue("b")) == []
    assert run.names(run.view.ready().tolist()) == ["b"]
    assert run.names(np.flatnonzero(run.view.running).tolist()) == ["a"]


def inputs(count: int, size: float = 100.0) -> Program:
    program = Program()
    for k in range(count):
        program.task(name=f"t{k}", inputs=[program.input(f"x{k}", size=size)], work=1.0)
    return program


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_queues_are_cut_to_their_heads_and_transfers_that_nothing_needs_are_withdrawn(
    contention: Contention,
) -> None:
    platform = Platform(
        (Site("home"), Site("c", (Host("c0"),), uplink=10.0)), contention=contention, origin="home"
    )
    run = Run(inputs(4), platform)
    hosts = [Assign(f"t{k}", "c0", k) for k in range(4)]
    sent = run(START, *hosts, *(Fetch(f"x{k}", "home", "c", k) for k in range(4)))
    at_once = 4 if contention == "none" else 1
    assert sent == [SendItem(f"x{k}", "home", "c") for k in range(at_once)]
    assert run(moved("x0", "home", "c", 10.0), RequeueTail(0)) == (
        [StartTask("t0", "c0", 0)] + ([SendItem("x1", "home", "c")] if contention == "fifo" else [])
    )
    run(moved("x1", "home", "c", 20.0))
    assert run.names(run.view.ready().tolist()) == ["t1", "t2", "t3"]
    # Under fifo x2 and x3 had not begun: nothing needs them now.
    items = [run.view.graph.item_names[row.item] for row in run.view.in_flight().carried]
    assert items == (["x2", "x3"] if contention == "none" else [])


def test_each_host_keeps_as_many_tasks_as_it_is_left() -> None:
    run = Run(inputs(6, size=0.0))
    run(START, *(Assign(f"t{k}", f"h{k % 2}", k) for k in range(6)))
    run(finished("t5", "h1"), RequeueTail(1))
    assert [run.names(run.view.queue(h)) for h in range(3)] == [["t2"], ["t3"], []]
    assert run.names(run.view.ready().tolist()) == ["t4"]


# Data.


def test_a_replica_is_sent_and_survives_the_loss_of_the_other_copy() -> None:
    run = Run(chain())
    run(START, Assign("a", "h0", 0))
    assert run(finished("a", "h0"), Replicate("y", "h2")) == [SendItem("y", "h0", "h2")]
    assert run(moved("y", "h0", "h2", 2.0)) == []
    assert run.view.places_of(1) == [0, 2]


def test_a_replica_of_what_does_not_exist_is_not_sent() -> None:
    run = Run(chain())
    assert run(START, Assign("a", "h0", 0), Replicate("y", "h2")) == [StartTask("a", "h0", 0)]
    assert run(finished("a", "h0")) == []


def test_a_replica_goes_after_what_tasks_have_requested() -> None:
    platform = Platform((Site("s", (Host("h0"), Host("h1")), bandwidth=10.0),), contention="fifo")
    program = Program()
    made = program.task(name="a", outputs={"x": 10.0, "y": 10.0, "z": 10.0}, work=1.0)
    program.task(name="b", inputs=["y", "z"], work=1.0)
    assert made
    run = Run(program, platform)
    run(START, Assign("a", "h0", 0))
    assert run(finished("a", "h0"), Assign("b", "h1", 0)) == [SendItem("y", "h0", "h1")]
    assert run(moved("x", "h1", "h0", 1.5), Replicate("x", "h1")) == []
    assert run(moved("y", "h0", "h1", 2.0)) == [SendItem("z", "h0", "h1")]
    assert run(moved("z", "h0", "h1", 3.0)) == [StartTask("b", "h1", 0), SendItem("x", "h0", "h1")]


def test_a_spare_copy_is_removed_and_the_last_one_that_is_needed_is_not() -> None:
    run = Run(chain())
    run(START, Assign("a", "h0", 0))
    run(finished("a", "h0"), Replicate("y", "h2"))
    run(moved("y", "h0", "h2", 2.0))
    assert run(moved("x", "h0", "h1", 3.0), Remove("y", "h0")) == [DropCopy("y", "h0")]
    assert run.view.places_of(1) == [2]
    assert run(moved("x", "h0", "h1", 3.5), Remove("y", "h2")) == [], "b and d have yet to read it"
    assert run(moved("x", "h0", "h1", 3.6), Remove("y", "h1")) == [], "it is not there"


def test_a_copy_that_a_task_there_waits_for_or_that_is_being_sent_is_not_removed() -> None:
    run = Run(chain())
    run(START, Assign("a", "h0", 0))
    run(finished("a", "h0"), Replicate("y", "h2"))
    run(moved("y", "h0", "h2", 2.0), Assign("b", "h2", 0), Assign("d", "h1", 0))
    assert run(moved("x", "h0", "h1", 2.5), Remove("y", "h2")) == [], "b reads it there"
    sources = [source for item, source in _in_transit(run) if item == "y"]
    assert run(moved("x", "h0", "h1", 2.6), *(Remove("y", source) for source in sources)) == []


def _in_transit(run: Run) -> list[tuple[str, str]]:
    state, view = run.view.state, run.view
    places = view.platform.network.place_names
    from headrace.core.state import TRANSFERS

    live = state.live_transfers[: int(state.counters[TRANSFERS])].tolist()
    return [(view.graph.item_names[state.transfer_item[k]], places[state.transfer_source[k]]) for k in live]


# Names.


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (Assign("a", "nowhere", 0), "'a' was assigned to host 'nowhere', which does not exist"),
        (Assign("nothing", "h0", 0), "the task 'nothing', which does not exist"),
        (Fetch("nothing", "h0", "h1", 0), "the item 'nothing', which does not exist"),
        (Fetch("y", "nowhere", "h1", 0), "the place 'nowhere', which does not exist"),
        (Fetch("y", "h0", "nowhere", 0), "the place 'nowhere', which does not exist"),
        (Replicate("nothing", "h0"), "the item 'nothing', which does not exist"),
        (Remove("y", "nowhere"), "the place 'nowhere', which does not exist"),
        (Cancel("nothing"), "the task 'nothing', which does not exist"),
        (Requeue("nothing"), "the task 'nothing', which does not exist"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(command: Command, said: str) -> None:
    with pytest.raises(NoPlan) as found:
        Run(chain())(START, command)
    assert said in str(found.value)
    assert any(name in str(found.value) for name in ("h0", "a, b", "x, y"))


def test_hosts_that_share_storage_can_be_named_as_places() -> None:
    platform = Platform(
        (Site("home"), Site("c", (Host("c0"), Host("c1")), uplink=10.0)), contention="none", origin="home"
    )
    run = Run(inputs(1), platform)
    assert run(START, Replicate("x0", "c1")) == [SendItem("x0", "home", "c")]


class Wilder(Wild):
    """Also cancels, requeues, replicates and removes at random, and orders queues."""

    def react(self, view, events):  # type: ignore[no-untyped-def]
        commands = super().react(view, events)
        rng, graph = self.rng, view.graph
        places = view.platform.network.place_names
        tasks = graph.task_names

        def some(names: Sequence[str]) -> str:
            return names[int(rng.integers(len(names)))]

        if events and rng.random() < 0.1:
            commands.append(Cancel(some(tasks)))
        if events and rng.random() < 0.1:
            commands.append(Requeue(some(tasks)))
        if graph.n_items and rng.random() < 0.3:
            commands.append(Replicate(some(graph.item_names), some(places)))
        if graph.n_items and rng.random() < 0.3:
            commands.append(Remove(some(graph.item_names), some(places)))
        return commands


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_whatever_is_commanded_the_state_is_consistent_and_every_task_runs(contention: Contention) -> None:
    from core.virtual_grid import VirtualGrid
    from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

    for seed in range(80):
        graph = random_program(seed, 3 + seed % 12, SHAPES[seed % 5]).graph
        platform = random_platform(
            seed, NETWORKS[seed // 5 % 5], contention=contention, hosts=1 + seed % 5, origin=ORIGINS[seed % 3]
        )
        rows = VirtualGrid(graph, platform, Wilder(seed)).run()
        assert {what.split()[1] for what, _ in rows if what.startswith("end")} == set(graph.task_names)
