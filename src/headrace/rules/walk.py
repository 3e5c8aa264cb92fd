"""What a node of the tree of rules refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from headrace.rules.attributes import SCHEDULED
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
    Facts,
    In,
    IsUnknown,
    Like,
    Negative,
    Not,
    Or,
    Ordering,
    Relationship,
    Select,
)

Node: TypeAlias = "Expression | Condition"


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, in order; those of a select are all its clauses."""
    return _CHILDREN[type(node)](node) if type(node) in _CHILDREN else ()


def _clauses(select: Select) -> tuple[Node, ...]:
    where = () if select.where is None else (select.where,)
    having = () if select.having is None else (select.having,)
    return (*select.columns, *where, *select.group_by, *having, *(order.key for order in select.order_by))


_CHILDREN: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Arithmetic: lambda node: (node.left, node.right),
    Compare: lambda node: (node.left, node.right),
    Negative: lambda node: (node.operand,),
    Absolute: lambda node: (node.operand,),
    Like: lambda node: (node.operand,),
    IsUnknown: lambda node: (node.operand,),
    Aggregate: lambda node: () if node.operand is None else (node.operand,),
    In: lambda node: (node.operand, *(node.options if isinstance(node.options, tuple) else (node.options,))),
    Between: lambda node: (node.operand, node.low, node.high),
    And: lambda node: node.parts,
    Or: lambda node: node.parts,
    Not: lambda node: (node.part,),
    Select: _clauses,
}


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


def facts(node: Node) -> Facts:
    """What a node consists of; found out once."""
    known: Facts | None = getattr(node, "facts", None)
    if known is not None:
        return known
    columns: list[Column] = []
    scheduled: list[Column] = []
    for child in (node,) if isinstance(node, Column) else children(node):
        if isinstance(child, Column):
            columns.append(child)
            if child.attribute in SCHEDULED:
                scheduled.append(child)
        elif type(child) in _CHILDREN:
            inner = facts(child)
            columns += inner.columns
            scheduled += inner.scheduled
    found = Facts(tuple(columns), tuple(scheduled))
    node.facts = found
    return found


def all_columns(node: Node) -> tuple[Column, ...]:
    """Every column in the node, also in its selects, in order."""
    return facts(node).columns


def is_static(node: Node) -> bool:
    """Whether its value is known before planning."""
    return not facts(node).scheduled


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
