"""Faults as a user writes them: odd values are refused, and a run that cannot go on ends with a reason."""

from __future__ import annotations

import pytest

from headrace.core.replan_policy import ReplanPolicy
from headrace.model.errors import NoPlan, UsageError
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.simulator.events.faults import parse_faults
from headrace.simulator.events.simulate import SimulationConfig, planned_makespan, simulate_program

LAB = Platform.pairwise([1.0, 1.0, 1.0], bandwidth=1e6)


def tasks(count: int) -> Program:
    program = Program("tasks")
    for _ in range(count):
        program.task(None, work=10.0)
    return program


@pytest.mark.parametrize(
    "text",
    [
        "kill=h1@nan",
        "kill=h1@1e400",
        "kill=h1@e",
        "kill=h1@-5",
        "kill=h1@5+1e999",
        "slow=h1*1e@5",
        "slow=h1*.@5",
        "slow=h1*1.5@5",
        "slow=h1@5",
        "kill=h1*0.5@5",
        "kill=nobody@5",
        "kill=4@5",
        "kill@5",
        "explode=h1@5",
        "cluster=h1@5",
        "link=h1@5",
    ],
)
def test_bad_faults_are_one_error(text: str) -> None:
    with pytest.raises(UsageError, match="--faults"):
        parse_faults(text, LAB, planned=100.0)


def test_a_host_that_joins_for_a_while_leaves_again() -> None:
    changes = parse_faults("join=h1@10+5", LAB, planned=100.0)
    assert [(c.time, c.what) for c in changes] == [(10.0, "host-up"), (15.0, "host-down")]
    few = simulate_program(tasks(9), LAB, "minmin", SimulationConfig(faults="join=h1@10+10"))
    many = simulate_program(tasks(9), LAB, "minmin", SimulationConfig(faults="join=h1@10"))
    assert (few.makespan, many.makespan) == (40.0, 40.0)
    assert [line for line in few.log_lines() if "h1" in line and "left" in line]


@pytest.mark.parametrize("scheduler", ["minmin", "auto", "dheft", "lheft", "workqueue"])
@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
def test_a_host_that_stands_still_for_good_ends_the_run(scheduler: str, contention: str) -> None:
    lab = Platform.pairwise([1.0, 1.0], bandwidth=1e6, contention=contention)
    with pytest.raises(NoPlan, match="nothing more can happen"):
        simulate_program(tasks(6), lab, scheduler, SimulationConfig(faults="slow=h1*0@5"))


def test_a_host_that_stands_still_for_a_while_does_not() -> None:
    setting = SimulationConfig(ReplanPolicy(interval=1.0), faults="slow=h1*0@5+500")
    assert simulate_program(tasks(6), LAB, "minmin", setting).makespan >= 505.0


def test_all_hosts_leave() -> None:
    for scheduler in ("minmin", "dheft", "lheft", "workqueue"):
        with pytest.raises(NoPlan, match="with 6 of 6 tasks not done"):
            simulate_program(tasks(6), LAB, scheduler, SimulationConfig(faults="kill=3@5"))
        back = simulate_program(tasks(6), LAB, scheduler, SimulationConfig(faults="kill=3@5+20"))
        assert back.makespan == 45.0


def test_several_faults_at_one_time() -> None:
    faults = "kill=h1@5,kill=h1@5,slow=h2*0.5@5,slow=h2*1@5,join=h0@5"
    run = simulate_program(tasks(4), LAB, "workqueue", SimulationConfig(faults=faults))
    assert run.makespan == 25.0


def test_shares_of_time_need_a_plan_and_seconds_do_not() -> None:
    assert planned_makespan(tasks(6), LAB, "kill=1@50%", "minmin") == 20.0
    assert planned_makespan(tasks(6), LAB, "kill=1@50%", "lheft") == 20.0
    assert planned_makespan(tasks(6), LAB, "kill=1@5", "best") == 0.0
    known = SimulationConfig(faults="kill=h1@50%", planned=8.0)
    left = [line for line in simulate_program(tasks(6), LAB, "minmin", known).log_lines() if "left" in line]
    assert [float(line.split()[0]) for line in left] == [4.0]
