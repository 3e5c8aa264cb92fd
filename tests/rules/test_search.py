"""The scheduler `search`: exact without hurry, quick with it, steered while it runs."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.planners.search.best_first import BestFirst
from headrace.rules.evaluate import evaluate, score
from headrace.rules.parser import parse_rules
from headrace.testing import random_platform, random_program
from rules.brute_force import best, case

SHORT = """assert value preference (opt-type = minimize, function = (select max(task-finish-time) from task),
    min = 0, max = (select sum(task-exec-time) from task) + (select sum(non-local-comm-time) from dep))"""


def require_best(seed: int) -> None:
    problem = case(seed)
    wanted = best(problem).score
    search = BestFirst(hurry=0, rules=problem.rules, time=100)
    if wanted is None:
        with pytest.raises(NoPlan, match="every partial schedule was ruled out"):
            search.plan(Problem(problem.graph, problem.platform))
        return
    plan = search.plan(Problem(problem.graph, problem.platform))
    assert check(problem.graph, problem.platform, plan) == []
    verdicts = evaluate(problem.rules, problem.graph, problem.platform, plan)
    assert all(v.kept for v in verdicts if v.importance == "requirement")
    assert search.outcome.proven
    assert score(verdicts) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_without_hurry_it_equals_enumeration(seed: int) -> None:
    require_best(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 300))
def test_without_hurry_it_equals_enumeration_in_all_cases(seed: int) -> None:
    require_best(seed)


@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
@pytest.mark.parametrize("origin", ["none", "host"])
def test_plans_are_valid_and_keep_requirements(contention: str, origin: str) -> None:
    program = random_program(5, tasks=10)
    platform = random_platform(5, "ports", contention=contention, origin=origin)  # type: ignore[arg-type]
    rules = parse_rules(
        "assert relationship requirement ((select proc-task-count from proc where proc-id = 0) = 0)"
    )
    plan = BestFirst(rules=rules).plan(Problem(program.graph, platform))
    assert check(program.graph, platform, plan) == []
    assert not (plan.host == 0).any()


def test_hurry_goes_straight_to_a_schedule() -> None:
    program, platform = random_program(3, tasks=18), random_platform(3, hosts=9)
    search = BestFirst(rules=parse_rules(SHORT))
    search.plan(Problem(program.graph, platform))
    assert search.outcome.opened == 18
    assert not search.outcome.proven


def test_the_default_rules_leave_busy_hosts_alone() -> None:
    platform = Platform((Site("lab", (Host("busy", speed=9.0, load=0.5), Host("idle")), bandwidth=1e6),))
    plan = BestFirst().plan(Problem(random_program(1, tasks=5).graph, platform))
    assert (plan.host == 1).all()


def test_without_idle_hosts_the_default_rules_take_busy_ones() -> None:
    platform = Platform((Site("lab", (Host("busy", load=0.5), Host("busier", load=0.7)), bandwidth=1e6),))
    plan = BestFirst().plan(Problem(random_program(1, tasks=5).graph, platform))
    assert "`quiet` was left out" in plan.notes[-1]


def test_rules_of_the_problem_are_used() -> None:
    rules = parse_rules('assert relationship requirement ((select task-assigned-proc-name from task) = "h2")')
    plan = BestFirst().plan(Problem(random_program(1, tasks=5).graph, random_platform(1), rules=rules))
    assert (plan.host == 2).all()


def test_a_requirement_that_fails_on_the_way_may_hold_in_the_end() -> None:
    """The first task on h0 breaks it until more work follows on h1; such states are opened last, not dropped."""
    rules = parse_rules(
        "assert relationship requirement ((select count(*) from task where task-assigned-proc-id = 1) >= "
        "3 * (select count(*) from task where task-assigned-proc-id = 0))"
    )
    g = make_graph(
        work=[1.0] * 4, size=[1.0] * 3, producer=[0, 1, 2], read_ptr=[0, 0, 1, 2, 3], reads=[0, 1, 2]
    )
    only = parse_rules(
        "assert relationship requirement ((select task-assigned-proc-id from task where task-id = 0) = 0)"
    )
    both = type(rules)(
        (rules.rules[0], only.rules[0].__class__(**{**_fields(only.rules[0]), "name": "first"}))
    )
    plan = BestFirst(rules=both).plan(Problem(g, Platform.pairwise([1.0, 1.0], bandwidth=1e6)))
    assert plan.host.tolist() == [0, 1, 1, 1]


def _fields(rule: object) -> dict[str, object]:
    return {name: getattr(rule, name) for name in type(rule).__dataclass_fields__}  # type: ignore[attr-defined]


def test_hurry_is_turned_by_a_signal_and_by_assignment() -> None:
    program, platform = random_program(4, tasks=12), random_platform(4, hosts=4)
    told: list[int] = []

    def tell(opened: int, score: float, depth: int) -> None:
        told.append(opened)
        if len(told) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.getsignal(signal.SIGUSR1)
    search = BestFirst(hurry=0, rules=parse_rules(SHORT), time=60, tell=tell)
    search.plan(Problem(program.graph, platform))
    assert search.hurry is not None
    assert search.hurry > 0
    assert signal.getsignal(signal.SIGUSR1) == before
    assert search.outcome.opened < 2000

    def hurry_on(opened: int, score: float, depth: int) -> None:
        patient.hurry = 1e6

    patient = BestFirst(hurry=0, rules=parse_rules(SHORT), time=60, tell=hurry_on)
    patient.plan(Problem(program.graph, platform))
    assert patient.outcome.opened < 2000


def test_the_time_limit_gives_the_best_so_far() -> None:
    program, platform = random_program(4, tasks=14), random_platform(4, hosts=4)
    search = BestFirst(hurry=0, rules=parse_rules(SHORT), time=0.3)
    plan = search.plan(Problem(program.graph, platform))
    assert check(program.graph, platform, plan) == []
    assert not search.outcome.proven
    assert "not proven best" in plan.notes[-1]


def test_few_states_are_kept_and_nothing_is_proven_then() -> None:
    problem = case(2)
    search = BestFirst(hurry=0, rules=parse_rules(SHORT), states=4)
    search.plan(Problem(problem.graph, problem.platform))
    assert not search.outcome.proven


@pytest.mark.parametrize("bad", [{"time": 0}, {"hurry": -1.0}, {"states": 1}, {"time": float("nan")}])
def test_bad_options(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        BestFirst(**bad)  # type: ignore[arg-type]


def test_the_same_plan_every_time() -> None:
    problem = Problem(random_program(6, tasks=10).graph, random_platform(6))
    plans = [BestFirst().plan(problem) for _ in range(2)]
    assert np.array_equal(plans[0].host, plans[1].host)
    assert np.array_equal(plans[0].start, plans[1].start)
