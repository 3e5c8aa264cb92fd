"""The planning loop: when plans are made, for what, and what goes on meanwhile."""

import math

import numpy as np
import pytest

import headrace as hr
from headrace.core.plan_commands import up_to
from headrace.core.replan import Replan
from headrace.core.replan_interval import Moving, ReplanInterval
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import AssignMany, Fetch, Problem, RequeueTail
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.platform import Host, Site
from headrace.model.trace import Trace
from headrace.planners.registry import make
from headrace.reproductions.figure_11 import figure_11
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program
from headrace.testing.invariants import judge


@pytest.fixture(scope="module")
def sweep():
    program, platform = figure_11(1200, seed=1)
    return program.graph, platform


def replanned(sweep, policy, changes=(), planner="minmin"):
    graph, platform = sweep
    scheduler = Replan(make(planner), policy)
    run = simulate_scheduler(graph, platform, scheduler, changes=changes)
    return run, scheduler


def test_planning_once_gives_one_plan_that_is_valid(sweep):
    run, scheduler = replanned(sweep, ReplanPolicy(events="once"))
    assert scheduler.plans == 1
    assert check(sweep[0], sweep[1], run.executed) == []


@pytest.mark.parametrize("events", ["S1", "S2", "S3"])
def test_planning_events_give_several_plans_and_a_valid_run(sweep, events):
    run, scheduler = replanned(sweep, ReplanPolicy(events=events, interval=400.0))
    assert scheduler.plans > 2
    assert check(sweep[0], sweep[1], run.executed) == []


def test_constant_intervals_are_constant(sweep):
    _, scheduler = replanned(sweep, ReplanPolicy(events="S1", interval=500.0, idle=False))
    assert scheduler.interval.seconds == 500.0


def test_deviation_stretches_the_interval_while_all_goes_as_predicted(sweep):
    _, scheduler = replanned(sweep, ReplanPolicy(events="S2", interval=300.0))
    assert scheduler.interval.seconds > 300.0


def test_what_runs_and_is_kept_counts_as_predicted(sweep):
    """With an interval shorter than a task nothing that was just planned runs at the next event."""
    run, scheduler = replanned(sweep, ReplanPolicy("S2", interval=30.0))
    assert scheduler.interval.seconds > 2 * 30.0
    assert run.plans < 0.5 * run.makespan / 30.0


def test_deviation_shrinks_the_interval_when_hosts_slow_down(sweep):
    names = [host.name for host in sweep[1].hosts]
    changes = [
        Change(float(t), "host-trace", name, Trace.constant(share))
        for k, name in enumerate(names)
        for t, share in ((200 + k, 0.1), (900 + k, 0.9), (1600 + k, 0.15))
    ]
    _, scheduler = replanned(sweep, ReplanPolicy(events="S2", interval=600.0), changes)
    assert scheduler.interval.seconds < 600.0


def test_unstable_hosts_lose_weight_with_s3(sweep):
    names = [host.name for host in sweep[1].hosts]
    changes = [
        Change(float(t), "host-trace", name, Trace.constant(share))
        for name in names[:6]
        for t, share in ((150, 0.1), (800, 0.9), (1500, 0.1), (2200, 0.9))
    ]
    _, scheduler = replanned(sweep, ReplanPolicy(events="S3", interval=300.0), changes)
    shaky = np.mean([scheduler.interval.trust.get(("host", h), 1.0) for h in range(6)])
    steady = np.mean([scheduler.interval.trust.get(("host", h), 1.0) for h in range(6, len(names))])
    assert shaky < steady


def test_work_goes_on_while_a_plan_is_made(sweep):
    quick, _ = replanned(sweep, ReplanPolicy(events="S1", interval=500.0))
    slow, scheduler = replanned(sweep, ReplanPolicy(events="S1", interval=500.0, planning_fixed=60.0, keep=2))
    assert scheduler.planning_seconds == pytest.approx(60.0 * scheduler.plans)
    assert check(sweep[0], sweep[1], slow.executed) == []
    starts = np.sort(slow.executed.start)
    planned_at = 500.0
    assert ((starts > planned_at) & (starts < planned_at + 60.0)).any()
    assert quick.makespan <= slow.makespan < quick.makespan + 60.0 * scheduler.plans


@pytest.mark.parametrize(
    ("replan", "more"), [("joins", True), ("losses", False), ("both", True), ("neither", False)]
)
def test_joining_hosts_ask_for_a_plan_only_if_told_to(sweep, replan, more):
    name = sweep[1].hosts[0].name
    changes = [Change(700.0, "host-up", name)]
    _, scheduler = replanned(sweep, ReplanPolicy(events="once", replan=replan, idle=False), changes)
    assert (scheduler.plans > 1) == more


@pytest.mark.parametrize(
    ("replan", "more"), [("joins", False), ("losses", True), ("both", True), ("neither", False)]
)
def test_lost_hosts_ask_for_a_plan_only_if_told_to(sweep, replan, more):
    """A host that leaves with its work; without a plan at once, the next planning event finds new hosts for it."""
    name = sweep[1].hosts[0].name
    changes = [Change(700.0, "host-down", name)]
    times = []

    class Timed(Replan):
        def _plan(self, view):
            times.append(view.time)
            return super()._plan(view)

    scheduler = Timed(make("minmin"), ReplanPolicy("S1", interval=500.0, replan=replan, idle=False))
    run = simulate_scheduler(sweep[0], sweep[1], scheduler, changes=changes)
    assert (700.0 in times) == more
    assert {0.0, 500.0} <= set(times)
    assert judge(run, changes) == []


def test_transfers_are_predicted_as_well_as_tasks(sweep):
    """At the next planning event shared files are still on their way to each cluster."""
    graph, platform = figure_11(4800, seed=1)[0].graph, sweep[1]
    seen = []

    class Spy(Replan):
        def _adapt(self, view):
            moves = [s for s in self._predicted if isinstance(s, Moving)]
            if moves and view.time >= self._next_event:
                seen.append(ReplanInterval("S2", 0.3, 1.0).deviation(view, moves))
            super()._adapt(view)

    simulate_scheduler(graph, platform, Spy(make("minmin"), ReplanPolicy("S1", interval=200.0)))
    assert len(seen) > 4
    assert seen[:4] == [0.0] * 4, "nothing changes here, and large files come first"


def test_the_horizon_is_tuned_under_constant_intervals_too(sweep):
    _, tuned = replanned(sweep, ReplanPolicy("S1", interval=400.0))
    _, fixed = replanned(sweep, ReplanPolicy("S1", interval=400.0, horizon=1.5))
    assert tuned.interval.reach < 4.0
    assert fixed.interval.reach == 1.5


def test_hosts_get_work_up_to_the_horizon_and_one_task_more(sweep):
    """Delta is half an interval: what is handed out first starts within 1.5 intervals, or is the next of its core."""
    graph, platform = sweep
    answers, plans = [], []

    class Spy(Replan):
        def _commands(self, view, plan, kept):
            made = super()._commands(view, plan, kept)
            answers.append(made[0])
            plans.append(plan)
            return made

    simulate_scheduler(graph, platform, Spy(make("minmin"), ReplanPolicy("S1", interval=400.0, horizon=0.5)))
    handed = {graph.task_names[t] for a in answers[0] if isinstance(a, AssignMany) for t in a.tasks}
    plan = plans[0]
    late = {name for name, start in zip(plan.graph.task_names, plan.start, strict=True) if start > 600.0}
    assert len(handed) < graph.n_tasks
    assert handed >= set(plan.graph.task_names) - late
    assert len(handed & late) == len(platform.hosts)


def test_links_wait_for_nothing_that_nobody_will_make(sweep):
    """Only what tasks that were handed out make, and what exists, is to be delivered."""
    graph, platform = sweep
    number = {name: i for i, name in enumerate(graph.item_names)}
    strays = []

    class Spy(Replan):
        def _commands(self, view, plan, kept):
            made = super()._commands(view, plan, kept)
            known = {t for a in made[0] if isinstance(a, AssignMany) for t in a.tasks.tolist()}
            for answer in made[0]:
                if isinstance(answer, Fetch):
                    maker = int(graph.producer[number[answer.item]])
                    if maker >= 0 and maker not in known and maker in plan_tasks(plan):
                        strays.append(answer)
            return made

    def plan_tasks(plan):
        return {task_number[name] for name in plan.graph.task_names}

    task_number = {name: t for t, name in enumerate(graph.task_names)}
    simulate_scheduler(graph, platform, Spy(make("minmin"), ReplanPolicy("S1", interval=300.0, horizon=0.25)))
    assert strays == []


def test_kept_tasks_stay_before_those_planned_anew(sweep):
    """Hosts are quicker than believed, so kept tasks were planned for later than what the new plan begins with."""
    graph, platform = sweep
    kept_first = []

    class Spy(Replan):
        def react(self, view, events):
            kept = {h: view.queue(h)[:2] for h in range(len(platform.hosts))}
            answers = super().react(view, events)
            if self.plans > 1 and any(isinstance(a, RequeueTail) for a in answers):
                ranks = {}
                for a in answers:
                    if isinstance(a, AssignMany):
                        for host, rank in zip(a.hosts.tolist(), a.ranks.tolist(), strict=True):
                            ranks.setdefault(host, []).append(rank)
                for h, tasks in kept.items():
                    new = ranks.get(h, [])
                    if tasks and new:
                        kept_first.append(min(new) > max(float(view.state.rank[t]) for t in tasks))
            return answers

    slow = graph.with_work(graph.work * 3.0)
    run = simulate_scheduler(
        slow, platform, Spy(make("minmin"), ReplanPolicy("S1", interval=200.0, keep=2)), real=graph
    )
    assert judge(run, real=graph) == []
    assert len(kept_first) > 20
    assert all(kept_first)


def test_an_interval_by_share_of_the_makespan_shrinks_from_there():
    """Tasks end ten times sooner than foreseen; the first interval is a fiftieth of 200 s."""
    program = hr.Program()
    for _ in range(40):
        program.task(None, work=10.0)
    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    graph = program.graph
    scheduler = Replan(make("minmin"), ReplanPolicy("S2", replan="2%"))
    simulate_scheduler(graph, lab, scheduler, real=graph.with_work(graph.work * 0.1))
    assert scheduler.plans > 4
    assert scheduler.interval.seconds <= 2.0


@pytest.mark.parametrize("reduce", ["random", "shared-file"])
def test_a_subset_is_planned_at_a_time(sweep, reduce):
    run, scheduler = replanned(sweep, ReplanPolicy(events="S1", interval=300.0, subset=60, reduce=reduce))
    assert scheduler.planned_tasks <= 60 * scheduler.plans
    assert scheduler.plans > 400 / 60
    assert check(sweep[0], sweep[1], run.executed) == []


def test_subset_by_shared_file_takes_tasks_that_share_one(sweep):
    graph, platform = sweep
    seen = []

    class Spy:
        name = "spy"

        def plan(self, problem):
            seen.append(list(problem.graph.task_names))
            return make("minmin").plan(problem)

    simulate_scheduler(graph, platform, Replan(Spy(), ReplanPolicy(events="S1", interval=300.0, subset=50)))
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
    assert up_to(plan, order, limit).tolist() == order[expected].tolist()


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
    calm = simulate_program(program, lab, "dheft")
    late = [Change(15.0, "host-trace", "h1", Trace.constant(0.2))]
    from headrace.online.dheft import DHeft

    scheduler = DHeft()
    run = simulate_scheduler(program.graph, lab, scheduler, changes=late)
    assert calm.plans == 1
    assert scheduler.plans > 1
    stuck = simulate_scheduler(
        program.graph, lab, Replan(make("heft"), ReplanPolicy(events="once")), changes=late
    )
    assert run.makespan < stuck.makespan


def test_bad_rules_are_refused():
    with pytest.raises(UsageError, match="interval is -1"):
        ReplanPolicy(interval=-1.0)
    with pytest.raises(UsageError, match="events is"):
        ReplanPolicy(events="S9")  # type: ignore[arg-type]


def test_all_planners_can_plan_again_on_a_small_grid():
    program, platform = figure_11(75, seed=2)
    for name in ("heft", "sufferage", "xsufferage", "sufferage2", "maxmin"):
        run = simulate_program(program, platform, name, SimulationConfig(policy=ReplanPolicy(events="S2")))
        assert check(program.graph, platform, run.executed) == []
        assert math.isfinite(run.bound)
        assert run.bound <= run.makespan * (1 + 1e-9)


@pytest.mark.parametrize("name", ["heft", "minmin", "dheft", "xsufferage"])
def test_tasks_of_several_cores_go_to_hosts_that_have_them(name: str) -> None:
    """Planners that look at one core a task would give them to the quick host with one."""
    program = hr.Program()
    made = [program.task(None, outputs={f"x{k}": 1.0}, work=5.0, cores=2) for k in range(6)]
    program.task(None, inputs=made, outputs={"y": 1.0}, work=1.0)
    hosts = (Host("quick", 5.0, 1), Host("wide", 1.0, 4), Host("wider", 1.0, 6))
    run = hr.simulate(program, hr.Platform((Site("s", hosts),), name="mixed"), name)
    assert judge(run) == []
    assert run.makespan <= 11.0  # five at once on the wide ones, then the last of six
    used = {run.executed.platform.hosts[h].name for h in run.executed.host[:6]}
    assert used == {"wide", "wider"}
