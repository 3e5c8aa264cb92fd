"""What the engine takes for tasks and transfers: found among other pauses, and part of a platform."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.predict.overheads import Overheads, overheads, with_task_overhead, with_transfer_overhead

LAB = Platform.pairwise([1.0, 1.0], bandwidth=1e6)


def pairs(n: int) -> Graph:
    """Tasks t0, t2, ... make an item that the next one reads."""
    return make_graph(
        work=[1.0] * (2 * n),
        size=[1e3] * n,
        producer=list(range(0, 2 * n, 2)),
        read_ptr=[k // 2 for k in range(2 * n + 1)],
        reads=list(range(n)),
    )


def run_of(graph: Graph, pause: float, delay: float, odd: float = 0.0) -> list[Event]:
    """Makers on h0, readers on h1; a transfer takes 0.2 s. The first pause and delay are longer by `odd`."""
    events: list[Event] = []
    at = 0.0
    for k in range(graph.n_tasks // 2):
        made = at + 1.0
        events.append(TaskFinished(made, f"t{2 * k}", "h0", at))
        sent = made + delay + (odd if k == 1 else 0.0)
        events.append(DataMoved(sent + 0.2, graph.item_names[k], "h0", "h1", sent, 1e3))
        begun = sent + 0.2 + pause + (odd if k == 1 else 0.0)
        events.append(TaskFinished(begun + 0.1, f"t{2 * k + 1}", "h1", begun))
        at = made + pause
    return events


@pytest.mark.parametrize("odd", [0.0, 0.5])
def test_typical_pauses_are_found(odd):
    graph = pairs(9)
    found = overheads(graph, LAB, run_of(graph, 0.01, 0.03, odd))
    assert found.task == pytest.approx(0.01)
    assert found.transfer == pytest.approx(0.03)
    mean = overheads(graph, LAB, run_of(graph, 0.01, 0.03, odd), typical=False)
    assert mean.transfer == pytest.approx(0.03 + odd / 9)


def test_few_tasks_tell_nothing():
    graph = pairs(2)
    assert overheads(graph, LAB, run_of(graph, 0.01, 0.03)) == Overheads()
    assert overheads(graph, LAB, []) == Overheads()


def test_a_host_with_a_free_core_does_not_pause():
    graph = make_graph(work=[1.0] * 12, size=[], producer=[], read_ptr=[0] * 13, reads=[])
    wide = Platform((Site("s", (Host("h0", cores=2),), bandwidth=1e6),))
    events = [TaskFinished(k // 2 * 1.5 + 1.0, f"t{k}", "h0", k // 2 * 1.5) for k in range(12)]
    assert overheads(graph, wide, events).task == pytest.approx(0.5)
    alone = [TaskFinished(k * 3.0 + 1.0, f"t{k}", "h0", k * 3.0) for k in range(5)]
    assert overheads(graph, wide, alone).task == 0.0


def test_tasks_take_longer_by_the_same_time_on_every_host():
    graph = make_graph(
        work=[1.0, 3.0, 8.0],
        size=[],
        producer=[],
        read_ptr=[0] * 4,
        reads=[],
        kind=[0, 0, 1],
        kinds=("a", "b"),
    )
    lab = Platform((Site("s", (Host("x", 4.0), Host("y", 1.0, load=0.5, kinds={"b": 2.0})), bandwidth=1e6),))
    before, after = (2.0 / p.rates(graph)[0] for p in (lab, with_task_overhead(graph, lab, 0.25)))
    np.testing.assert_allclose(after - before, 0.25)
    before, after = (8.0 / p.rates(graph)[1] for p in (lab, with_task_overhead(graph, lab, 0.25)))
    np.testing.assert_allclose(after - before, 0.25)
    assert with_task_overhead(graph, lab, 0.0) is lab


@pytest.mark.parametrize("platform", [LAB, Platform.local(2)])
def test_transfers_take_longer(platform):
    later = with_transfer_overhead(platform, 0.5)
    assert later.network.seconds(0, 1, 1e6) - platform.network.seconds(0, 1, 1e6) == pytest.approx(0.5)
