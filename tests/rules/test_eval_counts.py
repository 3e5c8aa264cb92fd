"""Counts of tests equal those of nested loops over every combination of rows."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import BadRules
from headrace.rules.evaluate import Verdict, evaluate_on, score
from headrace.rules.inversions import failed_pairs, first_failed_pair
from headrace.rules.parser import parse_rules
from headrace.rules.relations import Relations
from headrace.rules.vectors import Vector, numbers
from rules.eval_cases import random_relations, seeds

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Three = bool | None
"""TRUE, FALSE, or None for UNKNOWN."""


def judged(text: str, relations: Relations) -> Verdict:
    (verdict,) = evaluate_on(parse_rules(text), relations)
    return verdict


def values(relations: Relations, attribute: str) -> list[float | None]:
    column = relations.column("proc" if attribute.startswith("proc") else "task", attribute)
    return [float(v) if k else None for v, k in zip(column.values, column.known, strict=True)]


def test_of(op: str, a: float | None, b: float | None) -> Three:
    return None if a is None or b is None else OPERATORS[op](a, b)


test_of.__test__ = False  # type: ignore[attr-defined]


def both(parts: Iterator[Three] | list[Three]) -> Three:
    seen = list(parts)
    return False if False in seen else None if None in seen else True


def either(parts: list[Three]) -> Three:
    return True if True in parts else None if None in parts else False


ops = st.sampled_from(list(OPERATORS))
columns = st.sampled_from(["task-start-time", "task-finish-time", "task-exec-time", "proc-finish-time"])


def select(attribute: str) -> str:
    return f"(select {attribute} from {attribute.partition('-')[0]})"


@given(seeds, ops, columns, columns)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_comparison_of_two_columns(seed: int, op: str, left: str, right: str) -> None:
    relations = random_relations(seed)
    verdict = judged(f"assert relationship requirement ({select(left)} {op} {select(right)})", relations)
    pairs = list(itertools.product(values(relations, left), values(relations, right)))
    failed = sum(test_of(op, a, b) is False for a, b in pairs)
    assert (verdict.rows, verdict.failed, verdict.kept) == (len(pairs), failed, not failed)
    assert bool(verdict.first_miss) == bool(failed)


@given(seeds, ops, ops, columns, columns, st.sampled_from(["and", "or"]), st.booleans())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_conditions_of_several_selects(
    seed: int, first: str, second: str, left: str, right: str, word: str, negate: bool
) -> None:
    relations = random_relations(seed, tasks=4)
    text = (
        f"{'not ' * negate}({select(left)} {first} 1.5 * {select(right)} {word} {select(right)} {second} 1 "
        f"{word} {select(left)} between {select(right)} and 3)"
    )
    verdict = judged(f"assert relationship preference ({text})", relations)
    a, b = values(relations, left), values(relations, right)
    failed = total = 0
    for x1, y1, y2, x3, y3 in itertools.product(a, b, b, a, b):
        scaled = None if y1 is None else 1.5 * y1
        between = both([test_of(">=", x3, y3), test_of("<=", x3, 3.0)])
        parts = [test_of(first, x1, scaled), test_of(second, y2, 1.0), between]
        outcome = both(parts) if word == "and" else either(parts)
        outcome = outcome if not negate or outcome is None else not outcome
        total, failed = total + 1, failed + (outcome is False)
    assert (verdict.rows, verdict.failed) == (total, failed)
    assert verdict.scaled == pytest.approx(failed / total)


@given(seeds, ops, st.sampled_from(["task-start-time", "task-finish-time", "task-work"]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_orderings(seed: int, op: str, attribute: str) -> None:
    relations = random_relations(seed)
    text = f"assert ordering preference ((select {attribute} from task order by task-path-length desc), {op})"
    length = values(relations, "task-path-length")
    order = sorted(range(len(length)), key=lambda t: (-(length[t] or 0.0), t))
    sequence = [values(relations, attribute)[t] for t in order]
    failed = sum(test_of(op, a, b) is False for a, b in itertools.combinations(sequence, 2))
    verdict = judged(text, relations)
    n = len(sequence)
    assert (verdict.rows, verdict.failed) == (n * (n - 1) // 2, failed)


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 2.0, 3.0, None]), max_size=40), ops, st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_inversions(sequence: list[float | None], op: str, tolerant: bool) -> None:
    slack = 1e-9 if tolerant else 0.0

    def fails(a: float | None, b: float | None) -> bool:
        if a is None or b is None:
            return False
        near = abs(a - b) <= slack
        return near == (op in ("<", ">", "<>")) if near else not OPERATORS[op](a, b)

    vector = numbers([v or 0.0 for v in sequence], [v is not None for v in sequence])
    wrong = [
        (i, j) for i, j in itertools.combinations(range(len(sequence)), 2) if fails(sequence[i], sequence[j])
    ]
    assert failed_pairs(op, vector, tolerant) == len(wrong)  # type: ignore[arg-type]
    if wrong:
        assert first_failed_pair(op, vector, tolerant) == wrong[0]  # type: ignore[arg-type]


def test_long_sequence_is_counted_like_a_sort() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 500, 3000).astype(np.float64)
    wanted = int(sum((x[:i] > x[i]).sum() for i in range(len(x))))
    assert failed_pairs("<=", Vector(x, np.ones(len(x), np.bool_)), True) == wanted


def test_rounding_does_not_fail_a_plan_but_strictness_is_kept() -> None:
    relations = random_relations(2, partial=False)
    relations.finish = np.full(8, 0.1 + 0.2)
    for op, kept in (("<=", True), ("=", True), (">=", True), ("<", False), (">", False), ("<>", False)):
        rule = f"assert relationship requirement ((select task-finish-time from task) {op} 0.3)"
        assert judged(rule, relations).kept == kept, op


def test_values_of_rules_and_score() -> None:
    relations = random_relations(5, partial=False)
    rules = parse_rules(
        """
        short: assert value preference (opt-type = minimize, priority = 3,
          function = (select max(task-finish-time) from task), min = 0,
          max = 2 * (select max(task-finish-time) from task))
        many: assert value preference (opt-type = maximize, priority = 1,
          function = (select count(*) from task where task-scheduled = 1), min = 0, max = (select count(*) from task))
        few: assert value requirement (function = (select count(*) from task), min = 9)
        nested: assert value preference (opt-type = minimize, priority = 0, min = 0, max = 1,
          function = assert relationship preference ((select task-id from task) > 5))
        """
    )
    short, many, few, nested = verdicts = evaluate_on(rules, relations)
    assert (short.scaled, short.share, many.scaled) == (0.5, 0.375, 0.0)
    assert (few.kept, few.first_miss) == (False, "count(*) is 8, wanted >= 9")
    assert (nested.value, nested.scaled, nested.share) == (6.0, 1.0, 0.0)
    assert score(verdicts) == 0.375


def test_words_of_the_first_miss() -> None:
    relations = random_relations(5, partial=False)
    relations.host = np.array([0, 0, 1, 0, 0, 0, 0, 0], np.int32)
    verdict = judged(
        "assert relationship requirement ((select task-assigned-proc-id from task) = "
        "(select proc-id from proc where proc-name = 'h0'))",
        relations,
    )
    name = relations.graph.task_names[2]
    assert verdict.first_miss == f"task {name}: task-assigned-proc-id is h1, wanted = h0"


def test_empty_select_holds_and_warns() -> None:
    verdict = judged(
        "assert relationship requirement ((select task-id from task where task-name = 'x') > 99)",
        random_relations(1),
    )
    assert (verdict.kept, verdict.rows) == (True, 0)
    assert "selects nothing" in verdict.warning


def test_processor_without_tasks_in_both_spellings() -> None:
    relations = random_relations(5, partial=False)
    relations.host = np.zeros(8, np.int32)
    relations.placed = relations.host >= 0
    unknown = judged(
        "assert relationship requirement ((select proc-task-list from proc) = unknown)", relations
    )
    counted = judged("assert relationship requirement ((select proc-task-count from proc) = 0)", relations)
    assert (unknown.rows, unknown.failed) == (counted.rows, counted.failed) == (3, 1)


def test_negative_priority_and_several_values_are_refused() -> None:
    relations = random_relations(1)
    with pytest.raises(BadRules, match="priority of rule-1 is -1"):
        judged("assert relationship preference ((select task-id from task) > 1, priority = 1 - 2)", relations)
    with pytest.raises(BadRules, match="8 values where one is needed"):
        judged("assert value requirement (function = (select task-work from task), max = 1)", relations)
