"""Plans under rules: every scheduler keeps them or says why not, and the search for better plans is never worse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan, UsageError
from headrace.planners.registry import make
from headrace.planners.rule_costs import rule_costs
from headrace.planners.ruled import Judge, better
from headrace.planners.timed import plan_with_bound
from headrace.rules.evaluate import evaluate, score
from headrace.rules.parser import parse_rules
from headrace.testing import random_platform, random_program

SCHEDULERS = ["heft", "cpop", "minmin", "round-robin", "auto", "search", "lheft", "dheft", "workqueue"]
MIXED = """
off-h0: assert relationship requirement ((select proc-task-count from proc where proc-name = "h0") = 0)
few: assert relationship requirement (
  (select count(*) from task where task-scheduled = 1 and task-assigned-proc-name = "h1"
   group by task-assigned-proc-id) <= 3)
apart: assert relationship requirement (
  (select task-assigned-proc-id from task where task-label = "t0") <>
  (select task-assigned-proc-id from task where task-label = "t1"))
"""
SPREAD = """spread: assert relationship requirement (
  (select proc-total-running-time from proc) <= 0.6 * (select max(task-finish-time) from task))"""
"""No constraint says this: only evaluation does."""


def case(tasks: int = 12, seed: int = 1) -> tuple[hr.Program, hr.Platform]:
    return random_program(seed, tasks=tasks), random_platform(seed)


def broken(rules: str, program: hr.Program, platform: hr.Platform, plan: hr.Plan) -> list[str]:
    verdicts = evaluate(parse_rules(rules), program.graph, platform, plan)
    return [v.name for v in verdicts if v.importance == "requirement" and not v.kept]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_keeps_rules_on_hosts(scheduler: str) -> None:
    program, platform = case()
    plan = hr.plan(program, platform, scheduler, rules=MIXED)
    assert broken(MIXED, program, platform, plan) == []
    assert hr.check(program, platform, plan) == []


def test_rules_are_texts_files_or_parsed(tmp_path: Path) -> None:
    program, platform = case()
    file = tmp_path / "a.rules"
    file.write_text(MIXED)
    plans = [
        hr.plan(program, platform, "heft", rules=given)
        for given in (MIXED, file, str(file), parse_rules(MIXED), [MIXED, "-- nothing more"])
    ]
    assert all(np.array_equal(plan.host, plans[0].host) for plan in plans)
    assert not (plans[0].host == 0).any()


def test_no_rules_change_nothing() -> None:
    program, platform = case()
    plain = hr.plan(program, platform, "heft")
    for none in (None, "-- nothing", []):
        assert np.array_equal(hr.plan(program, platform, "heft", rules=none).start, plain.start)


def test_a_planner_that_breaks_a_rule_says_which_and_where() -> None:
    program, platform = case()
    with pytest.raises(
        NoPlan, match=r"heft found no plan that keeps spread \(line 1\).*first miss: .*best or search"
    ):
        hr.plan(program, platform, "heft", rules=SPREAD)


@pytest.mark.parametrize("scheduler", ["auto", "best"])
def test_rules_of_other_shapes_are_kept_by_search(scheduler: str) -> None:
    program, platform = case()
    options = {"time": 2.0} if scheduler == "best" else {}
    plan = hr.plan(program, platform, scheduler, rules=SPREAD, **options)
    assert broken(SPREAD, program, platform, plan) == []
    assert hr.check(program, platform, plan) == []


def test_clashing_rules_are_named() -> None:
    program, platform = case()
    rules = hr.rules.combine(
        hr.rules.finish_by("9 h", name="late-enough"),
        hr.rules.require(
            '(select task-assigned-proc-name from task where task-label = "t0") = "h1"', name="there"
        ),
        hr.rules.avoid("h1", name="empty"),
    )
    for scheduler in ("heft", "auto", "lheft"):
        with pytest.raises(NoPlan, match=r"`there` .* and `empty` .* clash") as error:
            hr.plan(program, platform, scheduler, rules=rules)
        assert "late-enough" not in str(error.value)


def test_clashes_in_large_problems_are_named_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    program, platform = case()
    monkeypatch.setattr("headrace.planners.clashing.MOST_CELLS", 0)
    rules = hr.rules.combine(
        *(hr.rules.avoid(f"h{i}", tasks="t3", name=f"not-{i}") for i in range(3)),
        *(hr.rules.before("t4", "t5", name=f"order-{i}") for i in range(20)),
        hr.rules.avoid("h3", name="not-3"),
    )
    with pytest.raises(NoPlan) as error:
        hr.plan(program, platform, "heft", rules=rules)
    named = [part.split("`")[0] for part in str(error.value).split("`")[1::2]]
    assert named == ["not-0", "not-1", "not-2", "not-3"]


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_best_is_never_worse_than_single_planners(contention: str) -> None:
    program, platform = random_program(5, tasks=14), random_platform(5, contention=contention)
    rules = parse_rules(
        hr.rules.combine(
            hr.rules.avoid("h0"),
            hr.rules.prefer('(select task-assigned-proc-name from task) = "h1"', 2),
            hr.rules.minimize("(select max(task-finish-time) from task)", max=100),
        )
    )
    problem = Problem(program.graph, platform, rules=rules)
    judge = Judge.of(problem)
    key = judge.key(hr.plan(program, platform, "best", rules=rules, time=1.5))
    assert key[0] == 0
    for name in ("heft", "minmin", "round-robin", "single-host", "auto"):
        assert not better(judge.key(hr.plan(program, platform, name, rules=rules)), key), name


def test_best_without_preferences_shortens_the_makespan() -> None:
    program, platform = case(20, seed=3)
    heft = hr.plan(program, platform, "heft", rules=MIXED)
    best = hr.plan(program, platform, "best", rules=MIXED, time=1.0)
    assert broken(MIXED, program, platform, best) == []
    assert best.makespan <= heft.makespan


def test_small_problems_are_solved_with_a_proof() -> None:
    program, platform = case(6)
    rules = hr.rules.minimize("(select sum(task-start-time) from task)", max=1000)
    plan = hr.plan(program, platform, "best", rules=rules, time=8.0)
    assert any("proven best" in note and "not" not in note for note in plan.notes)


def test_order_that_is_stronger_than_a_rule_is_given_up_where_it_is_impossible() -> None:
    program = hr.Program()
    first = program.task(None, work=2.0, outputs={"x": 0}, name="a")
    program.task(None, work=2.0, inputs=[first], outputs=["y"], name="b")
    # a starts first although b is not to start before a has started: true, but a after b is a circle.
    rules = hr.rules.require(
        '(select task-start-time from task where task-label = "b") <= 5 + '
        '(select task-start-time from task where task-label = "a")'
    )
    plan = hr.plan(program, hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6), "heft", rules=rules)
    assert plan.makespan == 4.0


def test_costs_are_makespans_with_and_without() -> None:
    program, platform = case()
    rules = parse_rules(
        hr.rules.combine(hr.rules.on("t", hosts="h3", name="slow"), hr.rules.finish_by("9 h"))
    )
    planner = make("heft")
    problem = Problem(program.graph, platform, rules=rules)
    plan = plan_with_bound(planner, problem)
    costs = rule_costs(planner, problem, plan)
    free = hr.plan(program, platform, "heft")
    assert costs["slow"].without == free.makespan < plan.makespan
    assert costs["rule-2"].without == plan.makespan
    skipped = rule_costs(planner, problem, plan, budget=0.0)
    assert all(cost.without is None and "skipped" in cost.reason for cost in skipped.values())


@pytest.mark.parametrize("scheduler", ["heft", "lheft", "workqueue", "dheft"])
def test_simulated_runs_obey(scheduler: str) -> None:
    program, platform = case()
    run = hr.simulate(program, platform, scheduler, rules=MIXED)
    assert broken(MIXED, program, platform, run.executed) == []


def test_simulated_runs_obey_after_a_loss() -> None:
    program, platform = case(24, seed=2)
    config = hr.SimulationConfig(faults="kill=h2@30%")
    rules = hr.rules.avoid("h0")
    run = hr.simulate(program, platform, "heft", config, rules=rules)
    assert broken(rules, program, platform, run.executed) == []


def test_order_is_obeyed_when_real_run_times_differ() -> None:
    program, platform = case()
    rules = hr.rules.before("t1", "t8")
    run = hr.simulate(program, platform, "heft", hr.SimulationConfig(error=0.5), rules=rules, seed=3)
    assert broken(rules, program, platform, run.executed) == []


def test_the_engine_alone_knows_no_rules() -> None:
    from headrace.execution import _policy

    program, platform = case()
    with pytest.raises(UsageError, match="does not know rules"):
        _policy("dask", program.graph, platform, parse_rules(MIXED), "stop")


def test_score_is_what_best_minimises() -> None:
    program, platform = case()
    rules = parse_rules(hr.rules.prefer('(select task-assigned-proc-name from task) = "h2"'))
    plan = hr.plan(program, platform, "best", rules=rules, time=1.0)
    assert score(evaluate(rules, program.graph, platform, plan)) == 0
    assert set(plan.host.tolist()) == {2}
