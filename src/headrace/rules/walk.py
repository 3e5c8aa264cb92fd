"""What a node of the tree of rules refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

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
    Relationship,
    Select,
    Text,
)

Node: TypeAlias = "Expression | Condition"


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in order; those of a select are all its clauses."""
    match node:
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            yield from (left, right)
        case Negative(operand=operand) | Absolute(operand=operand):
            yield operand
        case Like(operand=operand) | IsUnknown(operand=operand):
            yield operand
        case Aggregate(operand=inner):
            if inner is not None:
                yield inner
        case In(operand=operand, options=options):
            yield operand
            yield from (options,) if isinstance(options, Select) else options
        case Between(operand=operand, low=low, high=high):
            yield from (operand, low, high)
        case And(parts=parts) | Or(parts=parts):
            yield from parts
        case Not(part=part):
            yield part
        case Select():
            yield from _clauses(node)
        case _:
            pass


def _clauses(select: Select) -> Iterator[Node]:
    yield from select.columns
    if select.where is not None:
        yield select.where
    yield from select.group_by
    if select.having is not None:
        yield select.having
    yield from (order.key for order in select.order_by)


def references(node: Node) -> dict[tuple[str, str], Column]:
    """The columns of sources outside the node, in order of appearance, by source and attribute."""
    found: dict[tuple[str, str], Column] = {}
    _collect(node, frozenset(), found)
    return found


def _collect(node: Node, bound: frozenset[str], found: dict[tuple[str, str], Column]) -> None:
    if isinstance(node, Column):
        if node.source not in bound:
            found.setdefault((node.source, node.attribute), node)
        return
    if isinstance(node, Select):
        bound = bound | {source.alias for source in node.sources}
    for child in children(node):
        _collect(child, bound, found)


def sources_of(node: Node) -> set[str]:
    """The sources outside the node that it refers to."""
    return {source for source, _ in references(node)}


def all_columns(node: Node) -> Iterator[Column]:
    """Every column in the node, also in its selects."""
    if isinstance(node, Column):
        yield node
    for child in children(node):
        if not isinstance(child, Text | Number):  # lists of values can be long
            yield from all_columns(child)


def has_aggregate(node: Node) -> bool:
    """Whether there is an aggregate over the rows of the enclosing select."""
    if isinstance(node, Aggregate):
        return True
    return not isinstance(node, Select) and any(has_aggregate(child) for child in children(node))


def conjuncts(condition: Condition | None) -> list[Condition]:
    """The conditions that must all be TRUE."""
    if condition is None:
        return []
    if isinstance(condition, And):
        return [part for each in condition.parts for part in conjuncts(each)]
    return [condition]


def top_selects(body: Body) -> list[Select]:
    """The selects of a rule that are not inside others; without the sets after `in`."""
    if isinstance(body, Ordering):
        return [body.sequence]
    if isinstance(body, Relationship):
        return list(_outermost(body.condition))
    if isinstance(body.function, Relationship | Ordering):
        return top_selects(body.function)
    return list(_outermost(body.function))


def _outermost(node: Node) -> Iterator[Select]:
    if isinstance(node, Select):
        yield node
    elif isinstance(node, In) and isinstance(node.options, Select):
        yield from _outermost(node.operand)
    else:
        for child in children(node):
            yield from _outermost(child)
