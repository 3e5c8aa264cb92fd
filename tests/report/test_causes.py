"""Cause chains: each kind of delay by hand, and delays planted in simulated runs."""

from __future__ import annotations

import pytest
from bench.causes import KINDS, planted

import headrace as hr
from headrace.model.events import DataMoved, Event, HostLeft, TaskFinished
from headrace.report.causes import Causes, Step

LAB = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)


def two_hosts() -> hr.plan:
    """a on h0, b beside it on h1; c reads x of a and y of b on one of them."""
    program = hr.Program()
    a = program.task(None, name="a", work=4.0, outputs={"x": 1e6})
    b = program.task(None, name="b", work=4.0, outputs={"y": 1e6})
    program.task(None, name="c", inputs=[a, b], work=2.0, outputs=["z"])
    return hr.plan(program, LAB, "heft")


PLAN = two_hosts()
HOST = {task.id: task.host for task in PLAN.tasks()}
OTHER = "b" if HOST["c"] == HOST["a"] else "a"
"""The task whose output is sent to the host of c."""
ITEM = {"a": "x", "b": "y"}[OTHER]
SAME = "a" if OTHER == "b" else "b"


def run(*events: Event) -> Causes:
    return Causes(PLAN, events)


def done(task: str, start: float, finish: float, host: str = "") -> TaskFinished:
    return TaskFinished(finish, task, host or HOST[task], start)


def moved(start: float, finish: float, size: float = 1e6) -> DataMoved:
    return DataMoved(finish, ITEM, HOST[OTHER], HOST["c"], start, size)


def root(causes: Causes, task: str = "c") -> Step:
    found = causes.root(task)
    assert found is not None
    return found


def test_the_plan_is_as_intended():
    assert HOST["a"] != HOST["b"]
    assert PLAN.makespan == pytest.approx(7.0)


def test_nothing_is_late_in_a_run_as_planned():
    causes = run(done("a", 0, 4), done("b", 0, 4), moved(4, 5), done("c", 5, 7))
    assert causes.causes == [None] * 4
    assert causes.chain("c") == []
    assert causes.root("c") is None


def test_a_long_task_is_the_root_through_its_transfer():
    causes = run(done(SAME, 0, 4), done(OTHER, 0, 9), moved(9, 10), done("c", 10, 12))
    steps = causes.chain("c")
    assert [step.reason for step in steps] == ["inherited", "inherited", "compute"]
    assert steps[-1].text == f"{OTHER} took 9 s on {HOST[OTHER]} instead of 4 s (2.2x)"
    assert steps[-1].seconds == pytest.approx(5.0)


def test_a_larger_item_and_a_slower_link_are_told_apart():
    larger = run(done("a", 0, 4), done("b", 0, 4), moved(4, 8, 4e6), done("c", 8, 10))
    slower = run(done("a", 0, 4), done("b", 0, 4), moved(4, 8), done("c", 8, 10))
    assert root(larger).reason == "size"
    assert root(larger).text.startswith(f"{ITEM} was 4 MB instead of 1 MB")
    assert root(slower).reason == "link"


def test_the_larger_of_two_delays_is_the_root():
    causes = run(done(SAME, 0, 4), done(OTHER, 0, 5), moved(5, 12), done("c", 12, 14))
    assert root(causes).reason == "link"
    assert [step.reason for step in causes.chain("c")] == ["inherited", "link"]


def test_a_delay_that_slack_absorbs_does_not_count():
    """The task beside is late too, but its output was there in time."""
    causes = run(done(SAME, 0, 5), done(OTHER, 0, 4), moved(4, 9), done("c", 9, 11))
    assert root(causes).reason == "link"


def test_an_idle_host_is_the_engines_overhead():
    causes = run(done("a", 0, 4), done("b", 0, 4), moved(4, 5), done("c", 8, 10))
    assert root(causes).reason == "overhead"


def test_a_host_that_left_is_the_root():
    gone, there = HOST["c"], HOST[OTHER]
    events = [
        done("a", 0, 4),
        done("b", 0, 4),
        HostLeft(4.5, gone),
        done(SAME, 5, 9, there),
        done("c", 9, 11, there),
    ]
    causes = run(*events)
    assert root(causes).reason == "fault"
    assert gone in root(causes).text
    assert "had run" in root(causes, SAME).text


@pytest.mark.parametrize("seed", range(8))
def test_planted_delays_are_found(seed: int):
    case = planted(seed, tasks=20)
    assert case.kind == KINDS[seed % 4]
    causes = Causes(case.plan, case.events)
    assert case.found_by(causes.root(case.last), causes)


@pytest.mark.slow
def test_nearly_all_planted_delays_are_found():
    found = 0
    for seed in range(200, 300):
        case = planted(seed)
        causes = Causes(case.plan, case.events)
        found += case.found_by(causes.root(case.last), causes)
    assert found >= 95
