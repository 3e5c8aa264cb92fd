"""Queues of links: what goes first when an output that was planned first is not ready yet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import ON_GRID_CHANGES, Assign, Command, Fetch
from headrace.model.events import Event
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.invariants import judge

GRID = Platform(
    (Site("home"), Site("c", tuple(Host(f"h{k}") for k in range(3)), uplink=10.0)),
    contention="fifo",
    origin="home",
)


class OutputFirst:
    """What task 0 makes is to return before the input of task 1 is sent over the only link."""

    name = "output-first"
    wake = ON_GRID_CHANGES

    def react(self, view: object, events: Sequence[Event]) -> list[Command]:
        return [
            *(Assign(f"t{k}", f"h{k}", k) for k in range(3)),
            Fetch("d1", "c", "home", 1.0),
            Fetch("d0", "home", "c", 2.0),
        ]


def graph(first: float, third: float = 1.0) -> Graph:
    """t0 makes 10 bytes, t1 reads 100 from home, t2 has nothing to do with either."""
    return make_graph(
        work=[first, 5.0, third],
        size=[100.0, 10.0],
        producer=[-1, 0],
        read_ptr=[0, 0, 1, 1],
        reads=[0],
        result=[False, True],
    )


def sent(estimated: Graph, real: Graph | None, order: str) -> dict[str, float]:
    """When each item began to move."""
    run = simulate_scheduler(
        estimated, GRID, OutputFirst(), real=real, policy=ExecutionPolicy(link_order=order, routes="nearest")
    )
    assert judge(run, real=real) == []
    lines = [line.split() for line in run.log_lines()]
    return {rest[0]: float(time) for time, what, *rest in lines if what == "send"}


@pytest.mark.parametrize(
    ("first", "order", "starts"),
    [
        (4.0, "in-order", {"d1": 4.0, "d0": 5.0}),
        (4.0, "out-of-order", {"d0": 0.0, "d1": 10.0}),
        (4.0, "hybrid", {"d1": 4.0, "d0": 5.0}),  # due in 4 s, the input would take 10
        (12.0, "in-order", {"d1": 12.0, "d0": 13.0}),
        (12.0, "hybrid", {"d0": 0.0, "d1": 12.0}),  # due in 12 s: too long to wait
    ],
)
def test_an_input_behind_an_output_that_is_not_ready(
    first: float, order: str, starts: dict[str, float]
) -> None:
    assert sent(graph(first), None, order) == pytest.approx(starts)


def test_hybrid_queues_do_not_wait_for_what_is_late() -> None:
    """t0 was to end after 4 s and takes 40; when t2 ends after 6 s, the link looks again."""
    estimated, real = graph(4.0, 6.0), graph(40.0, 6.0)
    assert sent(estimated, real, "hybrid") == pytest.approx({"d0": 6.0, "d1": 40.0})
    assert sent(estimated, real, "in-order") == pytest.approx({"d1": 40.0, "d0": 41.0})
