"""Judge a schedule by rules.

Requirements are kept if no test fails; preferences are scaled to 0 (as wished) to 1 and weighted by their priorities.
A test that is UNKNOWN passes. Comparisons allow for rounding; `vectors` says how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.model.errors import BadRules
from headrace.rules.counting import Product, count_tests, product
from headrace.rules.inversions import failed_pairs, first_failed_pair
from headrace.rules.relations import Placed, Relations
from headrace.rules.select import Evaluator
from headrace.rules.tree import (
    Expression,
    Importance,
    Kind,
    Ordering,
    Relationship,
    Rule,
    RuleSet,
    Type,
    Value,
)
from headrace.rules.vectors import EXACT, compare, constant
from headrace.rules.walk import top_selects
from headrace.rules.words import show_expression, show_value

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.platform import Platform


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says of a schedule."""

    name: str
    importance: Importance
    kind: Kind
    line: int
    kept: bool
    """No test failed. Value preferences have no test: they are always kept."""
    rows: int
    """Number of tests."""
    failed: int
    first_miss: str = ""
    """The first test that failed: which task or host, its value and the one wanted."""
    value: float | None = None
    """Of value rules; the number of failed tests of others. None: UNKNOWN."""
    scaled: float | None = None
    """Of preferences: from 0, as wished, to 1."""
    share: float | None = None
    """Of preferences: what it adds to the score, `scaled` times its priority over the sum of all priorities."""
    warning: str = ""
    priority: float = 0.0
    """0 for requirements."""


def evaluate(rules: RuleSet, graph: Graph, platform: Platform, plan: Placed | None) -> list[Verdict]:
    """Judge a plan, a partial schedule (tasks on host -1 are not placed) or none (None): a verdict for each rule.

    Each rule takes O(n log n) in the number n of rows that it selects or joins; a rule that would join more than
    `frames.MOST_ROWS` rows is an error.

    >>> import headrace as hr
    >>> from headrace.rules.parser import parse_rules
    >>> program = hr.Program()
    >>> _ = program.task(None, work=4.0, name="FFT.1"), program.task(None, work=2.0, name="FFT.2")
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> rules = parse_rules('''on-h0: assert relationship requirement (
    ...     (select task-assigned-proc-name from task where task-name = "FFT") = "h0")''')
    >>> verdict, = evaluate(rules, program.graph, lab, hr.plan(program, lab, scheduler="heft"))
    >>> verdict.kept, verdict.rows, verdict.failed
    (False, 2, 1)
    >>> verdict.first_miss
    "task FFT.2: task-assigned-proc-name is 'h1', wanted = 'h0'"
    """
    return evaluate_on(rules, Relations(graph, platform, plan))


def evaluate_on(rules: RuleSet, relations: Relations) -> list[Verdict]:
    """Like `evaluate`, on relations that exist already."""
    evaluator = Evaluator(relations, rules.source)
    verdicts = [_judge(rule, evaluator) for rule in rules.rules]
    total = sum(verdict.priority for verdict in verdicts if verdict.scaled is not None)
    return [_with_share(verdict, total) for verdict in verdicts]


def _with_share(verdict: Verdict, total: float) -> Verdict:
    if verdict.scaled is None:
        return verdict
    return replace(verdict, share=verdict.scaled * verdict.priority / total if total > 0 else 0.0)


def score(verdicts: list[Verdict]) -> float:
    """The sum of the shares of all preferences: 0 is as wished in every respect, 1 the worst."""
    return math.fsum(verdict.share for verdict in verdicts if verdict.share is not None)


def _judge(rule: Rule, evaluator: Evaluator) -> Verdict:
    body = rule.body
    if isinstance(body, Value):
        verdict = _value(rule, body, evaluator)
    else:
        rows, failed, miss = _tests(body, evaluator)
        verdict = _verdict(rule, rows, failed, miss, float(failed))
    if rule.importance == "preference":
        verdict = _scaled(rule, verdict, evaluator)
    warning = _warning(rule, evaluator)
    return replace(verdict, warning=warning) if warning else verdict


def _verdict(rule: Rule, rows: int, failed: int, miss: str, value: float | None) -> Verdict:
    return Verdict(
        rule.name, rule.importance, rule.kind, rule.line, failed == 0, rows, failed, miss, value=value
    )


def _tests(body: Relationship | Ordering, evaluator: Evaluator) -> tuple[int, int, str]:
    """Number of tests, of failed ones, and the first of these in words."""
    if isinstance(body, Relationship):
        count = count_tests(evaluator, body.condition)
        return count.total, count.false, count.miss() if count.false else ""
    sequence = evaluator.table(body.sequence)
    tolerant = body.sequence.type not in EXACT
    n = len(sequence.owner)
    failed = failed_pairs(body.test, sequence.value, tolerant)
    if not failed:
        return n * (n - 1) // 2, 0, ""
    first, second = first_failed_pair(body.test, sequence.value, tolerant)
    whole = product(evaluator, body.sequence)
    return (
        n * (n - 1) // 2,
        failed,
        f"{_at(evaluator, whole, first)}, wanted {body.test} {_at(evaluator, whole, second)}",
    )


def _at(evaluator: Evaluator, sequence: Product, row: int) -> str:
    from headrace.rules.words import show_row

    named = ", ".join(show_row(axis, at) for axis, at in sequence.position(row))
    shown = show_value(evaluator.relations, sequence.expression.type, sequence.value, row)
    return f"{show_expression(sequence.expression)} {shown}" + (f" of {named}" if named else "")


def _value(rule: Rule, body: Value, evaluator: Evaluator) -> Verdict:
    if isinstance(body.function, Relationship | Ordering):
        value: float | None = float(_tests(body.function, evaluator)[1])
        type, what = Type.NUMBER, "number of failed tests"
    else:
        value = scalar(body.function, evaluator)
        type, what = body.function.type, show_expression(body.function)
    if rule.importance == "preference":
        return _verdict(rule, 0, 0, "", value)
    here = constant(0.0 if value is None else value)
    misses = []
    ends = [("<=", rule.high), (">=", rule.low)]
    for op, end in ends:
        limit = None if end is None else scalar(end, evaluator)
        if limit is None or value is None:
            continue
        there = constant(limit)
        if compare(op, here, there, type not in EXACT).false[0]:  # type: ignore[arg-type]
            shown = [show_value(evaluator.relations, type, v, 0) for v in (here, there)]
            misses.append(f"{what} is {shown[0]}, wanted {op} {shown[1]}")
    return _verdict(rule, 1, min(1, len(misses)), misses[0] if misses else "", value)


def scalar(expression: Expression, evaluator: Evaluator) -> float | None:
    """The single value of an expression; None if it is UNKNOWN or a select in it has no row."""
    found = product(evaluator, expression)
    if found.value.length > 1:
        raise BadRules(
            f"this has {found.value.length:,} values where one is needed",
            where=evaluator.source,
            line=expression.at.line,
            column=expression.at.column,
            hint="use an aggregate such as max or sum",
        )
    return float(found.value.values[0]) if found.value.length and found.value.known[0] else None


def _scaled(rule: Rule, verdict: Verdict, evaluator: Evaluator) -> Verdict:
    """From 0 to 1 between min and max, reversed for maximize; an UNKNOWN value or limit counts nothing."""
    priority = 1.0 if rule.priority is None else (scalar(rule.priority, evaluator) or 0.0)
    if priority < 0:
        assert rule.priority is not None
        raise BadRules(
            f"the priority of {rule.name} is {priority:g}",
            where=evaluator.source,
            line=rule.priority.at.line,
            column=rule.priority.at.column,
            hint="give a priority of 0 or more",
        )
    low = 0.0 if rule.low is None else scalar(rule.low, evaluator)
    high = float(verdict.rows) if rule.high is None else scalar(rule.high, evaluator)
    reverse = isinstance(rule.body, Value) and rule.body.goal == "maximize"
    if verdict.value is None or low is None or high is None:
        return replace(verdict, scaled=0.0, priority=priority)
    return replace(verdict, scaled=scale(verdict.value, low, high, reverse), priority=priority)


def scale(value: float, low: float, high: float, reverse: bool = False) -> float:
    """
    >>> scale(3.0, 0.0, 4.0), scale(3.0, 0.0, 4.0, reverse=True), scale(3.0, 2.0, 2.0), scale(-1.0, 0.0, 4.0)
    (0.75, 0.25, 1.0, 0.0)
    """
    plain = float(value > low) if high <= low else min(1.0, max(0.0, (value - low) / (high - low)))
    return 1.0 - plain if reverse else plain


def _warning(rule: Rule, evaluator: Evaluator) -> str:
    """Selects without rows: the rule says nothing about this schedule."""
    for select in top_selects(rule.body):
        if not len(evaluator.table(select).owner):
            return f"selects nothing: {show_expression(select)} in line {select.at.line} has no rows"
    return ""
