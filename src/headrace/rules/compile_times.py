"""Conditions on start and finish times: releases, deadlines and order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.rules.compile_parts import Before, Found, Window, joined
from headrace.rules.compile_reading import (
    FINISH,
    MIRROR,
    MOST_CELLS,
    START,
    Reader,
    affine,
    at_number,
    direct_columns,
    is_plain,
    scheduled,
    split,
)
from headrace.rules.tree import (
    Aggregate,
    Column,
    Compare,
    Comparison,
    Condition,
    Expression,
    Ordering,
    Select,
)
from headrace.rules.vectors import ABSOLUTE, RELATIVE, Codes, Vector
from headrace.rules.walk import children, is_static

_SHORT = 1e-6
"""Tasks that may be shorter are not known to start before they finish, as comparisons allow for rounding."""


@dataclass(frozen=True, eq=False)
class Times:
    """`a * x + b` of the start or finish times x of some tasks."""

    tasks: Codes
    attribute: str
    a: Floats
    b: Floats
    which: Literal["all", "max", "min"]
    """Each of them, or only the largest or smallest: a test then holds for all only in one direction."""

    def of(self, rows: Bools) -> Times:
        return Times(self.tasks[rows], self.attribute, self.a[rows], self.b[rows], self.which)


def read_times(expression: Expression, reader: Reader) -> Times | None:
    """An expression as times of tasks, if it is affine in one select of them."""
    select = _inner_select(expression)
    if select is None or select.having is not None or not affine(expression, select):
        return None
    column, which = select.columns[0], "all"
    if isinstance(column, Aggregate) and column.name in ("max", "min") and column.operand is not None:
        which, column = column.name, column.operand
        if not all(is_static(key) for key in select.group_by):
            return None
    elif not is_plain(select):
        return None
    targets = direct_columns(column)
    if len(targets) != 1 or len(scheduled(column)) != 1:
        return None
    target = targets[0]
    static, moving = split(select)
    if moving or target.attribute not in (START, FINISH) or not affine(column, target):
        return None
    frame = reader.rows(select, static)
    a, b, known = reader.coefficients(column, target, frame)
    outer = _outer(expression, select, reader)
    if outer is None or (which != "all" and len(set(a[known].tolist())) > 1):
        return None
    if which != "all" and len(a) and a[0] < 0:
        which = {"max": "min", "min": "max"}[which]
    times = Times(frame.rows[target.source], target.attribute, a * outer[0], b * outer[0] + outer[1], which)  # type: ignore[arg-type]
    return times.of(known)


def _inner_select(expression: Expression) -> Select | None:
    """The one select in it that depends on the schedule."""
    if isinstance(expression, Select):
        return None if is_static(expression) else expression
    found = [s for child in children(expression) if (s := _inner_select(child)) is not None]  # type: ignore[arg-type]
    return found[0] if len(found) == 1 and not direct_columns(expression) else None


def _outer(expression: Expression, select: Select, reader: Reader) -> tuple[float, float] | None:
    """c and d of `c * select + d`; None if they are not single known numbers."""
    if expression is select:
        return 1.0, 0.0
    zero, one = (reader.fixed_value(at_number(expression, select, x)) for x in (0.0, 1.0))
    if zero.length != 1 or not (zero.known[0] and one.known[0]):
        return None
    return float(one.values[0] - zero.values[0]), float(zero.values[0])


def time_condition(condition: Condition, reader: Reader) -> Found | None:
    """A comparison of times with known values, or with other times."""
    if not isinstance(condition, Compare) or condition.op == "<>":
        return None
    op: Comparison = condition.op
    left, right = condition.left, condition.right
    if is_static(left):
        op, left, right = MIRROR[op], right, left
    x = read_times(left, reader)
    if x is None:
        return None
    if is_static(right):
        return window(x, op, reader.fixed_value(right))
    y = read_times(right, reader)
    return None if y is None else _order(x, op, y, reader)


def window(x: Times, op: Comparison, bounds: Vector) -> Found | None:
    """`x op bound`, for every bound."""
    values = bounds.values[bounds.known]
    if not len(values) or not len(x.tasks):
        return Found()
    if (x.a == 0).any():
        return None
    ops: list[Comparison] = ["<=", ">="] if op == "=" else [op]
    found = []
    for each in ops:
        bound = values.min() if each in ("<", "<=") else values.max()
        for up in (True, False):
            rows = (x.a > 0) == up
            if rows.any():
                found.append(_one_sided(x.of(rows), each if up else MIRROR[each], bound))
    return None if None in found else joined(f for f in found if f is not None)


def _one_sided(x: Times, op: Comparison, bound: float) -> Found | None:
    limit = (bound - x.b) / x.a
    late = op in (">", ">=")
    if x.which == ("max" if late else "min"):
        return None
    if op in ("<", ">"):  # planners keep a bound up to rounding, and rules take almost equal values for equal
        slack = 2 * (ABSOLUTE + RELATIVE * np.abs(limit))
        limit = limit + slack if late else limit - slack
    nothing = np.zeros(len(limit)), np.full(len(limit), np.inf)
    if late:
        return Found((Window(x.tasks, np.maximum(limit, 0.0), nothing[1]),), x.attribute == START)
    return Found((Window(x.tasks, nothing[0], limit),), x.attribute == FINISH)


def _order(x: Times, op: Comparison, y: Times, reader: Reader) -> Found | None:
    """`x op y` for every pair of their tasks."""
    if op in (">", ">="):
        x, op, y = y, MIRROR[op], x
    if op == "=" or x.which == "min" or y.which == "max":
        return None
    if not len(x.tasks) or not len(y.tasks):
        return Found()
    a = x.a[0]
    if a <= 0 or (x.a != a).any() or (y.a != a).any() or len(x.tasks) * len(y.tasks) > MOST_CELLS:
        return None
    room = float(y.b.min() - x.b.max()) / a
    first, second = np.repeat(x.tasks, len(y.tasks)), np.tile(y.tasks, len(x.tasks))
    uniform = bool((x.b == x.b[0]).all() and (y.b == y.b[0]).all())
    return order_of_pairs(first, x.attribute, op, second, y.attribute, room, reader, uniform=uniform)


def order_of_pairs(
    first: Codes,
    attribute: str,
    op: Comparison,
    second: Codes,
    other: str,
    room: float,
    reader: Reader,
    *,
    uniform: bool = True,
) -> Found | None:
    """A time of the first task of each pair is `<` or `<=` one of the second plus `room`, by their order."""
    same = first == second
    if room < 0 or (op == "<" and (same.any() or not _long(first, reader))):
        return None
    if (attribute, other) == (FINISH, START):
        if op == "<" or same.any():
            return None
        exact = room == 0 and uniform
    else:
        exact = False  # tasks need not run one after the other for this
    n = reader.graph.n_tasks
    there = (first.astype(np.int64) * n + second)[~same]
    there = np.unique(there) if len(there) > 1 else there
    first, second = np.divmod(there, max(1, n))
    if len(there) > 1 and len(np.intersect1d(there, second * n + first)):  # some pair is there in both orders
        return None
    return Found((Before(np.stack((first, second), axis=1)),), exact or not len(there))


def _long(tasks: Codes, reader: Reader) -> bool:
    """Whether no host is so fast that one of these tasks takes no time."""
    fastest = reader.platform.rates(reader.graph).max(axis=1)[reader.graph.speed_class]
    return bool((reader.graph.work[tasks] > _SHORT * fastest[tasks]).all())


def order_rule(body: Ordering, reader: Reader) -> Found | None:
    """Times of a sequence that is known before planning: each task after the one before it."""
    select = body.sequence
    match select.columns:
        case (Column(source=alias, attribute="task-start-time" | "task-finish-time" as attribute),):
            pass
        case _:
            return None
    _, moving = split(select)
    fixed = is_plain(select) and not moving and all(is_static(key.key) for key in select.order_by)
    if not fixed or select.distinct or body.test in ("=", "<>"):
        return None
    by_id = Column(alias, "task-id", select.at)
    rows = reader.evaluator.table(_with_column(select, by_id))
    tasks = rows.value.values.astype(np.int64)
    if body.test in (">", ">="):
        tasks = tasks[::-1]
    op: Comparison = "<" if body.test in ("<", ">") else "<="
    if len(np.unique(tasks)) < len(tasks):
        return None
    return order_of_pairs(tasks[:-1], attribute, op, tasks[1:], attribute, 0.0, reader)


def _with_column(select: Select, column: Column) -> Select:
    from dataclasses import replace

    return replace(select, columns=(column,))
