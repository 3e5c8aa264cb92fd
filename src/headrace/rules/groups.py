"""Checks of a select whose names have been resolved: its sources, groups and order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.rules.attributes import RELATIONS
from headrace.rules.messages import Problem, did_you_mean, listed, printable
from headrace.rules.tree import Aggregate, Column, Select, Type
from headrace.rules.types import part_names, same
from headrace.rules.walk import has_aggregate

MAX_SELECTS = 6
"""Selects within selects."""
MAX_SOURCES = 8
"""Sources of one select."""


def check_sources(select: Select, depth: int) -> None:
    """Refuse unknown relations, repeated names, and more sources or selects within selects than anyone needs."""
    if depth > MAX_SELECTS:
        raise Problem(f"selects are nested more than {MAX_SELECTS} deep", select.at)
    if len(select.sources) > MAX_SOURCES:
        raise Problem(f"more than {MAX_SOURCES} sources in a select", select.sources[MAX_SOURCES].at)
    seen: set[str] = set()
    for source in select.sources:
        if source.relation not in RELATIONS:
            name = printable(source.relation, 60)
            near = did_you_mean(name, list(RELATIONS), f": expected {listed(RELATIONS)}")
            raise Problem(f"unknown relation {name}{near}", source.at)
        if source.alias in seen:
            raise Problem(
                f"two sources are called {source.alias}", source.at, f"write {source.relation} a, ..."
            )
        seen.add(source.alias)


def check_groups(select: Select) -> None:
    """With aggregates or `group by`, everything outside aggregates must be the same for all rows of a group."""
    parts = [*select.columns, *(item.key for item in select.order_by)]
    if select.having is not None:
        if not select.group_by:
            raise Problem("having needs group by", select.having.at, "write the condition in where")
        parts.append(select.having)  # type: ignore[arg-type]
    if not select.group_by and not any(has_aggregate(part) for part in parts):
        return
    aliases = frozenset(source.alias for source in select.sources)
    shapes = _Shapes()
    keys = {shapes.of(key) for key in select.group_by}

    def is_key(node: Any) -> bool:
        return bool(keys) and shapes.of(node) in keys

    for part in parts:
        loose = next(_loose(part, aliases, is_key, nested=False), None)
        if loose is not None:
            raise Problem(
                f"{loose.attribute} differs between the rows that are taken together",
                loose.at,
                f"write it in group by, or use an aggregate such as max({loose.attribute})",
            )


def _loose(
    node: Any, aliases: frozenset[str], is_key: Callable[[Any], bool], nested: bool
) -> Iterator[Column]:
    """Columns of these sources that are neither within an aggregate nor part of a key."""
    if is_key(node) or (isinstance(node, Aggregate) and not nested):
        return
    if isinstance(node, Column) and node.source in aliases:
        yield node
    if isinstance(node, Select):
        aliases -= {source.alias for source in node.sources}
        nested = True
    for child in _children(node):
        yield from _loose(child, aliases, is_key, nested)


class _Shapes:
    """Numbers trees so that equal ones, but for their places in the text, have equal numbers. Linear in their size."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.seen: dict[int, int] = {}

    def of(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(self.of, node))
        if not part_names(type(node)):
            return node
        if id(node) not in self.seen:
            parts = [self.of(getattr(node, name)) for name in part_names(type(node))]
            self.seen[id(node)] = self.numbers.setdefault((type(node), *parts), len(self.numbers))
        return self.seen[id(node)]


def _children(node: Any) -> Iterator[Any]:
    for name in part_names(type(node)):
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if part_names(type(item)):
                yield item


def check_order(select: Select) -> None:
    for item in select.order_by:
        if item.key.type is Type.TASKS:
            raise Problem("a task list has no order", item.key.at)
        if select.distinct and not same(item.key, select.columns[0]):
            raise Problem(
                "rows that differ cannot be ordered by what is not selected",
                item.key.at,
                "leave out distinct",
            )
