"""Makespans by cause: exact sums, and each cause where it belongs."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.events import DataMoved, Event, HostLeft, Started, TaskFinished
from headrace.model.plan import Plan
from headrace.report.deviations import Deviations, deviations

LAB = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)


def two_tasks() -> hr.Program:
    program = hr.Program()
    first = program.task(None, name="a", work=2.0, outputs={"x": 1e6})
    program.task(None, name="b", inputs=[first], work=3.0, outputs=["y"])
    program.task(None, name="other", work=1.0, outputs=["z"])
    return program


def planned(program: hr.Program) -> Plan:
    return hr.plan(program, LAB, "single-host")


def split(*events: Event) -> Deviations:
    program = two_tasks()
    found = deviations(planned(program), [Started(0.0), *events], program.graph, LAB)
    assert found is not None
    assert found.happened.total == pytest.approx(max(e.time for e in events if isinstance(e, TaskFinished)))
    return found


def test_the_plan_itself_deviates_from_nothing():
    program = two_tasks()
    plan = planned(program)
    events = [TaskFinished(t.finish, t.id, t.host, t.start) for t in plan.tasks()]
    found = deviations(plan, events, program.graph, LAB)
    assert found is not None
    assert found.planned is not None
    assert found.planned.total == pytest.approx(plan.makespan)
    assert set(found.difference.values()) == {0.0}
    assert found.text() == "as planned"


def test_compute_and_late_estimates():
    found = split(TaskFinished(2.5, "a", "h0", 0.0), TaskFinished(5.0, "b", "h0", 2.5))
    assert (found.happened.compute, found.happened.estimate) == (4.5, 0.5)
    assert found.path == ("b", "a")


def test_a_transfer_and_its_wait_are_the_links():
    found = split(
        TaskFinished(2.0, "a", "h0", 0.0),
        DataMoved(4.0, "x", "h0", "h1", 2.5, 1e6),
        TaskFinished(7.0, "b", "h1", 4.0),
    )
    assert (found.happened.compute, found.happened.link) == (5.0, 2.0)
    assert "link +" in found.text()


def test_a_busy_host_is_a_queue_and_an_idle_one_overhead():
    found = split(
        TaskFinished(2.0, "a", "h0", 0.0),
        TaskFinished(3.0, "other", "h0", 2.0),
        TaskFinished(6.5, "b", "h0", 3.5),
    )
    assert (found.happened.queue, found.happened.overhead) == (1.0, 0.5)


def test_computing_again_after_a_loss_is_a_fault():
    found = split(
        TaskFinished(2.0, "a", "h0", 0.0),
        HostLeft(2.5, "h0"),
        TaskFinished(5.0, "a", "h1", 3.0),
        TaskFinished(8.0, "b", "h1", 5.0),
    )
    assert found.happened.fault == 3.0
    assert found.happened.compute == 5.0


def test_waiting_for_a_host_that_left_is_a_fault():
    program = two_tasks()
    plan = planned(program)
    host = next(t.host for t in plan.tasks() if t.id == "b")
    away = "h1" if host == "h0" else "h0"
    events = [
        TaskFinished(2.0, "a", away, 0.0),
        HostLeft(1.0, host),
        TaskFinished(6.0, "b", away, 3.0),
    ]
    found = deviations(plan, events, program.graph, LAB)
    assert found is not None
    assert found.happened.fault == 1.0


def test_without_a_plan_the_split_alone():
    program = two_tasks()
    events = [TaskFinished(2.0, "a", "h0", 0.0), TaskFinished(5.0, "b", "h0", 2.0)]
    found = deviations(None, events, program.graph, LAB)
    assert found is not None
    assert found.text() == "compute 5 s"
    assert found.facts()["planned"] is None
    assert deviations(None, [], program.graph, LAB) is None


@pytest.mark.parametrize(("sent", "link", "maker"), [(5.0, 1.0, "late"), (5.5, 4.0, "early")])
def test_an_item_that_waited_for_another_one(sent: float, link: float, maker: str):
    """An online scheduler sends inputs when the last one is made; a later start means that the link was busy."""
    program = hr.Program()
    items = [program.task(None, name=name, work=2.0, outputs={name[0]: 1e6}) for name in ("early", "late")]
    program.task(None, name="end", inputs=items, work=1.0)
    events = [
        TaskFinished(2.0, "early", "h1", 0.0),
        TaskFinished(5.0, "late", "h0", 3.0),
        DataMoved(6.0, "e", "h1", "h0", sent, 1e6),
        TaskFinished(7.0, "end", "h0", 6.0),
    ]
    found = deviations(None, events, program.graph, LAB)
    assert found is not None
    assert found.path == ("end", maker)
    assert found.happened.link == pytest.approx(link)
    assert found.happened.total == pytest.approx(7.0)
