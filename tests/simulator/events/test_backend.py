"""The simulated grid keeps the contract of a back end, as local workers and Dask clusters do."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.core.scheduler import Scheduler
from headrace.model.behaviour import Change
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.platform import CONTENTIONS, Contention, Platform
from headrace.online.lheft import LHeft
from headrace.simulator.events.backend import SimulatedGrid
from headrace.testing.conformance import check_backend
from headrace.testing.generate import NETWORKS, NetworkKind, random_platform


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("contention", CONTENTIONS)
def test_the_simulated_grid_conforms(network: NetworkKind, contention: Contention) -> None:
    check_backend(SimulatedGrid(random_platform(5, network, contention=contention, hosts=4)))


def chain() -> hr.Program:
    program = hr.Program()
    first = program.task(None, name="first", outputs={"x": 10.0}, work=4.0)
    program.task(None, name="second", inputs=[first], work=4.0)
    return program


def test_it_reports_what_a_real_back_end_would() -> None:
    heard: list[Event] = []
    changes = [Change(1.0, "host-down", "h0"), Change(3.0, "host-up", "h0")]
    grid = SimulatedGrid(Platform.pairwise([1.0, 0.5], bandwidth=10.0), changes)
    outcome = grid.execute(chain(), LHeft(), heard.append)
    assert tuple(heard) == outcome.events
    assert heard[0] == Started(0.0)
    assert [e for e in heard if isinstance(e, HostLeft | HostJoined)] == [
        HostLeft(1.0, "h0"),
        HostJoined(3.0, "h0"),
    ]
    assert {e.task for e in heard if isinstance(e, TaskFinished)} == {"first", "second"}
    assert [e.time for e in heard] == sorted(e.time for e in heard)
    assert outcome.makespan == heard[-1].time
    assert outcome.results == {}


def test_transfers_are_reported_with_their_sizes() -> None:
    sized = hr.Program()
    first = sized.task(None, name="first", outputs={"x": 10.0}, work=1.0)
    for k in range(2):
        sized.task(None, name=f"t{k}", inputs=[first], work=50.0)
    outcome = SimulatedGrid(Platform.pairwise([1.0, 1.0], bandwidth=10.0)).execute(
        sized, LHeft(), lambda event: None
    )
    moves = [e for e in outcome.events if isinstance(e, DataMoved)]
    assert [(e.item, e.size, e.time - e.start) for e in moves] == [("x", 10.0, 1.0)]


def test_a_grid_without_a_scheduler_is_refused() -> None:
    scheduler: Scheduler | None = None
    with pytest.raises(UsageError, match="needs a scheduler"):
        SimulatedGrid(Platform.pairwise([1.0], bandwidth=1.0)).execute(chain(), scheduler, print)
