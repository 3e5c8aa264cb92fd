"""Runs under constraints with losses, joins, stealing and duplicates: constraints hold, or the run says which cannot."""

from __future__ import annotations

import pytest

from headrace.core.replan_policy import ReplanPolicy
from headrace.model.errors import NoPlan
from headrace.testing.check_constraints import check_constraints
from headrace.testing.invariants import judge
from online.constrained_runs import ConstrainedRun, constrained_run

POLICIES = {
    "heft": ReplanPolicy(),
    "sufferage": ReplanPolicy(events="S2", interval=4.0),
    "dheft": ReplanPolicy(planning=2.0),
    "lheft": ReplanPolicy(),
    "workqueue": ReplanPolicy(),
}
SEEDS = range(24)


def policy_of(name: str, when_impossible: str) -> ReplanPolicy:
    from dataclasses import replace

    return replace(POLICIES[name], when_impossible=when_impossible)  # type: ignore[arg-type]


def lost_by(case: ConstrainedRun, time: float) -> list[str]:
    return [change.name for change in case.changes if change.what == "host-down" and change.time <= time]


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_run_keeps_all_constraints_or_stops(name: str) -> None:
    stopped = 0
    for seed in SEEDS:
        case = constrained_run(name, seed, policy_of(name, "stop"))
        try:
            run = case.go()
        except NoPlan as error:
            stopped += 1
            assert "cannot be kept any more at" in str(error), (seed, error)
            assert any(repr(host) in str(error) for host in lost_by(case, 1e9)), (seed, error)
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
        gone = [each.rule for each in case.scheduler.dropped]  # type: ignore[attr-defined]
        kept = [rule for rule in case.constraints.rules if rule not in gone]
        dropped += len(gone) > 0
        assert check_constraints(case.constraints.only(kept), run.executed) == [], seed
        assert len(run.notes) == len(gone)
        for each in case.scheduler.dropped:  # type: ignore[attr-defined]
            assert any(repr(host) in each.why for host in lost_by(case, each.time)), (seed, each)
    assert dropped > 0
