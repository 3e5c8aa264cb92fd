"""Which items lazy replication copies for workers with their own queues, and where."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.coordinator import Coordinator
from headrace.core.estimates import HistoryEstimates
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import Assign, Replicate
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.platform import Host, Platform
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler

LAB = Platform.pairwise([1.0, 1.0, 1.0], bandwidth=1e6)


class Workers:
    """Finish tasks where they are assigned; copies arrive at once, if `copying`."""

    def __init__(self, program: Program, step: int, *, copying: bool = False) -> None:
        graph = program.graph
        self.graph, self.copying = graph, copying
        self.coordinator = Coordinator(
            make_scheduler("workqueue"),
            graph,
            LAB,
            policy=ExecutionPolicy(replicate=step),
            estimates=HistoryEstimates(graph, LAB),
            workers_queue=True,
        )
        self.pin: dict[str, str] = {}
        self.asked: list[Replicate] = []
        self.done: list[str] = []
        self.now = 0.0
        self.tell(Started(0.0))

    def tell(self, *events: Event) -> None:
        arrived: list[Event] = []
        for command in self.coordinator.handle(events):
            if isinstance(command, Assign):
                self.pin[command.task] = command.host
            elif isinstance(command, Replicate):
                self.asked.append(command)
                holders = self.holders(command.item)
                assert command.target not in holders
                arrived.append(DataMoved(self.now, command.item, min(holders), command.target, self.now, 1.0))
        self.coordinator.validate_state()
        if arrived and self.copying:
            self.tell(*arrived)

    def holders(self, item: str) -> set[str]:
        view = self.coordinator.view
        places = view.places_of(view.item_number[item])
        return {view.platform.network.place_names[place] for place in places}

    def finish(self, tasks: Sequence[str]) -> None:
        """Finish these tasks, one by one, where they were assigned."""
        for task in tasks:
            self.now += 1.0
            self.done.append(task)
            self.tell(TaskFinished(self.now, task, self.pin[task], self.now - 1.0))

    def finish_all(self) -> None:
        """Finish all tasks, in the order in which they were assigned."""
        while len(self.done) < self.graph.n_tasks:
            self.finish([next(task for task in self.pin if task not in self.done)])

    def copied(self) -> set[str]:
        return {command.item for command in self.asked}


def chain(length: int) -> Program:
    """A chain; the first item is also read by the last task."""
    program = Program("chain")
    program.task(outputs={"x0": 1.0}, name="t0")
    for i in range(1, length):
        read = [f"x{i - 1}", "x0"] if i == length - 1 else [f"x{i - 1}"]
        program.task(inputs=read, outputs={f"x{i}": 1.0}, name=f"t{i}")
    return program


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = Program("random")
    for t in range(draw(st.integers(2, 12))):
        read = draw(st.lists(st.integers(0, t - 1), max_size=2, unique=True)) if t else []
        program.task(inputs=[f"x{i}" for i in read], outputs={f"x{t}": 1.0}, name=f"t{t}")
    return program


@given(programs(), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_results_and_items_that_cross_a_level_are_copied(program: Program, step: int) -> None:
    graph = program.graph
    workers = Workers(program, step)
    workers.finish_all()
    expected = set()
    for item, name in enumerate(graph.item_names):
        made = graph.level[graph.producer[item]]
        readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]]
        read = [graph.level[r] for r in readers]
        cuts = [cut for cut in range(0, 20, step) if made <= cut and any(level > cut for level in read)]
        if graph.result[item] or cuts:
            expected.add(name)
    assert workers.copied() == expected


def test_without_a_step_nothing_is_copied() -> None:
    workers = Workers(chain(7), 0)
    workers.finish_all()
    workers.tell(HostLeft(8.0, "h0"))
    assert workers.asked == []


def test_copies_go_to_another_host() -> None:
    workers = Workers(chain(7), 3, copying=True)
    workers.finish([f"t{i}" for i in range(4)])
    assert workers.copied() == {"x0", "x3"}
    assert len(workers.holders("x0")) == len(workers.holders("x3")) == 2


@pytest.mark.parametrize("lost", ["maker", "copy"])
def test_after_a_loss_the_single_copy_is_copied_again(lost: str) -> None:
    workers = Workers(chain(7), 3, copying=True)
    workers.finish(["t0"])
    target = workers.asked[0].target
    host = workers.pin["t0"] if lost == "maker" else target
    assert workers.holders("x0") == {workers.pin["t0"], target}
    workers.tell(HostLeft(2.0, host))
    assert [command.item for command in workers.asked] == ["x0", "x0"]
    assert len(workers.holders("x0") - {host}) == 2


def test_a_copy_that_was_on_its_way_to_the_lost_host_is_sent_elsewhere() -> None:
    workers = Workers(chain(7), 3)
    workers.finish(["t0"])
    first = workers.asked[0].target
    workers.tell(HostLeft(2.0, first))
    assert [command.item for command in workers.asked] == ["x0", "x0"]
    assert workers.asked[1].target not in {first, workers.pin["t0"]}


def test_a_step_chosen_later_holds_for_what_there_is_and_after_a_join() -> None:
    workers = Workers(chain(9), 0)
    workers.finish(["t0", "t1", "t2"])
    assert workers.asked == []
    workers.coordinator.replicate_every(2)
    idle = next(h.name for h in LAB.hosts if h.name not in {workers.pin[t] for t in workers.done})
    workers.tell(HostLeft(4.0, idle))
    assert workers.copied() == {"x0", "x2"}
    assert workers.coordinator.grow(Host("new"))
    workers.tell(HostJoined(5.0, "new"))
    workers.finish(["t3", "t4"])
    assert workers.copied() == {"x0", "x2", "x4"}
