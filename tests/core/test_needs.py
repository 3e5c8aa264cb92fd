"""Needs in the coordinator: schedulers are told where tasks fit, also on hosts that join later."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.core.coordinator import Coordinator
from headrace.core.replan import Replan
from headrace.core.scheduler import ON_GRID_CHANGES, Assign
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.online.lheft import LHeft
from headrace.planners.list.heft import Heft
from headrace.simulator.events.backend import simulate_scheduler

LAB = Platform((Site("a", (Host("x", 1.0, 2, memory=4.0), Host("y", 1.0, 2, memory=8.0)), bandwidth=1e6),))


def program_of(*memory: float) -> Program:
    program = Program("needs")
    for number, needed in enumerate(memory):
        program.task(None, name=f"t{number}", work=1.0, memory=needed)
    return program


@pytest.mark.parametrize("make", [lambda: Replan(Heft()), LHeft])
def test_a_host_that_joins_takes_what_fits_there(make: type) -> None:
    """After the large host has left, a large task goes to the one that has joined."""
    scheduler = make()
    coordinator = Coordinator(scheduler, program_of(6.0, 6.0, 2.0).graph, LAB, workers_queue=True)
    coordinator.handle([Started(0.0)])
    assert [int(h) for h in coordinator.view.state.assigned[:2]] == [1, 1]
    coordinator.handle([TaskFinished(1.0, "t0", "y", 0.0)])
    assert coordinator.grow(Host("new", 1.0, 2, memory=9.0))
    coordinator.handle([HostJoined(1.5, "new")])
    coordinator.handle([HostLeft(2.0, "y")])
    coordinator.validate_state()
    assert coordinator.view.state.assigned[1] == 2
    assert scheduler.constraints.allowed.shape[1] == 3


def test_a_task_that_fits_nowhere_is_refused_at_once() -> None:
    with pytest.raises(NoPlan, match="'t1' needs 9 B of memory, but no host has more than 8 B"):
        Coordinator(LHeft(), program_of(1.0, 9.0).graph, LAB)


class Stubborn:
    """Everything on the first host, whatever fits there."""

    name = "stubborn"
    wake = ON_GRID_CHANGES

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        return [Assign(task, "x", float(rank)) for rank, task in enumerate(view.graph.task_names)]


def test_a_scheduler_that_knows_no_constraints() -> None:
    """Its tasks wait for memory; a host that never has enough is an error."""
    run = simulate_scheduler(program_of(3.0, 3.0, 1.0).graph, LAB, Stubborn())
    assert run.makespan == 2.0
    with pytest.raises(NoPlan, match="'t1' was assigned to host 'x', which has too little memory"):
        simulate_scheduler(program_of(3.0, 5.0).graph, LAB, Stubborn())


def test_a_scheduler_object_is_told_anew_for_each_run() -> None:
    scheduler = LHeft()
    simulate_scheduler(program_of(3.0, 3.0, 5.0).graph, LAB, scheduler)
    assert scheduler.constraints is not None
    simulate_scheduler(program_of(0.0, 0.0).graph, LAB, scheduler)
    assert scheduler.constraints is None
