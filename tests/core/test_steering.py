"""The planning loop: when plans are made, for what, and what goes on meanwhile."""

import math

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.core.steering import Rules, Steered, _first_beyond
from headrace.experiment.figures.figure_11 import figure_11
from headrace.experiment.online import Setting, simulate_grid
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.trace import Trace
from headrace.planners.registry import make
from headrace.simulator.online import simulate_online


@pytest.fixture(scope="module")
def sweep():
    program, platform = figure_11(1200, seed=1)
    return program.graph, platform


def steered(sweep, rules, changes=(), planner="minmin"):
    graph, platform = sweep
    scheduler = Steered(make(planner), rules)
    run = simulate_online(graph, platform, scheduler, changes=changes)
    return run, scheduler


def test_planning_once_gives_one_plan_that_is_valid(sweep):
    run, scheduler = steered(sweep, Rules(events="once"))
    assert scheduler.plans == 1
    assert check(sweep[0], sweep[1], run.happened) == []


@pytest.mark.parametrize("events", ["S1", "S2", "S3"])
def test_planning_events_give_several_plans_and_a_valid_run(sweep, events):
    run, scheduler = steered(sweep, Rules(events=events, interval=400.0))
    assert scheduler.plans > 2
    assert check(sweep[0], sweep[1], run.happened) == []


def test_constant_intervals_are_constant(sweep):
    _, scheduler = steered(sweep, Rules(events="S1", interval=500.0, idle=False))
    assert scheduler.pace.interval == 500.0


def test_deviation_stretches_the_interval_while_all_goes_as_foreseen(sweep):
    _, scheduler = steered(sweep, Rules(events="S2", interval=300.0))
    assert scheduler.pace.interval > 300.0


def test_what_runs_and_is_kept_counts_as_foreseen(sweep):
    """With an interval shorter than a task nothing that was just planned runs at the next event."""
    run, scheduler = steered(sweep, Rules("S2", interval=30.0))
    assert scheduler.pace.interval > 2 * 30.0
    assert run.plans < 0.5 * run.makespan / 30.0


def test_deviation_shrinks_the_interval_when_hosts_slow_down(sweep):
    names = [host.name for host in sweep[1].hosts]
    changes = [
        Change(float(t), "host-trace", name, Trace.constant(share))
        for k, name in enumerate(names)
        for t, share in ((200 + k, 0.1), (900 + k, 0.9), (1600 + k, 0.15))
    ]
    _, scheduler = steered(sweep, Rules(events="S2", interval=600.0), changes)
    assert scheduler.pace.interval < 600.0


def test_unstable_hosts_lose_weight_with_s3(sweep):
    names = [host.name for host in sweep[1].hosts]
    changes = [
        Change(float(t), "host-trace", name, Trace.constant(share))
        for name in names[:6]
        for t, share in ((150, 0.1), (800, 0.9), (1500, 0.1), (2200, 0.9))
    ]
    _, scheduler = steered(sweep, Rules(events="S3", interval=300.0), changes)
    shaky = np.mean([scheduler.pace.trust.get(("host", h), 1.0) for h in range(6)])
    steady = np.mean([scheduler.pace.trust.get(("host", h), 1.0) for h in range(6, len(names))])
    assert shaky < steady


def test_work_goes_on_while_a_plan_is_made(sweep):
    quick, _ = steered(sweep, Rules(events="S1", interval=500.0))
    slow, scheduler = steered(sweep, Rules(events="S1", interval=500.0, planning_fixed=60.0, keep=2))
    assert scheduler.planning_seconds == pytest.approx(60.0 * scheduler.plans)
    assert check(sweep[0], sweep[1], slow.happened) == []
    starts = np.sort(slow.happened.start)
    planned_at = 500.0
    assert ((starts > planned_at) & (starts < planned_at + 60.0)).any()
    assert quick.makespan <= slow.makespan < quick.makespan + 60.0 * scheduler.plans


@pytest.mark.parametrize(
    ("replan", "more"), [("joins", True), ("losses", False), ("both", True), ("neither", False)]
)
def test_joining_hosts_ask_for_a_plan_only_if_told_to(sweep, replan, more):
    name = sweep[1].hosts[0].name
    changes = [Change(700.0, "host-up", name)]
    _, scheduler = steered(sweep, Rules(events="once", replan=replan, idle=False), changes)
    assert (scheduler.plans > 1) == more


@pytest.mark.parametrize("reduce", ["random", "shared-file"])
def test_a_subset_is_planned_at_a_time(sweep, reduce):
    run, scheduler = steered(sweep, Rules(events="S1", interval=300.0, subset=60, reduce=reduce))
    assert scheduler.planned_tasks <= 60 * scheduler.plans
    assert scheduler.plans > 400 / 60
    assert check(sweep[0], sweep[1], run.happened) == []


def test_subset_by_shared_file_takes_tasks_that_share_one(sweep):
    graph, platform = sweep
    seen = []

    class Spy:
        name = "spy"

        def plan(self, problem):
            seen.append(list(problem.graph.task_names))
            return make("minmin").plan(problem)

    simulate_online(graph, platform, Steered(Spy(), Rules(events="S1", interval=300.0, subset=50)))
    number = {name: t for t, name in enumerate(graph.task_names)}
    shared = {int(graph.reads_of(number[name]).min()) for name in seen[0]}
    assert len(seen[0]) == 50
    assert len(shared) <= 2


@pytest.mark.parametrize("limit", [-1.0, 25.0, 60.0, math.inf])
def test_beyond_the_horizon_each_core_gets_one_task(limit):
    rng = np.random.default_rng(int(limit) if math.isfinite(limit) and limit > 0 else 0)
    program = hr.Program()
    for work in rng.uniform(5, 15, 60):
        program.task(None, work=float(work))
    platform = hr.Platform((hr.Site("s", (hr.Host("a", cores=3), hr.Host("b"), hr.Host("c", cores=2))),))
    plan = make("minmin").plan(Problem(program.graph, platform))
    order = np.argsort(plan.start, kind="stable")
    expected, beyond = [], {0: 0, 1: 0, 2: 0}
    for t in order.tolist():
        host = int(plan.host[t])
        beyond[host] += plan.start[t] > limit
        expected.append(plan.start[t] <= limit or beyond[host] <= platform.hosts[host].cores)
    assert _first_beyond(plan, order, limit).tolist() == expected


def test_a_surprise_makes_d_heft_plan_again():
    program = hr.Program()
    for chain in range(4):
        last = []
        for step in range(6):
            last = [
                program.task(
                    None, name=f"t{chain}.{step}", inputs=last, outputs=[f"x{chain}.{step}"], work=10.0
                )
            ]
    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    calm = simulate_grid(program, lab, "dheft")
    late = [Change(15.0, "host-trace", "h1", Trace.constant(0.2))]
    from headrace.planners.online.dheft import DHeft

    scheduler = DHeft()
    run = simulate_online(program.graph, lab, scheduler, changes=late)
    assert calm.plans == 1
    assert scheduler.plans > 1
    stuck = simulate_online(program.graph, lab, Steered(make("heft"), Rules(events="once")), changes=late)
    assert run.makespan < stuck.makespan


def test_bad_rules_are_refused():
    with pytest.raises(UsageError, match="interval is -1"):
        Rules(interval=-1.0)
    with pytest.raises(UsageError, match="events is"):
        Rules(events="S9")  # type: ignore[arg-type]


def test_all_planners_can_be_steered_on_a_small_grid():
    program, platform = figure_11(75, seed=2)
    for name in ("heft", "sufferage", "xsufferage", "sufferage2", "maxmin"):
        run = simulate_grid(program, platform, name, Setting(rules=Rules(events="S2")))
        assert check(program.graph, platform, run.happened) == []
        assert math.isfinite(run.bound)
        assert run.bound <= run.makespan * (1 + 1e-9)
