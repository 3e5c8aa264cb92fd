"""From what the grammar recognises to the tree: nodes without types, and the settings of a rule put in their places."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from lark import Token

from headrace.model.units import unit_factors
from headrace.rules.lexer import span_of
from headrace.rules.messages import Problem, listed
from headrace.rules.tree import (
    Absolute,
    Aggregate,
    AggregateName,
    And,
    Arithmetic,
    Between,
    Column,
    Compare,
    Comparison,
    Condition,
    Expression,
    Importance,
    In,
    IsUnknown,
    Kind,
    Like,
    Negative,
    Not,
    Number,
    Operator,
    Or,
    OrderBy,
    Ordering,
    Relationship,
    Rule,
    Select,
    Source,
    Span,
    Text,
    Type,
    Unknown,
    Value,
)

Goal: TypeAlias = Literal["minimize", "maximize"]


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: Any
    """An expression; a `Goal` for opt-type; an expression or a `Statement` for function."""
    at: Span


@dataclass(frozen=True, slots=True)
class Statement:
    """An `assert` as written."""

    kind: Kind
    importance: Importance
    body: Relationship | Ordering | None
    """None for value rules, which have settings only."""
    settings: tuple[Setting, ...]
    at: Span


# Settings.


def rule_of(statement: Statement, name: str, at: Span, text: str) -> Rule:
    """The rule that a statement makes, without types.

    Raises
    ------
    Problem
        If a setting is missing, given twice, or has no meaning for this kind of rule.
    """
    given: dict[str, Setting] = {}
    for setting in statement.settings:
        if setting.name in given:
            raise Problem(f"{setting.name} is given twice", setting.at, "leave one of them out")
        given[setting.name] = setting
    value = statement.kind == "value"
    if statement.importance == "requirement":
        _refuse(given, ("priority", "opt-type") if value else ("priority", "min", "max"), statement.kind)
    body = _value_body(statement, given) if value else statement.body
    assert body is not None
    priority, low, high = (given[key].value if key in given else None for key in ("priority", "min", "max"))
    return Rule(name, statement.importance, statement.kind, body, priority, low, high, at, text)


def _refuse(given: dict[str, Setting], names: tuple[str, ...], kind: Kind) -> None:
    for name in names:
        if name in given:
            raise Problem(
                f"{name} has no meaning in a {kind} requirement",
                given[name].at,
                "leave it out, or make the rule a preference",
            )


def _value_body(statement: Statement, given: dict[str, Setting]) -> Value:
    preference = statement.importance == "preference"
    needed = ("opt-type", "function", "max") if preference else ("function",)
    missing = [name for name in needed if name not in given]
    if not preference and not given.keys() & {"min", "max"}:
        missing.append("min or max")
    if missing:
        raise Problem(f"the value {statement.importance} lacks {listed(missing, 'and')}", statement.at)
    function = given["function"].value
    return Value(
        goal=given["opt-type"].value if preference else None,
        function=_counted(function) if isinstance(function, Statement) else function,
        at=given["function"].at,
    )


def _counted(statement: Statement) -> Relationship | Ordering:
    """The relationship or ordering whose failed tests a value rule counts."""
    if statement.body is None or statement.importance == "requirement":
        raise Problem(
            f"the function of a value rule cannot be a {statement.kind} {statement.importance}",
            statement.at,
            "write an expression, or a relationship or ordering preference, which counts failed tests",
        )
    for setting in statement.settings:
        raise Problem(
            f"{setting.name} has no meaning in a nested preference", setting.at, "give it in the value rule"
        )
    return statement.body


# Nodes.


def joined(first: Span, last: Span) -> Span:
    """From the first place to the end of the last one, if they are in one line."""
    if first.line != last.line:
        return first
    return Span(first.line, first.column, max(first.length, last.column + last.length - first.column))


_UNIT = re.compile(r"[^\W\d_]+\Z")
_UNITS = {
    unit: (kind, factor)
    for kind in (Type.TIME, Type.SIZE)
    for unit, factor in unit_factors(kind.value).items()
}


class Builder:
    """What the parser calls for each construct it has recognised: the methods are named after the grammar's rules."""

    def rule(self, label: Token | None, statement: Statement) -> tuple[Token | None, Statement]:
        return label, statement

    def relationship(
        self, start: Token, importance: Token, word: Token | None, priority: Expression | None, *rest: Any
    ) -> Statement:
        condition, *settings = rest
        body = Relationship(condition, condition.at)
        return _statement("relationship", start, importance, body, word, priority, settings)

    def ordering(
        self, start: Token, importance: Token, word: Token | None, priority: Expression | None, *rest: Any
    ) -> Statement:
        sequence, test, *settings = rest
        body = Ordering(sequence, test, sequence.at)
        return _statement("ordering", start, importance, body, word, priority, settings)

    def value(
        self,
        start: Token,
        importance: Token,
        word: Token | None,
        priority: Expression | None,
        *settings: Setting,
    ) -> Statement:
        return _statement("value", start, importance, None, word, priority, list(settings))

    def setting(self, name: Token, equal: Token, value: Any) -> Setting:
        key = name.lower().replace("_", "-")
        if isinstance(value, Token):
            value = "minimize" if value.type == "MINIMIZE" else "maximize"
        return Setting(key, value, span_of(name))

    # Conditions.

    def either(self, *parts: Condition) -> Or:
        return Or(parts, joined(parts[0].at, parts[-1].at))

    def both(self, *parts: Condition) -> And:
        return And(parts, joined(parts[0].at, parts[-1].at))

    def negate(self, word: Token, part: Condition) -> Not:
        return Not(part, joined(span_of(word), part.at))

    def comparison(self, sign: Token) -> Comparison:
        return "<>" if sign == "!=" else cast(Comparison, str(sign))

    def compare(self, left: Expression, op: Comparison, right: Expression) -> Compare:
        return Compare(op, left, right, joined(left.at, right.at))

    def is_in(self, operand: Expression, negated: Token | None, *options: Expression) -> In:
        at = joined(operand.at, options[-1].at)
        if len(options) == 1 and isinstance(options[0], Select):
            return In(operand, options[0], negated is not None, at)
        return In(operand, options, negated is not None, at)

    def between(
        self, operand: Expression, negated: Token | None, low: Expression, high: Expression
    ) -> Between:
        return Between(operand, low, high, negated is not None, joined(operand.at, high.at))

    def like(self, operand: Expression, negated: Token | None, pattern: Token) -> Like:
        return Like(operand, unquoted(pattern), negated is not None, joined(operand.at, span_of(pattern)))

    def is_unknown(self, operand: Expression, negated: Token | None, word: Token) -> IsUnknown:
        return IsUnknown(operand, negated is not None, joined(operand.at, span_of(word)))

    # Expressions.

    def arithmetic(self, left: Expression, op: Token, right: Expression) -> Arithmetic:
        return Arithmetic(cast(Operator, str(op)), left, right, joined(left.at, right.at))

    def negative(self, sign: Token, operand: Expression) -> Negative:
        return Negative(operand, joined(span_of(sign), operand.at))

    def number(self, token: Token) -> Number:
        return Number(_finite(float(token.replace("_", "")), token), span_of(token))

    def quantity(self, token: Token) -> Number:
        match = _UNIT.search(token)
        assert match is not None
        kind, factor = _UNITS[match[0]]
        number = float(token[: match.start()].replace("_", ""))
        return Number(_finite(number * factor, token), span_of(token), kind)

    def text(self, token: Token) -> Text:
        return Text(unquoted(token), span_of(token))

    def unknown(self, token: Token) -> Unknown:
        return Unknown(span_of(token))

    def column(self, *names: Token) -> Column:
        if len(names) == 1:
            return Column("", names[0].value, span_of(names[0]))
        source = names[0].lower().replace("_", "-")
        return Column(source, names[1].value, joined(span_of(names[0]), span_of(names[1])))

    def absolute(self, word: Token, operand: Expression) -> Absolute:
        return Absolute(operand, joined(span_of(word), operand.at))

    def aggregate(self, name: Token, distinct: Token | None, operand: Expression) -> Aggregate:
        at = joined(span_of(name), operand.at)
        return Aggregate(cast(AggregateName, name.lower()), operand, distinct is not None, at)

    def count_rows(self, name: Token, star: Token) -> Aggregate:
        return Aggregate("count", None, False, joined(span_of(name), span_of(star)))

    # Selects.

    def select(
        self,
        word: Token,
        distinct: Token | None,
        columns: tuple[Expression, ...],
        sources: tuple[tuple[Source, ...], list[Condition]],
        where: Condition | None,
        group: tuple[Expression, ...] | None,
        having: Condition | None,
        order: tuple[OrderBy, ...] | None,
    ) -> Select:
        conditions = sources[1] + ([where] if where is not None else [])
        return Select(
            columns,
            sources[0],
            _all(conditions),
            group or (),
            having,
            order or (),
            distinct is not None,
            span_of(word),
        )

    def columns(self, *columns: Any) -> tuple[Expression, ...]:
        return () if isinstance(columns[0], Token) else columns

    def group(self, *keys: Expression) -> tuple[Expression, ...]:
        return keys

    def order(self, *keys: OrderBy) -> tuple[OrderBy, ...]:
        return keys

    def order_key(self, key: Expression, direction: Token | None) -> OrderBy:
        return OrderBy(key, direction is not None and direction.type == "DESC")

    def sources(self, *parts: Source | Condition) -> tuple[tuple[Source, ...], list[Condition]]:
        """The sources, and the conditions of joins, which are conditions on the rows like those of `where`."""
        sources = tuple([part for part in parts if isinstance(part, Source)])
        return sources, [part for part in parts if not isinstance(part, Source)]

    def source(self, *names: Token) -> Source:
        relation = alias = names[0].lower().replace("_", "-")
        at = span_of(names[0])
        if len(names) == 2:
            alias = names[1].lower().replace("_", "-")
            at = joined(at, span_of(names[1]))
        return Source(cast(Any, relation), alias, at)


def _statement(
    kind: Kind,
    start: Token,
    importance: Token,
    body: Relationship | Ordering | None,
    word: Token | None,
    priority: Expression | None,
    settings: list[Setting],
) -> Statement:
    if word is not None:
        settings = [Setting("priority", priority, span_of(word)), *settings]
    return Statement(kind, cast(Importance, importance.lower()), body, tuple(settings), span_of(start))


def _all(conditions: list[Condition]) -> Condition | None:
    """Conditions joined by `and`, without an `and` within an `and`."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    parts: list[Condition] = []
    for condition in conditions:
        parts += condition.parts if isinstance(condition, And) else (condition,)
    return And(tuple(parts), joined(parts[0].at, parts[-1].at))


def unquoted(token: str) -> str:
    """
    >>> unquoted("'it''s'")
    "it's"
    """
    inner, quote = token[1:-1], token[0]
    return inner.replace(quote * 2, quote) if quote in inner else inner


def _finite(value: float, token: Token) -> float:
    if not math.isfinite(value):
        raise Problem("the number is too large", span_of(token))
    return value
