"""Bodies of rules compiled to functions over batches: the numbers of tests and of failed ones, as intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from headrace.rules import incremental_values as iv
from headrace.rules.incremental_compile import (
    MOST_ROWS,
    Compiler,
    Frame,
    Levels,
    NotCompiled,
    Rows,
    TruthOf,
    ValueOf,
    children_of,
    is_fixed,
    is_tolerant,
    last_added,
    mapped,
    negate,
)
from headrace.rules.incremental_values import ALL_ROWS, Array, Present, Truth, Values
from headrace.rules.tree import Condition, Expression, In, Ordering, Relationship, Select


class Counted(NamedTuple):
    tests: Array
    most_tests: Array
    failed: Array
    """Surely failed."""
    most_failed: Array


CountOf: TypeAlias = Callable[[Frame], Counted]


def compile_relationship(compiler: Compiler, body: Relationship) -> CountOf:
    """The tests of a relationship: the cross product of the rows of its top-level selects."""
    selects = _top_selects(body.condition)
    rows = [compiler.rows(select) for select in selects]
    total = len(rows)
    truth = _TopLevel(compiler, selects, rows).truth(body.condition)
    shape = tuple(r.rows for r in rows)
    if np.prod(shape, dtype=np.float64) > MOST_ROWS:
        raise NotCompiled("too many tests")
    axes = tuple(range(1, total + 1))

    def count(frame: Frame) -> Counted:
        found = truth(frame)
        present = ALL_ROWS
        for axis, row in enumerate(rows):
            one = row.values(frame)[1]
            surely = iv.both(present.surely, _at_axis(one.surely, axis, total))
            exact = present.exact and one.exact
            present = Present(
                surely, surely if exact else iv.both(present.possibly, _at_axis(one.possibly, axis, total))
            )
        return _counted(found, present, shape, axes)

    return count


def _counted(found: Truth, present: Present, shape: tuple[int, ...], axes: tuple[int, ...]) -> Counted:
    def total(a: Array) -> Array:
        a = a if a.ndim == len(shape) + 1 else a.reshape((1,) * (len(shape) + 1)) if a.size == 1 else a
        return np.asarray(np.broadcast_to(a, (a.shape[0], *shape)).sum(axis=axes))

    tests, failed = total(present.surely), total(present.surely & found.false)
    if present.exact and found.exact:
        return Counted(tests, tests, failed, failed)
    return Counted(tests, total(present.possibly), failed, total(present.possibly & found.maybe_false))


def _at_axis(a: Array, axis: int, total: int) -> Array:
    """[batch, rows] with the rows at this one of `total` axes."""
    return a if a.ndim < 2 else a.reshape(a.shape[0], *(1,) * axis, a.shape[1], *(1,) * (total - 1 - axis))


def _top_selects(condition: Condition) -> list[Select]:
    """The selects of a relationship, not those inside selects or after `in`."""
    found: list[Select] = []

    def visit(node: Expression | Condition) -> None:
        if isinstance(node, Select):
            found.append(node)
            return
        children = [node.operand] if isinstance(node, In) and isinstance(node.options, Select) else None
        for child in children_of(node) if children is None else children:
            visit(child)

    visit(condition)
    return found


class _TopLevel(Compiler):
    """Compiles the condition of a relationship, where each select is an axis of its own."""

    def __init__(self, compiler: Compiler, selects: list[Select], rows: list[Rows]) -> None:
        super().__init__(compiler.catalog)
        self.used = compiler.used
        self.below = compiler
        self.axes = {id(select): (axis, rows[axis]) for axis, select in enumerate(selects)}

    def scalar(self, node: Select, levels: Levels) -> ValueOf:
        (axis, row), total = self.axes[id(node)], len(self.axes)
        return lambda frame: mapped(row.values(frame)[0], lambda a: _at_axis(a, axis, total))

    def _in(self, node: In, levels: Levels) -> TruthOf:
        if not isinstance(node.options, Select):
            return super()._in(node, levels)
        operand = self.value(node.operand, levels)
        rows, tolerant = self.below.rows(node.options), is_tolerant(node.operand, node.options)
        total = len(self.axes)

        def truth(frame: Frame) -> Truth:
            values, present = rows.values(frame)
            wide = [
                _at_axis(a, total, total + 1) for a in (values.low, values.high, values.known, values.maybe)
            ]
            same = iv.compare("=", mapped(operand(frame), last_added), Values(*wide), tolerant)
            surely, possibly = (_at_axis(p, total, total + 1) for p in present)
            return Truth(
                iv.any_row(same.true & surely, rows.rows),
                iv.any_row(same.maybe_true & possibly, rows.rows),
                iv.all_rows(same.false | ~possibly, rows.rows),
                iv.all_rows(same.maybe_false | ~surely, rows.rows),
            )

        return negate(node.negated, truth)


def compile_ordering(compiler: Compiler, body: Ordering) -> CountOf:
    """Every element of a sequence against every later one: O(rows^2) tests."""
    node, op = body.sequence, body.test
    rows = compiler.rows(node)
    n = rows.rows
    if n * n > MOST_ROWS:
        raise NotCompiled("too many tests")
    if node.order_by and not all(is_fixed(o.key) for o in node.order_by):
        raise NotCompiled("an order that depends on the schedule")
    tolerant = is_tolerant(node, node)
    later = np.triu(np.ones((n, n), np.bool_), 1)[None]

    def count(frame: Frame) -> Counted:
        values, present = rows.values(frame)
        first = mapped(values, lambda a: a if a.ndim < 2 else a[:, :, None])
        second = mapped(values, lambda a: a if a.ndim < 2 else a[:, None, :])
        found = iv.compare(op, first, second, tolerant)
        surely = later & _pairs(present.surely)
        possibly = surely if present.exact else later & _pairs(present.possibly)
        return _counted(found, Present(surely, possibly), (n, n), (1, 2))

    return count


def _pairs(a: Array) -> Array:
    return a if a.ndim < 2 else a[:, :, None] & a[:, None, :]
