"""Why a simulated run took as long as it did, against cases computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, TaskFinished
from headrace.report.deviations import Deviations, Split
from headrace.report.explain_run import Explanation, explain, explain_plan, explain_simulated
from headrace.report.interruptions import Stopped
from headrace.testing import random_platform, random_program


def two_hosts(contention: str = "fifo") -> hr.Platform:
    sites = [hr.Site("s", [hr.Host("a"), hr.Host("b")], bandwidth="1 MB/s")]
    return hr.Platform(sites, contention=contention)  # type: ignore[arg-type]


def test_a_transfer_and_a_busy_host() -> None:
    """On one host, two tasks in turn; the second waits for the first."""
    program = hr.Program("turn")
    program.task(None, name="x", work=2.0)
    program.task(None, name="y", work=3.0)
    lab = hr.Platform.pairwise([1.0], bandwidth=1e6)
    found = explain_plan(hr.plan(program, lab, "heft"))
    assert found is not None
    assert found.utilisation == pytest.approx(1.0)
    assert found.busiest == ("h0", pytest.approx(1.0))
    assert found.waiting["link"] == 0.0
    assert found.waiting["queue"] in (pytest.approx(2.0), pytest.approx(3.0))  # whichever is second
    assert found.limit.startswith("a path of 1 task to ")


def test_waiting_for_an_input() -> None:
    program = hr.Program("move")
    lab = two_hosts()
    made = program.task(None, name="x", work=1.0, outputs={"d": "2 MB"})
    program.task(None, name="y", work=1.0, inputs=[made])
    third = program.task(None, name="z", work=1.0, inputs=[made])
    assert third.name == "z.done"
    plan = hr.plan(program, lab, "round-robin")
    found = explain_plan(plan)
    assert found is not None
    (move,) = plan.transfers()  # to the task on the other host
    assert found.waiting["link"] == pytest.approx(move.finish - move.start)
    assert found.split.happened.link == pytest.approx(2.0)
    assert found.split.happened.compute == pytest.approx(2.0)


def test_late_estimates_and_faults_are_told_apart() -> None:
    program = hr.Program("chain")
    item = program.task(None, name="t0", work=4.0, outputs={"d0": 1})
    for n in range(1, 5):
        item = program.task(None, name=f"t{n}", work=4.0, inputs=[item], outputs={f"d{n}": 1})
    lab = two_hosts()
    late = hr.simulate(program, lab, "heft", hr.SimulationConfig(error=0.5), seed=3)
    found = explain_simulated(late)
    assert found is not None
    assert found.split.happened.total == pytest.approx(late.makespan)
    assert found.split.happened.estimate > 0
    assert found.split.path == ("t4", "t3", "t2", "t1", "t0")
    killed = hr.simulate(program, lab, "heft", hr.SimulationConfig(faults="kill=a@6+100"))
    told = explain_simulated(killed)
    assert told is not None
    if killed.redone:
        assert told.split.happened.fault > 0
        assert "faults" in told.limit
        assert told.waiting["fault"] > 0


def test_waiting_behind_a_task_that_takes_longer_than_estimated() -> None:
    """y is ready at 0 and waits for x, which takes 5 s instead of 2."""
    program = hr.Program("late")
    program.task(None, name="x", work=2.0)
    program.task(None, name="y", work=1.0)
    lab = hr.Platform.pairwise([1.0], bandwidth=1e6)
    events: list[Event] = [TaskFinished(5.0, "x", "h0", 0.0), TaskFinished(6.0, "y", "h0", 5.0)]
    found = explain(events, program.graph, lab, 6.0)
    assert found is not None
    assert found.waiting == {
        "input": 0.0,
        "link": 0.0,
        "queue": 2.0,
        "estimate": 3.0,
        "order": 0.0,
        "fault": 0.0,
        "other": 0.0,
    }
    assert ["tasks waited for", "busy hosts 2 s, late estimates 3 s"] in found.rows()


def test_waiting_because_an_execution_was_stopped() -> None:
    """x runs on b until that leaves at 4; a runs y until 5, then x."""
    program = hr.Program("again")
    program.task(None, name="x", work=6.0)
    program.task(None, name="y", work=5.0)
    events: list[Event] = [
        HostLeft(4.0, "b"),
        TaskFinished(5.0, "y", "a", 0.0),
        TaskFinished(11.0, "x", "a", 5.0),
    ]
    found = explain(events, program.graph, two_hosts(), 11.0, [Stopped(4.0, "x", "b", 0.0)])
    assert found is not None
    assert found.waiting == {
        "input": 0.0,
        "link": 0.0,
        "queue": 1.0,
        "estimate": 0.0,
        "order": 0.0,
        "fault": 4.0,
        "other": 0.0,
    }


def test_waiting_for_those_that_come_first_and_for_a_host_that_leaves() -> None:
    """y waits on an idle host for x, whose input comes at 3 s; z starts there when another host has left at 7 s."""
    program = hr.Program("order")
    program.input("file", size=3.0)
    program.task(None, inputs=["file"], name="x", work=1.0)
    program.task(None, name="y", work=1.0)
    program.task(None, name="z", work=1.0)
    events: list[Event] = [
        DataMoved(3.0, "file", "b", "a", 2.0, 3.0),
        TaskFinished(4.0, "x", "a", 3.0),
        TaskFinished(5.0, "y", "a", 4.0),
        HostLeft(7.0, "b"),
        TaskFinished(8.0, "z", "a", 7.0),
    ]
    found = explain(events, program.graph, two_hosts(), 8.0)
    assert found is not None
    assert found.waiting == {
        "input": 0.0,
        "link": 3.0,
        "queue": 3.0,
        "estimate": 0.0,
        "order": 6.0,
        "fault": 2.0,
        "other": 0.0,
    }


def test_inputs_from_outside_wait_for_transfers_from_the_beginning() -> None:
    program = hr.Program("outside")
    for name in "ab":
        program.input(f"{name}.in", size=3e6)
        program.task(None, inputs=[f"{name}.in"], name=name, work=1.0)
    sites = [hr.Site("home"), hr.Site("s", [hr.Host("h")])]
    lab = hr.Platform(sites, [hr.Link("home", "s", "1 MB/s")], origin="home", contention="fifo")
    found = explain_simulated(hr.simulate(program, lab, "heft"))
    assert found is not None
    assert found.limit.endswith("transfers 86%, running tasks 14%")


def test_results_on_their_way_count_as_transfers() -> None:
    program = hr.Program("result")
    program.output(program.task(None, name="x", work=1.0, outputs={"r": "3 MB"}))
    sites = [hr.Site("home"), hr.Site("s", [hr.Host("a")])]
    lab = hr.Platform(sites, [hr.Link("home", "s", "1 MB/s")], origin="home")
    found = explain_simulated(hr.simulate(program, lab, "heft"))
    assert found is not None
    assert found.split.happened.link == pytest.approx(3.0)
    assert found.limit == "a path of 1 task to 'x': sending results 75%, running tasks 25%"
    assert found.facts()["utilisation"] == pytest.approx(0.25)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_the_parts_add_up(seed: int) -> None:
    program, platform = random_program(seed), random_platform(seed)
    run = hr.simulate(program, platform, "heft", seed=seed)
    found = explain_simulated(run)
    assert found is not None
    assert found.split.happened.total == pytest.approx(run.makespan)
    assert 0 <= found.utilisation <= 1 + 1e-9
    assert all(seconds >= -1e-9 for seconds in found.waiting.values())


def test_nothing_ran() -> None:
    program = hr.Program("x")
    program.task(None, name="a")
    assert explain([], program.graph, two_hosts(), 0.0) is None


def test_a_stopped_execution_on_the_path_is_a_fault() -> None:
    program = hr.Program("stopped")
    program.task(None, name="x", work=10.0)
    lab = hr.Platform([hr.Site("s", [hr.Host("a", speed=2.0), hr.Host("b")])])
    run = hr.simulate(program, lab, "heft", hr.SimulationConfig(faults="kill=a@3+1000"))
    found = explain_simulated(run)
    assert found is not None
    assert run.makespan == pytest.approx(13.0)
    assert found.split.happened.fault == pytest.approx(3.0)
    assert found.waiting["fault"] == pytest.approx(3.0)
    assert found.limit == "a path of 1 task to 'x': running tasks 77%, faults 23%"


def test_a_transfer_that_is_cut_off_is_a_fault_until_it_is_sent_again() -> None:
    """The item is sent at 1 s, cut off at 4 s and sent again at 12 s; it takes 10 s."""
    program = hr.Program("cut")
    item = program.task(None, name="x", work=2.0, kind="near", outputs={"d": "100 MB"})
    program.task(None, name="y", work=20.0, kind="far", inputs=[item])
    sites = [
        hr.Site("s", [hr.Host("a", kinds={"near": 2.0, "far": 0.1})], uplink="10 MB/s"),
        hr.Site("t", [hr.Host("b", kinds={"near": 0.1, "far": 2.0})], uplink="10 MB/s"),
    ]
    run = hr.simulate(program, hr.Platform(sites), "heft", hr.SimulationConfig(faults="link=s@4+8"))
    found = explain_simulated(run)
    assert found is not None
    assert (found.waiting["link"], found.waiting["fault"]) == (pytest.approx(10.0), pytest.approx(11.0))
    assert found.split.happened.link == pytest.approx(10.0)
    assert found.split.happened.fault == pytest.approx(11.0)


def test_a_host_that_is_away_is_a_fault_for_the_tasks_that_wait_for_it() -> None:
    """Without another host, x is stopped at 2 s and starts again at 7 s, when its host is back."""
    program = hr.Program("away")
    program.task(None, name="x", work=6.0)
    events: list[Event] = [HostLeft(2.0, "a"), HostJoined(7.0, "a"), TaskFinished(13.0, "x", "a", 7.0)]
    stopped = [Stopped(2.0, "x", "a", 0.0)]
    found = explain(events, program.graph, two_hosts(), 13.0, stopped)
    assert found is not None
    assert found.waiting["fault"] == pytest.approx(7.0)
    assert found.split.happened.fault == pytest.approx(7.0)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_the_parts_add_up_when_hosts_fail(seed: int) -> None:
    program, platform = random_program(seed), random_platform(seed)
    faults = "kill=1@30%+20%,slow=1*0.5@10%"
    run = hr.simulate(program, platform, "heft", hr.SimulationConfig(error=0.3, faults=faults), seed=seed)
    found = explain_simulated(run)
    assert found is not None
    assert found.split.happened.total == pytest.approx(run.makespan)
    assert all(seconds >= -1e-9 for seconds in found.waiting.values())
    starts = run.to_pandas().groupby("task").start.max()
    assert sum(found.waiting.values()) == pytest.approx(starts.sum())


def test_rounding_is_no_cause() -> None:
    found = Explanation(1.0, ("a", 1.0), {"queue": 1.0, "order": 1e-14}, Deviations(None, Split(1.0)), "x")
    assert ["tasks waited for", "busy hosts 1 s"] in found.rows()
