"""Every scheduler that decides while a program runs keeps the contract, and so do planners that are carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from headrace.core.scheduler import EVERY_EVENT, Assign, Planner, Scheduler
from headrace.core.view import RunView
from headrace.model.errors import NoPlan
from headrace.model.events import Event
from headrace.online.adapter import is_scheduler, make_scheduler
from headrace.planners.registry import make, names
from headrace.testing.conformance import check_scheduler
from headrace.testing.wild import Wild

ONLINE = [name for name in names() if is_scheduler(make(name))]
PLANNERS = ["heft", "cpop", "peft", "locality", "minmin", "xsufferage", "round-robin", "subset"]


def test_the_online_schedulers_are_these() -> None:
    assert sorted(ONLINE) == ["dheft", "lheft", "workqueue"]


@pytest.mark.parametrize("name", [*ONLINE, *PLANNERS])
def test_scheduler_conforms(name: str) -> None:
    check_scheduler(lambda: make_scheduler(name), cases=60)


@pytest.mark.parametrize("name", ["heft", "minmin"])
def test_a_planner_as_it_is_conforms(name: str) -> None:
    check_scheduler(lambda: make(name), cases=12, seed=7)


def test_a_scheduler_that_decides_at_random_conforms() -> None:
    check_scheduler(lambda: Wild(3), cases=60)


class Drawn:
    """Another host each time: not the same when it is repeated."""

    name = "drawn"
    wake = EVERY_EVENT
    rng = np.random.default_rng(0)

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        hosts = [host.name for host in view.platform.hosts if host.name not in view.down]
        names = view.graph.task_names
        return [Assign(names[t], str(self.rng.choice(hosts)), t) for t in view.ready().tolist()]


class Idle:
    """Never places anything."""

    name = "idle"
    wake = EVERY_EVENT

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        return []


@pytest.mark.parametrize(
    ("broken", "error", "said"),
    [(Drawn, AssertionError, "a repeated run differs"), (Idle, NoPlan, "nothing more can happen")],
)
def test_the_suite_finds_a_scheduler_that_breaks_the_rules(
    broken: Callable[[], Scheduler | Planner], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        check_scheduler(broken, cases=20)
