"""When a scheduler is asked: each condition by itself, on every way into the coordinator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.programs import Told, chain, finished, moved
from headrace.core.coordinator import Coordinator
from headrace.core.estimates import Estimates
from headrace.core.scheduler import EVERY_EVENT, ON_GRID_CHANGES, Assign, Command, WakeConditions
from headrace.core.view import RunView
from headrace.model.behaviour import Change
from headrace.model.events import (
    Event,
    HostJoined,
    HostLeft,
    LinkLeft,
    Started,
    TaskErred,
    TaskReleased,
)
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.simulator.events.backend import simulate_scheduler

LAB = Platform.pairwise([1.0, 1.0], bandwidth=10.0)


def independent(count: int, work: float = 10.0) -> Program:
    program = Program()
    for k in range(count):
        program.task(name=f"t{k}", work=work)
    return program


def asked_by(
    wake: WakeConditions,
    events: Sequence[Event],
    program: Program | None = None,
    first: Sequence[Command] = (),
    platform: Platform = LAB,
) -> list[bool]:
    """Whether a scheduler is asked after each of these events; the first one starts the run."""
    scheduler = Told(first, wake=wake)
    coordinator = Coordinator(scheduler, (program or chain()).graph, platform)
    found = []
    for event in events:
        before = len(scheduler.seen)
        coordinator.handle([event])
        coordinator.validate_state()
        found.append(len(scheduler.seen) > before)
    return found


def test_grid_changes_are_always_told() -> None:
    events = [
        Started(0.0),
        HostLeft(1.0, "h1"),
        HostJoined(2.0, "h1"),
        TaskErred(3.0, "a", "h0", "boom"),
        finished("a", "h0", 4.0),
        moved("y", "h0", "h1", 5.0),
    ]
    assert asked_by(ON_GRID_CHANGES, events) == [True, True, True, True, False, False]
    assert asked_by(EVERY_EVENT, events) == [True] * 6


def test_every_event_means_every_event() -> None:
    program = Program()
    program.task(name="t", work=1.0, release=5.0)
    platform = Platform((Site("home"), Site("c", (Host("h"),), uplink=1.0)), origin="home")
    events = [Started(0.0), LinkLeft(1.0, "c uplink"), TaskReleased(5.0, "t")]
    assert asked_by(EVERY_EVENT, events, program, platform=platform) == [True] * 3
    assert asked_by(ON_GRID_CHANGES, events, program, platform=platform) == [True, False, False]


def test_ready_tasks_without_a_host_are_told_when_there_are_enough() -> None:
    """After a, both b and d are ready."""
    events = [Started(0.0), finished("a", "h0", 1.0)]
    first = [Assign("a", "h0", 0)]
    assert asked_by(WakeConditions(ready=2), events, first=first) == [True, True]
    assert asked_by(WakeConditions(ready=3), events, first=first) == [True, False]


def test_a_host_with_nothing_to_do_is_told_while_a_task_has_no_host() -> None:
    busy = [Assign("t0", "h0", 0), Assign("t1", "h1", 1), Assign("t2", "h0", 2)]
    events = [Started(0.0), finished("t0", "h0", 10.0), finished("t1", "h1", 10.0)]
    assert asked_by(WakeConditions(idle=True), events, independent(4), busy) == [True, False, True]
    assert asked_by(WakeConditions(idle=True), events, independent(3), busy) == [True, False, False]


def test_a_host_that_will_soon_have_nothing_to_do_is_told() -> None:
    """t1 becomes ready at 2 s, when both hosts are busy: one until 3 s, the other until 30 s."""
    program = Program()
    first = program.task(name="first", outputs={"x": 1.0}, work=2.0)
    program.task(name="t1", inputs=[first], work=1.0)
    program.task(name="short", work=3.0)
    program.task(name="long", work=30.0)
    hosts = [Assign("first", "h0", 0), Assign("long", "h0", 1), Assign("short", "h1", 0)]
    events = [Started(0.0), finished("first", "h0", 2.0)]
    for within, told in ((0.0, False), (0.5, False), (1.5, True)):
        wake = WakeConditions(idle=True, idle_within=within)
        assert asked_by(wake, events, program, hosts) == [True, told]


def test_an_idle_host_beside_a_long_queue_is_told_if_a_move_pays() -> None:
    for size, told in ((1.0, True), (1e6, False)):
        program = Program()
        made = program.task(name="first", outputs={"x": size}, work=1.0)
        for k in range(3):
            program.task(name=f"t{k}", inputs=[made], work=10.0)
        hosts = [Assign("first", "h0", 0), *(Assign(f"t{k}", "h0", k + 1) for k in range(3))]
        events = [Started(0.0), finished("first", "h0", 1.0)]
        assert asked_by(WakeConditions(imbalance=True), events, program, hosts)[1] is told


@pytest.mark.parametrize(("took", "told"), [(10.0, False), (19.0, False), (21.0, True), (4.9, True)])
def test_a_misprediction_is_told(took: float, told: bool) -> None:
    hosts = [Assign("t0", "h0", 0), Assign("t1", "h1", 0)]
    events = [Started(0.0), finished("t0", "h0", took)]
    assert asked_by(WakeConditions(misprediction=2.0), events, independent(2), hosts) == [True, told]


class AtTimes:
    """Wants to be asked at given times; remembers when it was."""

    name = "at-times"

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.wake = WakeConditions(at=self.times.pop(0))
        self.asked: list[float] = []

    def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
        self.asked.append(view.time)
        if view.time >= self.wake.at:
            self.wake = WakeConditions(at=self.times.pop(0)) if self.times else ON_GRID_CHANGES
        names, first = view.graph.task_names, view.platform.hosts[0].name
        return [Assign(name, first, k) for k, name in enumerate(names)] if view.time == 0 else []


def test_a_scheduler_is_asked_at_the_times_it_names() -> None:
    scheduler = AtTimes(3.0, 4.5, 100.0)
    simulate_scheduler(independent(2).graph, LAB, scheduler)
    assert scheduler.asked == [0.0, 3.0, 4.5]


def test_where_only_events_pass_time_it_is_asked_at_the_next_one() -> None:
    scheduler = AtTimes(3.0, 100.0)
    coordinator = Coordinator(scheduler, independent(3).graph, LAB, workers_queue=True)
    for event in (
        Started(0.0),
        finished("t0", "h0", 2.0),
        finished("t1", "h0", 4.0),
        finished("t2", "h0", 5.0),
    ):
        coordinator.handle([event])
    assert scheduler.asked == [0.0, 4.0]


class Stubborn(Told):
    """Wants to be asked at a time that is over, whatever happens."""

    def __init__(self) -> None:
        super().__init__(*[[Assign("t0", "h0", 0)]] * 1000, wake=WakeConditions(at=0.0))


def test_a_scheduler_that_is_always_due_does_not_hold_the_run_up() -> None:
    scheduler = Stubborn()
    Coordinator(scheduler, independent(1).graph, LAB).handle([Started(0.0)])
    assert len(scheduler.seen) < 10


def test_no_wake_is_lost_when_the_arrays_have_to_grow() -> None:
    """Long runs make many copy records and log lines; an event after which there is no room is told as well."""
    program = Program()
    last: list[object] = []
    for k in range(40):
        last = [program.task(name=f"t{k}", inputs=last, outputs={f"x{k}": 1.0}, work=1.0)]

    class Follows:
        """Each task goes to one of the first two hosts when it is ready."""

        name = "follows"
        wake = EVERY_EVENT

        def react(self, view: RunView, events: Sequence[Event]) -> list[Command]:
            return [Assign(f"t{t}", f"h{t % 2}", t) for t in view.ready().tolist()]

    flaps = [Change(0.013 * k, "host-up" if k % 2 else "host-down", "h2") for k in range(1, 2001)]
    platform = Platform.pairwise([1.0] * 3, bandwidth=1e9)
    run = simulate_scheduler(program.graph, platform, Follows(), changes=flaps)
    assert run.events > 4 * (program.graph.n_tasks + program.graph.n_items) + 1024, "the log has grown"
    assert run.makespan == pytest.approx(40.0, abs=1e-6)


def test_learned_estimates_hear_of_every_task_that_ended() -> None:
    class Heard(Estimates):
        fixed = False
        rows: list[tuple[int, float]] = []  # noqa: RUF012

        def note(self, now, tasks, hosts, seconds):  # type: ignore[no-untyped-def]
            self.rows += list(zip(tasks.tolist(), seconds.tolist(), strict=True))

    graph = independent(5).graph
    from headrace.online.workqueue import Workqueue

    estimates = Heard(graph, LAB)
    simulate_scheduler(graph, LAB, Workqueue(), estimates=estimates)
    assert set(estimates.rows) >= {(t, 10.0) for t in range(3)}
    estimates.rows.clear()
    coordinator = Coordinator(Told(wake=EVERY_EVENT), graph, LAB, estimates=estimates, workers_queue=True)
    coordinator.handle([Started(0.0), finished("t3", "h0", 7.0)])
    assert estimates.rows == [(3, 7.0)]
