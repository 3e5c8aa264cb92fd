"""Relationship rules: tests over the cross product of the rows of all selects, counted without making it.

Every select of a condition is an axis of its own, so the parts of a condition share no axis, and the counts of
`and`, `or` and `not` follow from those of their parts. A comparison of two columns is counted by sorting one of them.
A select after `in` is a set, not an axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.rules.frames import one_row, require_rows
from headrace.rules.membership import member
from headrace.rules.select import Context, Evaluator, Rows, like, one_of
from headrace.rules.tree import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Compare,
    Condition,
    Expression,
    In,
    IsUnknown,
    Like,
    Negative,
    Not,
    Or,
    Select,
    Text,
)
from headrace.rules.vectors import Tests, Truth, Vector, arithmetic, compare, is_tolerant, tests_per_row
from headrace.rules.words import show_row, show_value, subject, wanted


class Axis(NamedTuple):
    """A select of a condition, and its rows."""

    select: Select
    rows: Rows

    @property
    def length(self) -> int:
        return len(self.rows.owner)


class Product(NamedTuple):
    """An expression's value for each combination of rows of its axes; the last axis varies fastest."""

    expression: Expression
    value: Vector
    axes: tuple[Axis, ...]

    def position(self, index: int) -> list[tuple[Axis, int]]:
        """The row of each axis that an element belongs to."""
        rows = np.unravel_index(index, [axis.length for axis in self.axes]) if self.axes else ()
        return [(axis, int(row)) for axis, row in zip(self.axes, rows, strict=True)]


class Count(NamedTuple):
    """Tests of a condition; those that are neither TRUE nor FALSE are UNKNOWN."""

    total: int
    true: int
    false: int
    miss: Callable[[], str]
    """The first FALSE test in words; only called if there is one."""
    hit: Callable[[], str]
    """The first TRUE test in words, which is a miss of `not`."""

    def negated(self, negate: bool = True) -> Count:
        return Count(self.total, self.false, self.true, self.hit, self.miss) if negate else self


def product(evaluator: Evaluator, expression: Expression) -> Product:
    """The values of a top-level expression."""
    match expression:
        case Select():
            rows = evaluator.table(expression)
            return Product(expression, rows.value, (Axis(expression, rows),))
        case Arithmetic(op=op, left=left, right=right):
            a, b = product(evaluator, left), product(evaluator, right)
            n, m = a.value.length, b.value.length
            require_rows(n * m, expression.at, evaluator.source)
            if n != 1 and m != 1:
                a = a._replace(value=a.value[np.repeat(np.arange(n), m)])
                b = b._replace(value=b.value[np.tile(np.arange(m), n)])
            return Product(expression, arithmetic(op, a.value, b.value), (*a.axes, *b.axes))
        case Negative(operand=operand) | Absolute(operand=operand):
            inner = product(evaluator, operand)
            values = np.abs(inner.value.values) if isinstance(expression, Absolute) else -inner.value.values
            return Product(expression, Vector(values, inner.value.known), inner.axes)
    return Product(expression, evaluator.value(expression, Context(one_row(evaluator.relations))), ())


def count_tests(evaluator: Evaluator, condition: Condition) -> Count:
    """The tests of a condition by outcome: O(n log n) in the numbers of rows, not of their product."""
    match condition:
        case And(parts=parts):
            return _all_of([count_tests(evaluator, part) for part in parts])
        case Or(parts=parts):
            return _all_of([count_tests(evaluator, part).negated() for part in parts]).negated()
        case Not(part=part):
            return count_tests(evaluator, part).negated()
        case Compare(op=op, left=left, right=right):
            a, b = product(evaluator, left), product(evaluator, right)
            return _per_row(evaluator, condition, a, [_Side(op, b, is_tolerant(left, right))])
        case Between(operand=operand, low=low, high=high, negated=negated):
            x, sides = product(evaluator, operand), []
            for op, end in ((">=", low), ("<=", high)):
                sides.append(_Side(op, product(evaluator, end), is_tolerant(operand, end)))
            return _per_row(evaluator, condition, x, sides).negated(negated)
        case In(operand=operand, options=tuple(options), negated=negated) if not _all_texts(condition):
            x = product(evaluator, operand)
            sides = [_Side("<>", product(evaluator, o), is_tolerant(operand, o)) for o in options]
            return _per_row(evaluator, condition, x, sides).negated(not negated)
    return _of_one(evaluator, condition)


def _all_texts(condition: In) -> bool:
    """`in` with a list of texts, which are looked up at once."""
    return not isinstance(condition.options, Select) and all(isinstance(o, Text) for o in condition.options)


def _all_of(parts: list[Count]) -> Count:
    """`and` of conditions without a common axis."""
    total = true = passing = 1
    for part in parts:
        total, true, passing = total * part.total, true * part.true, passing * (part.total - part.false)

    def miss() -> str:
        return next(part for part in parts if part.false).miss()

    return Count(total, true, total - passing, miss, lambda: " and ".join(part.hit() for part in parts))


class _Side(NamedTuple):
    """A comparison of x with the elements of a product."""

    op: str
    product: Product
    tolerant: bool

    def tests(self, x: Vector) -> Tests:
        return tests_per_row(self.op, x, self.product.value, self.tolerant)  # type: ignore[arg-type]


def _per_row(evaluator: Evaluator, condition: Condition, x: Product, sides: list[_Side]) -> Count:
    """`and` of comparisons of one x with elements of different axes, counted for each x."""
    total, true, passing = 1, np.ones(x.value.length), np.ones(x.value.length)
    for side in sides:
        tests = side.tests(x.value)
        total *= side.product.value.length
        true = true * tests.true
        passing = passing * (side.product.value.length - tests.false)
    false = total - passing

    def told(which: str) -> str:
        return _first(evaluator, condition, x, sides, which, true if which == "true" else false)

    n = x.value.length
    return Count(
        n * total, round(true.sum()), round(false.sum()), lambda: told("false"), lambda: told("true")
    )


def _first(
    evaluator: Evaluator, condition: Condition, x: Product, sides: list[_Side], which: str, counts: Floats
) -> str:
    """The first x with such a test, and the element of the first side with which it is."""
    i = int(np.argmax(counts > 0))
    here = x.value[i : i + 1]
    for side in sides:
        found = compare(side.op, here, side.product.value, side.tolerant)  # type: ignore[arg-type]
        chosen = found.true if which == "true" else found.false
        if chosen.any():
            j = int(np.argmax(chosen))
            shown = show_value(evaluator.relations, x.expression.type, side.product.value, j)
            rows = [show_row(axis, row) for axis, row in side.product.position(j)]
            named = "".join(f" of {row}" for row in rows if row and not row.endswith(f" {shown}"))
            asked = wanted(condition, shown) if isinstance(condition, In) else f"wanted {side.op} {shown}"
            return f"{subject(evaluator, x, i)}, {asked}{named}"
    return subject(evaluator, x, i)


def _of_one(evaluator: Evaluator, condition: Condition) -> Count:
    """Conditions on one expression: like, is unknown, and in with a set."""
    assert isinstance(condition, Like | IsUnknown | In)
    x = product(evaluator, condition.operand)
    truth = _truth(evaluator, condition, x.value).spread(x.value.length)

    def told(which: Bools) -> str:
        return f"{subject(evaluator, x, int(np.argmax(which)))}, {wanted(condition, '')}"

    true, false = int(np.count_nonzero(truth.true)), int(np.count_nonzero(truth.false))
    return Count(x.value.length, true, false, lambda: told(truth.false), lambda: told(truth.true))


def _truth(evaluator: Evaluator, condition: Like | IsUnknown | In, x: Vector) -> Truth:
    if isinstance(condition, Like):
        return like(condition, x)
    if isinstance(condition, IsUnknown):
        return Truth(~x.known, x.known).negated(condition.negated)
    if not isinstance(condition.options, Select):
        return one_of(x, [option.value for option in condition.options if isinstance(option, Text)]).negated(
            condition.negated
        )
    rows = evaluator.table(condition.options)
    tolerant = is_tolerant(condition.operand, condition.options)
    return member(x, np.zeros(1, np.int64), rows.owner, rows.value, tolerant).negated(condition.negated)
