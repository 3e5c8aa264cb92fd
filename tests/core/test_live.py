"""The coordinator of real runs: what it refuses, and what is compiled before the clock starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from headrace.core.live import LiveCoordinator, coordinator_for, warm_up

import headrace as hr
from headrace.core.scheduler import Assign
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.simulator.events.simulate import make_online


def program() -> hr.Program:
    made = hr.Program()
    for k in range(3):
        made.task(None, outputs=[f"x{k}"], work=1.0, name=f"t{k}")
    return made


class Own:
    """Everything to one host; counts how often it is asked."""

    name = "own"

    def __init__(self, host: str) -> None:
        self.host, self.asked = host, 0

    def react(self, state: Any, events: Sequence[Event]) -> list[Assign]:
        self.asked += 1
        return [Assign(name, self.host, k) for k, name in enumerate(state.graph.task_names)]


PLATFORM = hr.Platform.pairwise([1.0, 2.0], bandwidth=1e6)
FIRST, SECOND = (host.name for host in PLATFORM.hosts)


@pytest.mark.parametrize("name", ["lheft", "dheft", "workqueue", "minmin"])
def test_warming_up_leaves_the_scheduler_as_it_was(name: str) -> None:
    scheduler, same = make_online(name), make_online(name)
    warm_up(scheduler)  # type: ignore[arg-type]
    answers = [
        LiveCoordinator(s, program().graph, PLATFORM).handle([Started(0.0)]) for s in (scheduler, same)
    ]  # type: ignore[arg-type]
    assert answers[0] == answers[1]
    assert answers[0]


def test_schedulers_of_others_see_no_program_but_theirs() -> None:
    own = Own(FIRST)
    warm_up(own)
    assert own.asked == 0


def test_without_hosts_nothing_can_be_planned() -> None:
    coordinator = coordinator_for(Own(FIRST), program().graph, PLATFORM)
    coordinator.handle([Started(0.0)])
    coordinator.handle([HostLeft(1.0, FIRST)])
    with pytest.raises(NoPlan, match="no host is left"):
        coordinator.handle([HostLeft(2.0, SECOND)])
    assert coordinator.handle([TaskFinished(2.5, "t0", FIRST, 0.0)]) == []  # too late: it was lost
    assert coordinator.handle([HostJoined(3.0, FIRST)])


def test_hosts_that_nobody_knows_are_handed_on_to_be_refused() -> None:
    coordinator = coordinator_for(Own("nowhere"), program().graph, PLATFORM)
    assert {a.host for a in coordinator.handle([Started(0.0)])} == {"nowhere"}
