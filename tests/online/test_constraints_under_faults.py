"""Runs under constraints with losses, joins, stealing and duplicates: they hold, or the run says which do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy, WhenImpossible
from headrace.model.behaviour import Change
from headrace.model.constraints import Constraints, Limit
from headrace.model.errors import NoPlan
from headrace.model.events import HostLeft, RuleDropped
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform
from headrace.online.adapter import accepted_policy, make_scheduler, obeying
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.simulator.events.trace import events_of
from headrace.testing.check_constraints import check_constraints
from headrace.testing.invariants import judge
from online.constrained_runs import ConstrainedRun, by_rule, constrained_run

POLICIES = {
    "heft": ReplanPolicy(),
    "sufferage": ReplanPolicy(events="S2"),
    "dheft": ReplanPolicy(planning=2.0),
    "lheft": ReplanPolicy(),
    "workqueue": ReplanPolicy(),
}
SEEDS = range(16)


def policy_of(name: str, when_impossible: WhenImpossible) -> ReplanPolicy:
    return replace(POLICIES[name], when_impossible=when_impossible)


def lost_by(case: ConstrainedRun, time: float) -> list[str]:
    return [change.name for change in case.changes if change.what == "host-down" and change.time <= time]


def outcome(case: ConstrainedRun) -> SimulatedRun | NoPlan:
    try:
        return case.go()
    except NoPlan as error:
        return error


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in ("heft", "sufferage") else []) for n in POLICIES],
)
def test_a_run_keeps_all_constraints_or_stops(name: str) -> None:
    stopped = 0
    for seed in SEEDS:
        case = constrained_run(name, seed, policy_of(name, "stop"))
        run = outcome(case)
        if isinstance(run, NoPlan):
            stopped += 1
            assert "cannot be kept any more at" in str(run), (seed, run)
            assert any(repr(host) in str(run) for host in lost_by(case, 1e9)), (seed, run)
            continue
        assert check_constraints(case.constraints, run.executed) == [], seed
        broken = judge(run, case.changes, real=case.real, duplicates=case.policy.duplicate)
        assert not broken, (seed, broken)
        assert run.notes == ()
    assert 0 < stopped < len(SEEDS) / 2


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_run_that_drops_rules_keeps_the_others(name: str) -> None:
    dropped = 0
    for seed in SEEDS:
        case = constrained_run(name, seed, policy_of(name, "drop"))
        run = case.go()
        gone = [event.rule for event in run.dropped]
        kept = [rule for rule in case.constraints.rules if rule not in gone]
        dropped += len(gone) > 0
        assert check_constraints(case.constraints.only(kept), run.executed) == [], seed
        for event in run.dropped:
            assert any(repr(host) in event.why for host in lost_by(case, event.time)), (seed, event)
    assert dropped > 0


# Two hosts, and tasks that must run on the second.


def tasks(count: int) -> Graph:
    return make_graph(
        work=[4.0] * count, size=[], producer=[], read_ptr=[0] * (count + 1), reads=[], name="alike"
    )


LAB = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
FIRST, SECOND = (host.name for host in LAB.hosts)


def on_second(count: int) -> Constraints:
    return by_rule(replace(Constraints.none(count, 2), allowed=np.array([[False, True]])))


def simulated(
    name: str,
    constraints: Constraints,
    changes: list[Change],
    when_impossible: WhenImpossible = "stop",
    policy: ExecutionPolicy | None = None,
) -> SimulatedRun:
    given = accepted_policy(name, policy_of(name, when_impossible))
    scheduler = obeying(make_scheduler(name, given), constraints)
    graph = tasks(len(constraints.together))
    return simulate_scheduler(graph, LAB, scheduler, changes=changes, policy=policy)


@pytest.mark.parametrize("name", list(POLICIES))
def test_the_error_names_the_rule_and_the_lost_host(name: str) -> None:
    with pytest.raises(
        NoPlan, match=f"rule 'allowed' cannot be kept any more at 5 s: host '{SECOND}' left at 5 s"
    ):
        simulated(name, on_second(4), [Change(5.0, "host-down", SECOND)])


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_dropped_rule_is_reported_and_recorded(name: str) -> None:
    run = simulated(name, on_second(4), [Change(5.0, "host-down", SECOND)], "drop")
    assert run.executed.host.tolist().count(0) == 3
    assert run.dropped == (RuleDropped(5.0, "allowed", f"host '{SECOND}' left at 5 s"),)
    assert run.notes == (f"rule 'allowed' left out at 5 s: host '{SECOND}' left at 5 s",)
    listed = list(events_of(run))
    assert listed.index(HostLeft(5.0, SECOND)) < listed.index(run.dropped[0])
    assert [line for line in run.log_lines() if "rule-dropped allowed" in line]


@pytest.mark.parametrize("name", list(POLICIES))
def test_constraints_not_known_by_rule_are_dropped_as_a_whole(name: str) -> None:
    whole = replace(on_second(3), of_rules=None, rules=())
    assert simulated(name, whole, [Change(5.0, "host-down", SECOND)], "drop").notes[0].startswith("rule 'the")


@pytest.mark.parametrize("name", list(POLICIES))
def test_tasks_wait_for_a_host_that_has_not_joined_yet(name: str) -> None:
    run = simulated(name, on_second(3), [Change(6.0, "host-up", SECOND)])
    assert run.executed.host.tolist() == [1, 1, 1]
    assert 6.0 <= run.executed.start.min() < 6.1
    assert run.plans < 10


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_loss_that_does_not_matter_stops_nothing(name: str) -> None:
    run = simulated(name, on_second(3), [Change(5.0, "host-down", FIRST)])
    assert run.executed.host.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", list(POLICIES))
def test_tasks_together_follow_those_that_have_finished(name: str) -> None:
    """After the first of them has run on a host that leaves, the others cannot join it."""
    together = by_rule(replace(Constraints.none(3, 2), together=np.zeros(3, np.int32)))
    host = int(simulated(name, together, []).executed.host[0])
    lost = LAB.hosts[host].name
    with pytest.raises(
        NoPlan, match=f"rule 'together' cannot be kept any more at 5 s: host '{lost}' left at 5 s"
    ):
        simulated(name, together, [Change(5.0, "host-down", lost)])


@pytest.mark.parametrize("name", list(POLICIES))
def test_at_most_one_at_once(name: str) -> None:
    limit = Limit(np.ones(6, np.bool_), np.ones(2, np.bool_), at_once=1.0, rule="one")
    constraints = by_rule(replace(Constraints.none(6, 2), limits=(limit,)))
    run = simulated(name, constraints, [Change(5.0, "host-down", FIRST), Change(9.0, "host-up", FIRST)])
    assert check_constraints(constraints, run.executed) == []
