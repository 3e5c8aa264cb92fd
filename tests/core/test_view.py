"""What a scheduler sees: plain methods for people, arrays that cannot be written to, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import pytest

from core.programs import Told, chain, finished, moved
from headrace.core.coordinator import Coordinator
from headrace.core.estimate_sources import ServiceEstimates
from headrace.core.estimates import Estimates, HistoryEstimates
from headrace.core.scheduler import EVERY_EVENT, Assign
from headrace.core.view import RunView
from headrace.model.events import Event, HostLeft, Started
from headrace.model.platform import Host, Platform, Site
from headrace.planners.registry import make
from headrace.simulator.events.backend import simulate_scheduler

LAB = Platform.pairwise([1.0, 2.0, 1.0], bandwidth=10.0)


def in_the_middle() -> Coordinator:
    """a is done at h0 and its output also at h1, where b runs; d waits at h2 for its input."""
    hosts = [Assign("a", "h0", 0), Assign("b", "h1", 1), Assign("d", "h2", 2)]
    coordinator = Coordinator(Told(hosts), chain().graph, LAB)
    coordinator.handle([Started(0.0)])
    coordinator.handle([finished("a", "h0", 1.0)])
    coordinator.handle([moved("y", "h0", "h1", 1.5)])
    return coordinator


def test_the_methods_for_people_say_what_goes_on() -> None:
    view = in_the_middle().view
    task = view.task_number
    assert (view.time, view.ready().tolist(), view.ready_count) == (1.5, [], 0)
    assert view.queue(2) == [task["d"]]
    assert np.flatnonzero(view.running).tolist() == [task["b"]]
    assert np.flatnonzero(view.done).tolist() == [task["a"]]
    assert view.hosts_up.tolist() == [True] * 3
    assert view.down == set()
    assert view.places_of(view.item_number["y"]) == [0, 1]
    assert view.holders == {view.item_number["y"]: {"h0", "h1"}}
    assert view.rates()[0].tolist() == [1.0, 2.0, 1.0]
    assert [(row.item, row.target) for row in view.in_flight().carried] == [(view.item_number["y"], 2)]
    slots = {slot.task: (slot.host, slot.end) for slot in view.timetable(1).slots}
    assert slots == {task["b"]: (1, 1.0), task["d"]: (2, 4.0)}


def test_hosts_that_are_gone_are_not_shown_as_holders() -> None:
    coordinator = in_the_middle()
    coordinator.handle([HostLeft(2.0, "h1")])
    view = coordinator.view
    assert view.down == {"h1"}
    assert view.holders == {view.item_number["y"]: {"h0"}}


def test_hosts_of_a_site_hold_together_what_is_in_its_storage() -> None:
    platform = Platform((Site("s", (Host("a0"), Host("a1"))), Site("t", (Host("b0"),), uplink=1.0)))
    coordinator = Coordinator(Told([Assign("a", "a0", 0)]), chain().graph, platform)
    coordinator.handle([Started(0.0), finished("a", "a0")])
    assert coordinator.view.holders == {coordinator.view.item_number["y"]: {"a0", "a1"}}


def arrays_of(view: RunView) -> dict[str, np.ndarray]:
    """Every array that a scheduler gets hold of by name."""
    found = {}
    for record in (view.static, view.state):
        found |= {name: array for name, array in record._asdict().items() if isinstance(array, np.ndarray)}
    return found | {"done": view.done, "hosts_up": view.hosts_up, "rates": view.rates()}


def test_no_array_of_the_view_can_be_written_to() -> None:
    view = in_the_middle().view
    assert len(arrays_of(view)) > 90
    for name, array in arrays_of(view).items():
        assert not array.flags.writeable, name
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array.flat[0] = 0


@pytest.mark.parametrize("make", [Estimates, HistoryEstimates, ServiceEstimates])
def test_estimated_speeds_cannot_be_written_to(make: type[Estimates]) -> None:
    graph = chain().graph
    estimates = make(graph, LAB)
    one = np.array([0], np.int32)
    for now in (0.0, 25.0):
        assert not estimates.rates(now).flags.writeable
        estimates.note(now, one, one, np.array([3.0]))


def test_arrays_that_grow_stay_read_only_and_up_to_date() -> None:
    coordinator = in_the_middle()
    coordinator.records.reserve(10_000)
    view = coordinator.view
    assert not any(array.flags.writeable for array in arrays_of(view).values())
    assert view.places_of(view.item_number["y"]) == [0, 1]
    coordinator.handle([moved("y", "h0", "h2", 2.0)])
    assert view.places_of(view.item_number["y"]) == [0, 1, 2]


def test_compiled_schedulers_cannot_write_either() -> None:
    """Numba refuses to compile it."""

    @numba.njit
    def write(state):  # type: ignore[no-untyped-def]
        state.done[0] = 1

    view = in_the_middle().view
    with pytest.raises(numba.core.errors.TypingError, match=r"(?i)read-?only|immutable|Cannot store|setitem"):
        write(view.compiled[1])


class Copying:
    """Keeps a reference to an array of the view."""

    name = "copying"
    wake = EVERY_EVENT

    def __init__(self) -> None:
        self.counts: list[int] = []

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        self.counts.append(int(view.done.sum()))
        return [Assign(view.graph.task_names[t], "h0", t) for t in view.ready().tolist()]


def test_each_call_shows_the_present_state() -> None:
    scheduler = Copying()
    simulate_scheduler(chain().graph, LAB, scheduler)
    assert scheduler.counts == sorted(scheduler.counts)
    assert scheduler.counts[0] == 0
    assert scheduler.counts[-1] == 3


def test_what_is_left_can_be_planned_by_any_planner() -> None:
    problem = in_the_middle().view.problem(keep=0)
    assert set(problem.graph.task_names) == {"c", "d"}
    plan = make("heft").plan(problem)
    assert plan.graph is problem.graph
