"""Runs on grids that go wrong, under every scheduler: nothing may be lost, done twice, or done where it cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.core.replan import Replan
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.platform import Platform
from headrace.online.lheft import LHeft
from headrace.online.workqueue import Workqueue
from headrace.planners.list.heft import Heft
from headrace.simulator.events import grid_state as w
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.fault_runs import ALONE, SCHEDULERS, fault_case, run_case, violations_of
from headrace.testing.faults import PROFILES, Profile, faults
from headrace.testing.generate import NETWORKS, cases, random_platform
from headrace.testing.invariants import judge
from headrace.testing.wild import Wild
from simulator.planted import bugs


@pytest.mark.parametrize("profile", PROFILES)
def test_no_rule_is_broken(profile: Profile) -> None:
    for seed in range(5000, 5045):
        case = fault_case(seed, profile)
        assert violations_of(case) == [], f"{profile}, {case}"


@pytest.mark.parametrize("name", SCHEDULERS)
def test_no_rule_is_broken_by_any_scheduler(name: str) -> None:
    for seed in range(7000, 7024):
        case = fault_case(seed, PROFILES[seed % 8], [name])
        assert violations_of(case) == [], f"{PROFILES[seed % 8]}, {case}"


def test_seeds_that_show_planted_bugs_are_clean_without_them() -> None:
    for bug in bugs():
        case = fault_case(bug.seed, PROFILES[bug.seed % 8], ALONE)
        assert violations_of(case) == [], f"{bug.name}, {case}"


@pytest.mark.parametrize("make", [Workqueue, lambda: Replan(Heft()), LHeft, lambda: Wild(1)])
def test_what_happens_on_a_steady_grid_is_a_valid_plan(make) -> None:  # type: ignore[no-untyped-def]
    """The judge of plans, which knows nothing of simulated runs, agrees."""
    for program, platform in cases(45, seed=8):
        run = simulate_scheduler(program.graph, platform, make())
        assert judge(run) == []
        under_way = (run.log_kind == w.MOVE_STARTED).sum() > (run.log_kind == w.MOVE_ENDED).sum()
        if not (under_way and platform.contention == "fair"):  # a plan has no transfers that never arrive
            assert check(program.graph, platform, replace(run.executed, bound=0.0)) == []


def test_the_profiles_do_what_they_say() -> None:
    """Each leaves its marks in the logs, and a host is always left."""
    marks: dict[Profile, int] = {
        "crash": w.HOST_LEFT,
        "slow-down": w.CHANGED,
        "join": w.HOST_JOINED,
        "cluster-loss": w.STORAGE_LEFT,
        "link-loss": w.LINK_LEFT,
        "double-fault": w.TASK_STOPPED,
        "flapping": w.HOST_JOINED,
        "slow-planning": w.HOST_LEFT,
    }
    for profile, kind in marks.items():
        runs = [
            run_case(fault_case(seed, profile, ["workqueue"])) for seed in (7, 12, 26, 31, 44, 45, 51, 53)
        ]
        assert any((run.log_kind == kind).any() for run in runs), profile


@pytest.mark.parametrize("profile", PROFILES)
def test_a_host_lives_and_links_are_up_in_the_end(profile: Profile) -> None:
    for seed in range(200):
        platform = random_platform(seed, NETWORKS[seed % 5], hosts=1 + seed % 6, origin="host")
        changes = faults(platform, profile, seed, horizon=100.0)
        assert [c.time for c in changes] == sorted(c.time for c in changes)
        last = {c.name: c.what for c in changes if not c.what.endswith("trace")}
        assert any(last.get(host.name) != "host-down" for host in platform.hosts)
        if profile == "link-loss":
            assert all(what == "link-up" for what in last.values())


@pytest.mark.slow
def test_everything_the_coordinator_can_do_is_done() -> None:
    """Among the runs there are repeated executions, stolen tasks, copies, replicas, dropped and cut data."""
    redone = stolen = copied = replicas = 0
    kinds: set[int] = set()
    for seed in range(800):
        case = fault_case(seed // 8, PROFILES[seed % 8], ALONE)
        try:
            run = run_case(case)
        except NoPlan:
            assert case.tight
            continue
        redone, stolen = redone + run.redone, stolen + run.stolen
        copied, replicas = copied + run.duplicates, replicas + run.replicas
        kinds |= set(run.log_kind.tolist())
    assert min(redone, stolen, copied, replicas) > 0
    assert {w.TASK_STOPPED, w.MOVE_CUT, w.STORAGE_LEFT, w.STORAGE_JOINED, w.COPY_DROPPED} <= kinds


def test_a_long_log_is_lengthened_on_the_way() -> None:
    """A host that comes and goes a thousand times leaves more lines than there was room for."""
    program, _ = next(iter(cases(1, seed=3, tasks=4)))
    graph = program.graph
    platform = Platform.pairwise([1.0, 1.0], 1e6)
    flaps = [Change(0.001 * k, "host-up" if k % 2 else "host-down", "h0") for k in range(1, 2001)]
    run = simulate_scheduler(graph, platform, Workqueue(), changes=flaps)
    assert run.events > 4 * (graph.n_tasks + graph.n_items) + 1024
    assert judge(run, flaps) == []
