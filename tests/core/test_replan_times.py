"""When plans are made and what goes on meanwhile, on a grid small enough to follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.core.replan import Replan
from headrace.core.replan_interval import FAR
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import AssignMany, Command, Problem, RequeueTail
from headrace.model.behaviour import Change
from headrace.model.plan import Plan
from headrace.model.trace import Trace
from headrace.online.dheft import DHeft
from headrace.planners.registry import make
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.invariants import judge

LAB = hr.Platform.pairwise([1.0, 1.0, 1.0], bandwidth=1e6)


def tasks(count: int = 60) -> Any:
    program = hr.Program()
    for _ in range(count):
        program.task(None, work=10.0)
    return program.graph


class Followed(Replan):
    """Notes when it plans, what it answers, and what its pace is told."""

    def __init__(self, policy: ReplanPolicy, seed: int = 0) -> None:
        super().__init__(make("minmin"), policy, seed)
        self.times: list[float] = []
        self.said: list[tuple[float, list[Command]]] = []
        self.sizes: list[int] = []
        self.compared: list[float] = []
        self.dry: list[tuple[float, bool]] = []
        compare, tune, plan, now = self.interval.compare, self.interval.tune, self.planner.plan, self.times

        def compare_too(view: Any, predicted: Any) -> None:
            self.compared.append(view.time)
            compare(view, predicted)

        def tune_too(ran_dry: bool) -> None:
            self.dry.append((now[-1], ran_dry))
            tune(ran_dry)

        def plan_too(problem: Problem) -> Plan:
            self.sizes.append(problem.graph.n_tasks)
            return plan(problem)

        self.interval.compare = compare_too  # type: ignore[method-assign]
        self.interval.tune = tune_too  # type: ignore[method-assign]
        self.planner = type("Counted", (), {"name": "counted", "plan": staticmethod(plan_too)})()

    def _plan(self, view: Any) -> list[Command]:
        self.times.append(view.time)
        return super()._plan(view)

    def react(self, view: Any, events: Any) -> list[Command]:
        answers = super().react(view, events)
        if answers:
            self.said.append((view.time, answers))
        return answers


def followed(
    policy: ReplanPolicy,
    changes: list[Change] | None = None,
    quicker: float = 1.0,
    seed: int = 0,
    count: int = 60,
) -> Followed:
    graph, scheduler = tasks(count), Followed(policy, seed)
    real = graph.with_work(graph.work / quicker)
    run = simulate_scheduler(graph, LAB, scheduler, changes=changes or [], real=real)
    assert judge(run, changes or [], real=real) == []
    return scheduler


def test_constant_intervals_give_plans_at_their_multiples_only() -> None:
    scheduler = followed(ReplanPolicy("S1", interval=25.0, idle=False), quicker=4.0)
    assert np.allclose(np.diff(scheduler.times), 25.0)


def test_idle_hosts_ask_sooner_but_not_at_once() -> None:
    """Tasks end four times sooner than believed, and Delta is nothing."""
    often = followed(ReplanPolicy("S1", interval=40.0, horizon=0.0), quicker=4.0)
    seldom = followed(ReplanPolicy("S1", interval=40.0, horizon=0.0, idle=False), quicker=4.0)
    assert np.diff(seldom.times).min() >= 40.0
    assert 10.0 <= np.diff(often.times).min() < 40.0


def test_a_loss_that_asks_for_nothing_leaves_idle_hosts_idle_if_that_shall_be_so() -> None:
    policy = ReplanPolicy("S1", interval=40.0, horizon=0.0, idle=False, replan="neither")
    scheduler = followed(policy, [Change(30.0, "host-down", "h2")], quicker=4.0)
    assert np.diff(scheduler.times).min() >= 40.0


def test_deviation_is_looked_at_when_planning_events_are_due_and_not_when_a_host_joins() -> None:
    joins = [Change(33.0, "host-up", "h2")]
    scheduler = followed(ReplanPolicy("S2", interval=50.0, idle=False), joins)
    assert 33.0 in scheduler.times
    assert scheduler.compared
    assert 33.0 not in scheduler.compared
    assert 0.0 not in scheduler.compared


def test_a_host_that_has_just_joined_has_not_run_dry() -> None:
    scheduler = followed(ReplanPolicy("S1", interval=50.0, idle=False), [Change(33.0, "host-up", "h2")])
    assert dict(scheduler.dry)[33.0] is False


def test_the_horizon_stays_far_while_hosts_run_dry() -> None:
    dry = followed(ReplanPolicy("S1", interval=40.0, idle=False), quicker=20.0, count=300)
    fed = followed(ReplanPolicy("S1", interval=40.0, idle=False))
    assert len(dry.times) > 3
    assert dry.interval.reach == FAR
    assert fed.interval.reach < FAR


def test_planning_takes_at_most_half_of_the_time() -> None:
    scheduler = followed(ReplanPolicy("S1", interval=10.0, planning_fixed=15.0, idle=False))
    assert np.diff(scheduler.times).min() >= 30.0


def test_queues_are_short_while_a_plan_is_made_and_filled_when_it_is_ready() -> None:
    scheduler = followed(ReplanPolicy("S1", interval=50.0, planning_fixed=12.0, keep=1, idle=False))
    said = dict(scheduler.said)
    assert said[50.0] == [RequeueTail(1)]
    assert [len(answer.tasks) > 3 for answer in said[62.0] if isinstance(answer, AssignMany)] == [True]
    assert not any(isinstance(answer, RequeueTail) for answer in said[62.0])


def test_a_host_that_joins_while_a_plan_is_made_gets_one_as_soon_as_that_is_ready() -> None:
    joins = [Change(55.0, "host-up", "h2")]
    scheduler = followed(ReplanPolicy("S1", interval=50.0, planning_fixed=12.0, idle=False), joins)
    assert scheduler.times[:3] == [0.0, 50.0, 62.0]


def test_a_subset_is_as_large_as_allowed_beside_what_is_kept() -> None:
    scheduler = followed(ReplanPolicy("S1", interval=20.0, subset=9, keep=1))
    assert scheduler.sizes[:4] == [9] * 4


def test_random_subsets_follow_the_seed() -> None:
    def first(seed: int) -> list[int]:
        scheduler = followed(ReplanPolicy("S1", interval=20.0, subset=9, reduce="random"), seed=seed)
        return next(a.tasks.tolist() for a in scheduler.said[0][1] if isinstance(a, AssignMany))

    assert first(1) == first(1)
    assert first(1) != first(2)


def chains() -> Any:
    program = hr.Program()
    for chain in range(4):
        last: list[Any] = []
        for step in range(12):
            name = f"{chain}.{step}"
            last = [program.task(None, name=f"t{name}", inputs=last, outputs=[f"x{name}"], work=10.0)]
    return program.graph


SLOW = [Change(15.0, "host-trace", "h1", Trace.constant(0.2))]


def test_d_heft_goes_on_with_the_old_plan_while_it_makes_a_new_one() -> None:
    graph, lab = chains(), hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    planned: list[float] = []

    handed: list[list[Command]] = []

    class Timed(DHeft):
        def _plan(self, view: Any) -> list[Command]:
            planned.append(view.time)
            return super()._plan(view)

        def react(self, view: Any, events: Any) -> list[Command]:
            answers = super().react(view, events)
            if answers:
                handed.append(answers)
            return answers

    scheduler = Timed(planning=500.0)
    run = simulate_scheduler(graph, lab, scheduler, changes=SLOW)
    assert judge(run, SLOW) == []
    assert len(planned) > 2
    assert scheduler.planning_seconds > 40.0
    assert all(answers[0] == RequeueTail(0) for answers in handed), (
        "then all that has not begun goes by the new one"
    )
    again = planned[1]
    cost = 0.5 * 2 * (graph.n_tasks - 6)  # some are done or run
    meanwhile = (run.executed.start > again) & (run.executed.start < again + 0.8 * cost)
    assert (meanwhile & (run.executed.host == 0)).sum() >= 3, "more than the one task that others would keep"


def test_surprises_ask_for_plans_no_oftener_than_the_pause_allows() -> None:
    graph, lab = chains(), hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    times: dict[float, list[float]] = {}
    for pause in (0.0, 70.0):

        class Timed(DHeft):
            def _plan(self, view: Any, pause: float = pause) -> list[Command]:
                times.setdefault(pause, []).append(view.time)
                return super()._plan(view)

        simulate_scheduler(graph, lab, Timed(pause=pause), changes=SLOW)
    assert np.diff(times[70.0]).min() >= 70.0
    assert np.diff(times[0.0]).min() < 70.0


@pytest.mark.parametrize(("factor", "plans"), [(1.9, 1), (2.1, 2), (1 / 1.9, 1), (1 / 2.1, 2)])
def test_d_heft_plans_again_for_run_times_off_by_two_either_way(factor: float, plans: int) -> None:
    """One task of several takes so many times what was foreseen."""
    graph, lab = tasks(6), hr.Platform.pairwise([1.0], bandwidth=1e6)
    work = graph.work.copy()
    work[2] *= factor
    scheduler = DHeft()
    simulate_scheduler(graph, lab, scheduler, real=graph.with_work(work))
    assert scheduler.plans == plans
