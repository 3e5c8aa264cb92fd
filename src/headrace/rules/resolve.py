"""Names resolved and types checked: an untyped tree to the same tree with types and the source of every column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.rules.attributes import LABEL, RELATIONS
from headrace.rules.groups import check_groups, check_order, check_sources
from headrace.rules.messages import Problem, did_you_mean, listed, printable
from headrace.rules.tree import (
    Absolute,
    Aggregate,
    And,
    Arithmetic,
    Between,
    Body,
    Column,
    Compare,
    Condition,
    Expression,
    In,
    IsUnknown,
    Like,
    Negative,
    Not,
    Number,
    Or,
    Ordering,
    RelationName,
    Relationship,
    Rule,
    Select,
    Source,
    Text,
    Type,
    Unknown,
    Value,
)
from headrace.rules.types import as_numeric, fitted, named, plain, require_number, result_type


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at some place: the sources of the select, and those of the selects around it."""

    sources: tuple[Source, ...] = ()
    outer: Scope | None = None
    no_aggregates: str = "outside a select"
    """Where this place is, if aggregates cannot stand here; empty: they can."""
    depth: int = 1
    """Selects around it, and one."""


TOP = Scope()


def resolve_rule(rule: Rule) -> Rule:
    """The rule with names resolved and types checked. Time is linear in the rule, times the depth of its selects.

    Raises
    ------
    Problem
        If a name is unknown or ambiguous, or types do not fit.
    """
    body = _body(rule.body)
    type = _value_type(body)
    priority = None if rule.priority is None else _setting(rule.priority, Type.NUMBER, "priority")
    low = None if rule.low is None else _setting(rule.low, type, "min")
    high = None if rule.high is None else _setting(rule.high, type, "max")
    return Rule(rule.name, rule.importance, rule.kind, body, priority, low, high, rule.at, rule.text)


def _value_type(body: Body) -> Type:
    """The type of what a preference is scaled by: that of a function, or a number of failed tests."""
    if isinstance(body, Value) and not isinstance(body.function, Relationship | Ordering):
        return body.function.type
    return Type.NUMBER


def _body(body: Body) -> Body:
    match body:
        case Relationship(condition=condition):
            return Relationship(_condition(condition, TOP), body.at)
        case Ordering(sequence=sequence):
            sequence = _select(sequence, TOP)
            if sequence.type is Type.TASKS:
                raise Problem("a task list has no order", sequence.at)
            return replace(body, sequence=sequence)
    if isinstance(body.function, Relationship | Ordering):
        function = _body(body.function)
        assert not isinstance(function, Value)
        return replace(body, function=function)
    return replace(body, function=require_number(_expression(body.function, TOP), "function"))


def _setting(expression: Expression, wanted: Type, name: str) -> Expression:
    expression = require_number(as_numeric(_expression(expression, TOP), wanted), name)
    if plain(expression.type) not in (Type.NUMBER, plain(wanted)):
        raise Problem(f"{name} is {named(expression.type)}, but must be {named(wanted)}", expression.at)
    return expression


# Conditions.


def _condition(condition: Condition, scope: Scope) -> Condition:
    match condition:
        case And(parts=parts):
            return And(tuple([_condition(part, scope) for part in parts]), condition.at)
        case Or(parts=parts):
            return Or(tuple([_condition(part, scope) for part in parts]), condition.at)
        case Not(part=part):
            return replace(condition, part=_condition(part, scope))
        case Compare():
            return _compare(condition, scope)
        case In():
            return _in(condition, scope)
        case Between(operand=operand, low=low, high=high):
            value, low = fitted(_expression(operand, scope), _expression(low, scope), condition.at)
            value, high = fitted(value, _expression(high, scope), condition.at)
            return replace(condition, operand=value, low=low, high=high)
        case Like(operand=operand):
            value = _expression(operand, scope)
            if value.type is not Type.TEXT:
                raise Problem(f"like compares text, not {named(value.type)}", value.at)
            return Like(value, condition.pattern, condition.negated, condition.at)
        case IsUnknown(operand=operand):
            return replace(condition, operand=_expression(operand, scope))


def _compare(condition: Compare, scope: Scope) -> Compare | IsUnknown:
    left, right = condition.left, condition.right
    if isinstance(left, Unknown):
        left, right = right, left
    if isinstance(right, Unknown):
        if condition.op not in ("=", "<>"):
            raise Problem(
                f"{condition.op} cannot be used with unknown", condition.at, "write = unknown or <> unknown"
            )
        return IsUnknown(_expression(left, scope), condition.op == "<>", condition.at)
    left, right = fitted(_expression(left, scope), _expression(right, scope), condition.at)
    return Compare(condition.op, left, right, condition.at)


def _in(condition: In, scope: Scope) -> In:
    operand = _expression(condition.operand, scope)
    if isinstance(condition.options, Select):
        operand, options = fitted(operand, _select(condition.options, scope), condition.at)
        assert isinstance(options, Select)
        return In(operand, options, condition.negated, condition.at)
    found: list[Expression] = []
    for option in condition.options:
        if isinstance(option, Text) and operand.type is Type.TEXT:
            found.append(option)
            continue
        operand, value = fitted(operand, _expression(option, scope), option.at)
        found.append(value)
    return In(operand, tuple(found), condition.negated, condition.at)


# Expressions.


def _expression(expression: Expression, scope: Scope) -> Expression:
    match expression:
        case Number() | Text():
            return expression
        case Unknown():
            raise Problem(
                "unknown can only be compared, with = or <>",
                expression.at,
                "write x is unknown or x = unknown",
            )
        case Column():
            return _column(expression, scope)
        case Arithmetic():
            return _arithmetic(expression, scope)
        case Negative(operand=operand) | Absolute(operand=operand):
            what = "-" if isinstance(expression, Negative) else "abs"
            value = require_number(_expression(operand, scope), what)
            return replace(expression, operand=value, type=plain(value.type))
        case Aggregate():
            return _aggregate(expression, scope)
        case Select():
            return _select(expression, scope)


def _arithmetic(expression: Arithmetic, scope: Scope) -> Arithmetic:
    left, right = _expression(expression.left, scope), _expression(expression.right, scope)
    left, right = as_numeric(left, right.type), as_numeric(right, left.type)
    left, right = require_number(left, expression.op), require_number(right, expression.op)
    found = result_type(expression.op, left.type, right.type, expression.at)
    return replace(expression, left=left, right=right, type=found)


def _aggregate(expression: Aggregate, scope: Scope) -> Aggregate:
    name = expression.name
    if scope.no_aggregates:
        hint = "use having" if scope.no_aggregates == "in where" else "write it in the columns of a select"
        raise Problem(f"{name}(...) cannot stand {scope.no_aggregates}", expression.at, hint)
    if expression.operand is None:
        return expression
    operand = _expression(expression.operand, replace(scope, no_aggregates="within another aggregate"))
    if name == "count":
        return Aggregate(name, operand, expression.distinct, expression.at)
    operand = require_number(operand, name)
    kept = name in ("min", "max")
    return replace(expression, operand=operand, type=operand.type if kept else plain(operand.type))


# Columns.


def _column(column: Column, scope: Scope) -> Column:
    name = _attribute_name(column.attribute)
    source = _source_of(column, name, scope)
    return Column(source.alias, name, column.at, _TYPES.get(name, Type.TEXT))


def _attribute_name(written: str) -> str:
    """With hyphens and in lower case, but for the name of a label, whose case is the user's."""
    name = written.replace("_", "-")
    if name.lower().startswith(LABEL):
        return LABEL + name[len(LABEL) :]
    return name.lower()


_RELATION_OF = {attribute: relation for relation, known in RELATIONS.items() for attribute in known}
_TYPES = {attribute.name: attribute.type for known in RELATIONS.values() for attribute in known.values()}
"""Of all attributes but labels, which are texts."""


def _relation_of(attribute: str) -> RelationName | None:
    return _RELATION_OF.get(attribute) or ("task" if attribute.startswith(LABEL) else None)


def _source_of(column: Column, name: str, scope: Scope) -> Source:
    """The nearest source that has the attribute; it must be the only one of its select."""
    relation = _relation_of(name)
    if relation is None:
        raise _unknown_attribute(column, scope)
    if len(scope.sources) == 1:  # as almost always
        (only,) = scope.sources
        if only.relation == relation and column.source in ("", only.alias):
            return only
    hidden: set[str] = set()
    for level in _levels(scope):
        found = [
            source
            for source in level.sources
            if source.relation == relation and column.source in ("", source.alias)
        ]
        if len(found) > 1:
            choices = listed(f"{source.alias}.{name}" for source in found)
            raise Problem(f"{name} could be that of several sources", column.at, f"write {choices}")
        if found and found[0].alias in hidden:
            raise Problem(
                f"{name} is that of an outer {found[0].alias}, which another source of this name hides",
                column.at,
                "give the inner source another name",
            )
        if found:
            return found[0]
        hidden |= {source.alias for source in level.sources}
        if column.source in hidden:
            break
    raise _no_source(column, name, relation, scope)


def _levels(scope: Scope) -> Iterator[Scope]:
    level: Scope | None = scope
    while level is not None:
        yield level
        level = level.outer


def _no_source(column: Column, name: str, relation: RelationName, scope: Scope) -> Problem:
    known = [source.alias for level in _levels(scope) for source in level.sources]
    if not known:
        return Problem(f"{name} stands outside a select", column.at, f"write (select {name} from {relation})")
    if column.source and column.source not in known:
        near = did_you_mean(column.source, known, f": known are {listed(known, 'and')}")
        return Problem(f"unknown source {column.source}{near}", column.at)
    if column.source:
        return Problem(f"{column.source} has no {name}, which is an attribute of {relation}", column.at)
    return Problem(
        f"{name} is an attribute of {relation}, which is not in from", column.at, f"from {relation}, ..."
    )


def _unknown_attribute(column: Column, scope: Scope) -> Problem:
    name = _attribute_name(column.attribute)
    relations = {source.relation for level in _levels(scope) for source in level.sources}
    near = [attribute for relation in RELATIONS if relation in relations for attribute in RELATIONS[relation]]
    every = [attribute for known in RELATIONS.values() for attribute in known]
    if any(name.startswith(f"{attribute}-") for attribute in every):
        hint = "a minus needs blanks around it"
    else:
        hint = "" if did_you_mean(name, every) else "`headrace rules --attributes` lists them"
    suggestion = did_you_mean(name, near) or did_you_mean(name, every)
    shown = printable(column.attribute, 60)
    return Problem(f"unknown attribute {shown}{suggestion if 'minus' not in hint else ''}", column.at, hint)


# Selects.


def _select(select: Select, outer: Scope) -> Select:
    check_sources(select, outer.depth)
    rows = Scope(select.sources, outer, "in where", outer.depth + 1)
    groups = Scope(select.sources, outer, "", outer.depth + 1)
    where = None if select.where is None else _condition(select.where, rows)
    group_by: tuple[Expression, ...] = ()
    if select.group_by:
        keys = replace(rows, no_aggregates="in group by")
        group_by = tuple([_expression(key, keys) for key in select.group_by])
    if len(select.columns) != 1:
        found = f"{len(select.columns)} columns" if select.columns else "*"
        raise Problem(f"a select has one column, not {found}", select.at)
    column = _expression(select.columns[0], groups)
    having = None if select.having is None else _condition(select.having, groups)
    order_by = tuple([replace(item, key=_expression(item.key, groups)) for item in select.order_by])
    resolved = Select(
        (column,),
        select.sources,
        where,
        group_by,
        having,
        order_by,
        select.distinct,
        select.at,
        column.type,
    )
    check_groups(resolved)
    check_order(resolved)
    return resolved
