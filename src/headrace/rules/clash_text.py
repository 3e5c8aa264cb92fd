"""Clashing requirements in words."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.rules.attributes import LABEL, RELATIONS
from headrace.rules.cpsat_select import Env
from headrace.rules.relations import Relations
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.show import show_condition
from headrace.rules.tree import (
    Column,
    Compare,
    Expression,
    IsUnknown,
    Number,
    Ordering,
    Relationship,
    Rule,
    Select,
    Text,
    Value,
)
from headrace.rules.walk import all_columns
from headrace.rules.words import show_expression, show_value

MOST_TESTS = 4
"""Tests of a rule that a message names."""
_PLACE = ("task-assigned-proc-id", "task-assigned-proc-name")


def describe(
    members: Sequence[tuple[Rule, tuple[tuple[Env, ...], ...], tuple[str, ...]]], space: ScheduleSpace
) -> str:
    """Why these requirements clash, in a sentence.

    The facts that select a host are named with it: `lillith has utilization 7`.
    """
    names = [f"`{rule.name}` (line {rule.line})" for rule, _, _ in members]
    reasons: list[str] = []
    for rule, rows, words in members:
        for fact in _facts(rule, rows, space):
            if fact not in reasons:
                reasons.append(fact)
        reasons += [word for word in dict.fromkeys(words[:MOST_TESTS]) if word not in reasons]
        if len(words) > MOST_TESTS:
            reasons.append(f"{len(words) - MOST_TESTS} more tests of {rule.name}")
    if len(names) == 1:
        return f"{names[0]} cannot hold: {_listed(reasons)}; leave it out or change it"
    leave = "leave out either one" if len(names) == 2 else "leave out any one of them"
    return f"{_listed(names)} clash: {_listed(reasons)}; {leave}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _facts(rule: Rule, rows: tuple[tuple[Env, ...], ...], space: ScheduleSpace) -> list[str]:
    """The numbers by which a rule's selects chose the hosts that clash."""
    if not isinstance(rule.body, Relationship):
        return []
    relations = Relations(space.graph, space.platform)
    found: list[str] = []
    columns = {
        column.attribute: column
        for column in all_columns(rule.body.condition)
        if column.attribute.startswith("proc-")
        and column.attribute not in ("proc-id", "proc-name")
        and not RELATIONS["proc"][column.attribute].scheduled
    }
    for envs in rows[:MOST_TESTS]:
        for relation, row in (place for env in envs for place in env.values()):
            if relation == "proc":
                for attribute, column in columns.items():
                    value = show_value(relations, column.type, relations.column("proc", attribute), row)
                    found.append(
                        f"{relations.name('proc', row)} has {attribute.removeprefix('proc-')} {value}"
                    )
    return list(dict.fromkeys(found))


def words_of_test(rule: Rule, rows: tuple[Env, ...], space: ScheduleSpace) -> str:
    """What a test asks for: `FFT.3 must run on lillith`, or the rule's condition with the rows that it is about."""
    relations = Relations(space.graph, space.platform)
    named = [relations.name(relation, row) for env in rows for relation, row in env.values()]
    body = rule.body
    if isinstance(body, Relationship):
        short = _placed(body, rows, relations) or _unused(body, rows, relations)
        if short:
            return short
        condition = body.condition
        if isinstance(condition, Compare):
            sides = f"{_side(condition.left)} {condition.op} {_side(condition.right)}"
        else:
            sides = show_condition(condition)
        return f"{sides}{_about(named)} ({rule.name})"
    if isinstance(body, Value):
        function = body.function
        what = "failed tests" if isinstance(function, Relationship | Ordering) else _side(function)
        ends = [f"{op} {_side(end)}" for op, end in ((">=", rule.low), ("<=", rule.high)) if end is not None]
        return f"{what} must be {_listed(ends)} ({rule.name})"
    column = _side(body.sequence)
    return (
        f"{column} {body.test} from {' to '.join(named)} ({rule.name})"
        if named
        else f"the order of {rule.name}"
    )


def _about(named: Sequence[str]) -> str:
    return f" for {_listed(list(dict.fromkeys(named)))}" if named else ""


def _side(expression: Expression) -> str:
    return show_expression(expression)


def _placed(body: Relationship, rows: tuple[Env, ...], relations: Relations) -> str:
    """A test that a task runs on a host, or not there."""
    condition = body.condition
    if not isinstance(condition, Compare) or condition.op not in ("=", "<>"):
        return ""
    verb = "must run on" if condition.op == "=" else "must not run on"
    left, right = condition.left, condition.right
    if not (_column(left, *_PLACE) and rows and len(rows[0]) == 1):
        return ""
    task = next(iter(rows[0].values()))
    name = relations.name(*task)
    if _column(right, "proc-id", "proc-name") and len(rows) == 2 and len(rows[1]) == 1:
        return f"{name} {verb} {relations.name(*next(iter(rows[1].values())))}"
    if isinstance(right, Text):
        return f"{name} {verb} {right.value}"
    if _column(right, *_PLACE) and len(rows) == 2 and len(rows[1]) == 1:
        other = relations.name(*next(iter(rows[1].values())))
        return f"{name} {verb} the host of {other}"
    return ""


def _unused(body: Relationship, rows: tuple[Env, ...], relations: Relations) -> str:
    """A test that a host has no task."""
    condition = body.condition
    if isinstance(condition, Compare) and condition.op == "=":
        empty = (
            _column(condition.left, "proc-task-count")
            and isinstance(condition.right, Number)
            and condition.right.value == 0
        )
    else:
        empty = isinstance(condition, IsUnknown) and _column(condition.operand, "proc-task-list")
    if not empty or not rows or len(rows[0]) != 1:
        return ""
    return f"{relations.name(*next(iter(rows[0].values())))} must have no task"


def _column(node: Expression, *attributes: str) -> bool:
    """Whether an expression is a select of one of these attributes."""
    match node:
        case Select(columns=(Column(attribute=attribute),)):
            return attribute in attributes and not attribute.startswith(LABEL)
    return False
