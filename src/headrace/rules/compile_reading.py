"""How the compiler reads rules: what is known before planning, and how values depend on hosts and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from headrace.model.graph import Bools, Floats, Graph
from headrace.model.platform import Platform
from headrace.rules.attributes import SCHEDULED
from headrace.rules.counting import product
from headrace.rules.frames import Frame, one_row
from headrace.rules.joins import join
from headrace.rules.relations import Relations
from headrace.rules.select import Context, Evaluator
from headrace.rules.tree import (
    And,
    Arithmetic,
    Column,
    Compare,
    Comparison,
    Condition,
    Expression,
    Negative,
    Number,
    Ordering,
    Part,
    Relationship,
    Select,
    Value,
)
from headrace.rules.types import part_names
from headrace.rules.vectors import Codes, Vector
from headrace.rules.walk import Node, all_columns, children, conjuncts, facts, is_static

HOST = {"task-assigned-proc-id": "proc-id", "task-assigned-proc-name": "proc-name", "task-site": "proc-site"}
"""Attributes of a task that its host decides, and the host's attribute that they are."""
START, FINISH = "task-start-time", "task-finish-time"
MIRROR: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
NEGATED: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
MOST_CELLS = 4_000_000
"""Pairs of tasks and hosts, or of tasks, up to which they are looked at one by one."""

_Any = TypeVar("_Any")


def in_plans(node: _Any) -> _Any:
    """The same tree for complete schedules: every task is scheduled."""
    if "task-scheduled" not in attributes_in(node):
        return node
    return mapped(node, _in_plan)  # type: ignore[no-any-return]


def _in_plan(part: Any) -> Any:
    if not isinstance(part, Part):
        return None
    if not any(column.attribute == "task-scheduled" for column in scheduled(part)):
        return part
    match part:
        case Column():
            return Number(1.0, part.at)
        case And(parts=parts, at=at):
            kept = tuple([each for each in parts if not _is_placed(each)])
            if 0 < len(kept) < len(parts):  # what is left out is TRUE
                return mapped(And(kept, at) if len(kept) > 1 else kept[0], _in_plan)
    return None


def _is_placed(condition: Condition) -> bool:
    """`task-scheduled = 1`"""
    match condition:
        case Compare(op="=", left=Column(attribute="task-scheduled"), right=Number(value=1.0)):
            return True
    return False


def attributes_in(node: Any) -> set[str]:
    """The attributes of all columns in a body, an expression or a condition."""
    match node:
        case None:
            return set()
        case Relationship(condition=inner) | Ordering(sequence=inner):
            return attributes_in(inner)
        case Value(function=function):
            return attributes_in(function)
    return {column.attribute for column in all_columns(node)}


def mapped(node: Any, new: Callable[[Any], Any]) -> Any:
    """The tree with some nodes replaced; `new` returns None for those to keep."""
    found = new(node)
    if found is not None:
        return found
    if isinstance(node, tuple):
        parts = tuple(mapped(part, new) for part in node)
        return node if all(a is b for a, b in zip(parts, node, strict=True)) else parts
    changed = {}
    for name in part_names(type(node)):
        value = getattr(node, name)
        other = mapped(value, new)
        if other is not value:
            changed[name] = other
    return replace(node, **changed) if changed else node


def scheduled(node: Any) -> tuple[Column, ...]:
    """The columns in it that depend on the schedule."""
    return facts(node).scheduled


def direct_columns(node: Node) -> list[Column]:
    """The columns in it that depend on the schedule, without those in selects of its own."""
    if isinstance(node, Select):
        return []
    if isinstance(node, Column):
        return [node] if node.attribute in SCHEDULED else []
    return [column for child in children(node) for column in direct_columns(child)]


def affine(expression: Expression, target: Expression) -> bool:
    """Whether it is `a * target + b`, with a and b known before planning."""
    match expression:
        case _ if expression is target:
            return True
        case Arithmetic(op="+" | "-", left=left, right=right):
            return affine(left, target) and affine(right, target)
        case Arithmetic(op="*", left=left, right=right) if is_static(left):
            return affine(right, target)
        case Arithmetic(op="*" | "/", left=left, right=right) if is_static(right):
            return affine(left, target)
        case Negative(operand=operand):
            return affine(operand, target)
    return is_static(expression)


def at_number(expression: Expression, target: Expression, value: float) -> Expression:
    """The expression with a number for the target."""
    number = Number(value, target.at, target.type)
    found: Expression = mapped(expression, lambda part: number if part is target else None)
    return found


@dataclass(frozen=True, eq=False)
class Reader:
    """A program on a platform, as rules see it before planning."""

    graph: Graph
    platform: Platform
    evaluator: Evaluator
    everywhere: Bools
    """[hosts] all of them."""
    _frames: dict[tuple[int, ...], tuple[Select, list[Condition], Frame]] = field(default_factory=dict)
    """Rows that have been looked for, by the identity of select and conditions, which are kept alive."""

    @staticmethod
    def of(relations: Relations, source: str) -> Reader:
        graph, platform = relations.graph, relations.platform
        return Reader(graph, platform, Evaluator(relations, source), np.ones(len(platform.hosts), np.bool_))

    def rows(self, select: Select, where: list[Condition]) -> Frame:
        """The rows of the select's sources for which conditions known before planning are TRUE."""
        key = (id(select), *map(id, where))
        if key not in self._frames:
            frame, _ = join(
                self.evaluator, select.sources, where, one_row(self.evaluator.relations), select.at
            )
            self._frames[key] = select, where, frame
        return self._frames[key][2]

    def fixed_value(self, expression: Expression) -> Vector:
        """The values of an expression that is known before planning."""
        return product(self.evaluator, expression).value

    def sure_rows(self, select: Select) -> bool | None:
        """Whether the select has rows in every schedule (True), in none (False), or that depends."""
        if select.having is not None:
            return None
        if select.single:
            return True
        static, moving = split(select)
        some = self.rows(select, static).length > 0
        return some if not some or not moving else None

    def on_hosts(self, frame: Frame, alias: str) -> HostFrame:
        """Each row of a frame on every host: the rows vary fastest in the host."""
        n, hosts = frame.length, len(self.platform.hosts)
        spread = frame.take(np.repeat(np.arange(n), hosts))
        return HostFrame(
            spread.relations, spread.rows, spread.kinds, spread.length, alias, np.tile(np.arange(hosts), n)
        )

    def coefficients(
        self, expression: Expression, target: Expression, frame: Frame
    ) -> tuple[Floats, Floats, Bools]:
        """a and b of `a * target + b` for each row of a frame, and where they are known."""
        if expression is target:
            return np.ones(frame.length), np.zeros(frame.length), np.ones(frame.length, np.bool_)
        zero, one = (
            self.evaluator.value(at_number(expression, target, x), Context(frame)).spread(frame.length)
            for x in (0.0, 1.0)
        )
        return one.values - zero.values, zero.values, zero.known & one.known


@dataclass(eq=False)
class HostFrame(Frame):
    """Rows in which the host of one task source is given."""

    alias: str
    host: Codes

    def column(self, column: Column) -> Vector:
        if column.source == self.alias and column.attribute in HOST:
            return self.relations.column("proc", HOST[column.attribute])[self.host]
        return super().column(column)


def split(select: Select) -> tuple[list[Condition], list[Condition]]:
    """The conditions of a select that are known before planning, and the others."""
    static: list[Condition] = []
    moving: list[Condition] = []
    for part in conjuncts(select.where):
        (static if is_static(part) else moving).append(part)
    return static, moving


def is_plain(select: Select) -> bool:
    """Whether every row that passes `where` is a row of the result."""
    from headrace.rules.select import is_grouped

    return not is_grouped(select) and bool(select.columns)
