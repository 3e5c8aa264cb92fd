"""What each activity waited for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.model.events import TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.report.timeline import Timeline
from headrace.testing.generate import cases


def names(line: Timeline) -> dict[str, tuple[str, str]]:
    """What each activity waited for, by name; a transfer as `item>place`."""

    def name(i: int) -> str:
        one = line.activities[i]
        return one.name if one.is_task else f"{one.name}>{one.place}"

    return {
        name(i): (wait.kind, name(wait.before) if wait.before >= 0 else "")
        for i, wait in enumerate(line.waits)
    }


def test_inputs_transfers_and_hosts():
    program = hr.Program()
    a = program.task(None, name="a", work=4.0, outputs={"x": 1e6})
    program.task(None, name="b", work=4.0, outputs={"y": 1e6})
    program.task(None, name="c", inputs=[a], work=1.0)
    program.task(None, name="d", inputs=[a, "y"], work=1.0)
    plan = hr.plan(program, hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6), "heft")
    line = Timeline.of_plan(plan)
    found = names(line)
    assert found["a"] == found["b"] == ("", "")
    moves = [name for name in found if ">" in name]
    assert moves
    for move in moves:
        assert found[move] == ("input", {"x": "a", "y": "b"}[move.partition(">")[0]])
    assert {kind for kind, _ in found.values()} >= {"", "input", "transfer"}


def test_a_host_of_two_cores_is_waited_for_when_both_are_busy():
    program = hr.Program()
    for name, work in (("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 3.0)):
        program.task(None, name=name, work=work)
    plan = hr.plan(program, Platform((Site("s", (Host("h", cores=2),)),)), "heft")
    found = names(Timeline.of_plan(plan))
    later = [task for task in plan.tasks() if task.start > 0]
    assert len(later) == 2
    for task in later:
        kind, before = found[task.id]
        assert kind == "host"
        assert next(t.finish for t in plan.tasks() if t.id == before) == pytest.approx(task.start)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_waits_end_before_what_waited_and_paths_reach_the_start(seed: int):
    ((program, platform),) = cases(1, seed, tasks=15)
    plan = hr.plan(program, platform, "heft")
    line = Timeline.of_plan(plan)
    for i, wait in enumerate(line.waits):
        if wait.before >= 0:
            assert wait.before < i
            assert line.activities[wait.before].finish <= line.activities[i].start + 2 * line.slack
    path = line.critical_path()
    assert len(set(path)) == len(path)
    if line.activities:
        assert line.activities[path[0]].finish == pytest.approx(plan.makespan)
        # Nothing held the first activity of the path up: it could not have started earlier.
        assert line.waits[path[-1]].before == -1


def test_utilisation_counts_cores():
    program = hr.Program()
    program.task(None, name="wide", work=4.0, cores=2)
    program.task(None, name="narrow", work=4.0)
    platform = Platform((Site("lab", (Host("two", cores=2), Host("eight", cores=8), Host("idle")), 1e9),))
    done = [TaskFinished(6.0, "wide", "two", 2.0), TaskFinished(8.0, "narrow", "eight", 0.0)]
    line = Timeline.of_events(done, program.graph, platform)
    assert line.busy() == {"two": 2 * 4 / (2 * 8), "eight": 8 / (8 * 8)}
    assert line.utilisation() == (2 * 4 + 8) / ((2 + 8) * 8)
