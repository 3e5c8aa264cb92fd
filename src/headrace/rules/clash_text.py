"""Clashing requirements in words."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.rules.attributes import LABEL, RELATIONS
from headrace.rules.cpsat_select import Env
from headrace.rules.relations import Relations
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.show import show_condition
from headrace.rules.tree import (
    Between,
    Column,
    Compare,
    Condition,
    Expression,
    In,
    IsUnknown,
    Like,
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


def _listed(parts: Sequence[str], last: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


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
        return f"{_in_words(body.condition)}{_about(named)} ({rule.name})"
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


def _in_words(condition: Condition) -> str:
    """A condition that is about no task on a host."""
    match condition:
        case Compare(op=op, left=left, right=right):
            return f"{_side(left)} {op} {_side(right)}"
        case In(operand=operand, options=tuple(options), negated=negated):
            listed = _listed([_side(option) for option in options], "or")
            return f"{_side(operand)} must {'not ' if negated else ''}be {listed}"
        case In(operand=operand, options=Select() as options, negated=negated):
            return f"{_side(operand)} must {'not ' if negated else ''}be one of {_side(options)}"
        case Between(operand=operand, low=low, high=high, negated=negated):
            return (
                f"{_side(operand)} must {'not ' if negated else ''}be between {_side(low)} and {_side(high)}"
            )
        case Like(operand=operand, pattern=pattern, negated=negated):
            return f"{_side(operand)} must {'not ' if negated else ''}be like {pattern!r}"
    return show_condition(condition)


def _about(named: Sequence[str]) -> str:
    return f" for {_listed(list(dict.fromkeys(named)))}" if named else ""


def _side(expression: Expression) -> str:
    return show_expression(expression)


def _placed(body: Relationship, rows: tuple[Env, ...], relations: Relations) -> str:
    """A test that a task runs on a host or at a site, or not there."""
    condition = body.condition
    match condition:
        case Compare(op="=" | "<>" as op, left=left):
            negated = op == "<>"
        case In(operand=left, negated=negated):
            pass
        case _:
            return ""
    if not (_column(left, *_PLACE, "task-site") and rows and len(rows[0]) == 1):
        return ""
    where = "at site" if _column(left, "task-site") else "on"
    verb = f"{relations.name(*next(iter(rows[0].values())))} must {'not ' if negated else ''}run {where}"
    if isinstance(condition, In):
        return _on_one_of(condition, verb, relations)
    right, others = condition.right, [next(iter(row.values())) for row in rows[1:] if len(row) == 1]
    if isinstance(right, Text):
        return f"{verb} {right.value}"
    if len(rows) != 2 or not others:
        return ""
    if where == "on" and _column(right, "proc-id", "proc-name"):
        return f"{verb} {relations.name(*others[0])}"
    if where == "on" and _column(right, *_PLACE):
        return f"{verb} the host of {relations.name(*others[0])}"
    return ""


def _on_one_of(condition: In, verb: str, relations: Relations) -> str:
    """A list of hosts by name or number, or of sites."""
    if not isinstance(condition.options, tuple) or not condition.options:
        return ""
    hosts, names = relations.platform.hosts, []
    for option in condition.options:
        if isinstance(option, Text):
            names.append(option.value)
        elif isinstance(option, Number) and option.value in range(len(hosts)):
            names.append(hosts[int(option.value)].name)
        else:
            return ""
    return f"{verb} {_listed(names, 'or')}"


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
