"""Rules on partial schedules: equal to the evaluation of each, and bounds that hold in every completion."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import BadRules
from headrace.rules.evaluate import evaluate, score
from headrace.rules.incremental import Judged, PartialRules, Placement
from headrace.rules.incremental_columns import Batch, unchanged
from headrace.rules.parser import parse_rules
from headrace.rules.semi_active import schedule_space
from headrace.rules.tree import RuleSet
from rules.brute_force import Case, case
from rules.texts import Generator


def generated(seed: int) -> Case:
    """A small problem with rules of every shape: those of the enumeration, and random expressions."""
    problem = case(seed)
    text = problem.rules.text + "\n" + Generator(seed).text(3)
    return problem._replace(rules=parse_rules(text))


def places(rules: PartialRules, at: Placement) -> list[tuple[int, int]]:
    placed = at.host >= 0
    hosts = range(len(rules.space.cores))
    ready = [
        t
        for t in np.flatnonzero(~placed).tolist()
        if all(placed[maker] for maker, _ in rules.space.inputs[t])
    ]
    return [(t, h) for t in ready for h in hosts]


def walk(rules: PartialRules, rng: random.Random, at: Placement | None = None) -> list[Batch]:
    """The successors of each schedule on a random way to a complete one."""
    at = rules.empty() if at is None else at
    batches = []
    while at.placed < len(at.host):
        batch = rules.successors(at, places(rules, at))
        batches.append(batch)
        at = batch.child(rng.randrange(len(batch)), rules.space)
    return batches


def require_as_evaluated(rules: RuleSet, judged: Judged, number: int, problem: Case, at: Placement) -> None:
    verdicts = evaluate(rules, problem.graph, problem.platform, at)
    kept = all(v.kept for v in verdicts if v.importance == "requirement")
    assert judged.allowed[number] == kept
    assert judged.score[number] == pytest.approx(score(verdicts), abs=1e-9)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_partial_schedules_are_judged_as_evaluate_does(seed: int) -> None:
    problem = generated(seed)
    rules = PartialRules(problem.rules, schedule_space(problem.graph, problem.platform))
    rng = random.Random(seed)
    try:
        require_as_evaluated(problem.rules, rules.judge(rules.empty()), 0, problem, rules.empty())
        for batch in walk(rules, rng):
            judged = rules.as_they_are(batch)
            for number in sorted({0, len(batch) - 1, rng.randrange(len(batch))}):
                at = batch.child(number, rules.space)
                require_as_evaluated(problem.rules, judged, number, problem, at)
    except BadRules:
        return  # a select of several rows as one value: no verdict from either


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_bounds_hold_in_every_completion(seed: int) -> None:
    problem = generated(seed)
    rules = PartialRules(problem.rules, schedule_space(problem.graph, problem.platform))
    rng = random.Random(seed)
    try:
        for batch in walk(rules, rng):
            bound = rules.completed(batch)
            for number in sorted({rng.randrange(len(batch)), rng.randrange(len(batch))}):
                at = batch.child(number, rules.space)
                rest = walk(rules, rng, at)
                last = rest[-1].child(rng.randrange(len(rest[-1])), rules.space) if rest else at
                found = rules.judge(last)
                assert bound.allowed[number] or not found.allowed[0]
                assert bound.score[number] <= found.score[0] + 1e-9
    except BadRules:
        return


def test_bounds_of_complete_schedules_are_their_scores() -> None:
    problem = case(3)
    rules = PartialRules(problem.rules, schedule_space(problem.graph, problem.platform))
    last = walk(rules, random.Random(1))[-1]
    assert np.array_equal(rules.completed(last).score, rules.as_they_are(last).score)


def test_only_groups_distinct_and_moving_orders_are_judged_one_by_one() -> None:
    for seed in range(30):
        problem = case(seed)
        rules = PartialRules(problem.rules, schedule_space(problem.graph, problem.platform))
        odd = ("group by", "distinct", "order by task-start-time")
        slow = sum(any(shape in rule.text for shape in odd) for rule in problem.rules.rules)
        assert rules.compiled == len(problem.rules) - slow


def test_a_deadline_that_cannot_be_met_is_seen_before_the_task_is_placed() -> None:
    problem = case(3)
    finish = float(problem.graph.work.sum())
    late = parse_rules(
        f"assert relationship requirement ((select sum(task-finish-time) from task) >= {finish * 99})"
    )
    rules = PartialRules(late, schedule_space(problem.graph, problem.platform))
    assert not rules.completed(unchanged(rules.empty())).allowed[0]
