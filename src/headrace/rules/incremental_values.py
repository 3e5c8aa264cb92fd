"""Values of rule expressions for many schedules at once: what is known of each, as intervals.

Arrays have the batch of schedules first, then an axis for each select around the expression. A value lies between `low`
and `high`; where a schedule is judged as it is, both are the same array and nothing is computed twice. A value is
UNKNOWN where `known` is false; `maybe` says where it may be known in some completion of the schedule. The logic has
three values: a condition may be true, false, or neither.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
TRUE = np.ones((1,), np.bool_)
FALSE = np.zeros((1,), np.bool_)
TOLERANCE = 1e-9
"""Relative, and absolute: values closer than this are equal."""
_HUGE = 1e100
"""Stands for a bound that is not known; finite, so that 0 times it is 0."""


class Values(NamedTuple):
    low: Array
    high: Array
    known: Array
    """Surely known."""
    maybe: Array
    """Possibly known."""

    @property
    def exact(self) -> bool:
        return self.low is self.high and self.known is self.maybe


class Truth(NamedTuple):
    """A condition: surely and possibly true, surely and possibly false."""

    true: Array
    maybe_true: Array
    false: Array
    maybe_false: Array

    @property
    def exact(self) -> bool:
        return self.true is self.maybe_true and self.false is self.maybe_false


def exactly(value: Array, known: Array = TRUE) -> Values:
    return Values(value, value, known, known)


def both(a: Array, b: Array) -> Array:
    """a and b; without computing where one is the constant."""
    return b if a is TRUE else a if b is TRUE else a & b


def _known(a: Values, b: Values) -> tuple[Array, Array]:
    known = both(a.known, b.known)
    maybe = known if a.known is a.maybe and b.known is b.maybe else both(a.maybe, b.maybe)
    return known, maybe


def negative(a: Values) -> Values:
    if a.low is a.high:
        low = -a.low
        return Values(low, low, a.known, a.maybe)
    return Values(-a.high, -a.low, a.known, a.maybe)


def absolute(a: Values) -> Values:
    if a.low is a.high:
        low = np.abs(a.low)
        return Values(low, low, a.known, a.maybe)
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return Values(low, np.maximum(np.abs(a.low), np.abs(a.high)), a.known, a.maybe)


def add(a: Values, b: Values) -> Values:
    low = a.low + b.low
    high = low if a.low is a.high and b.low is b.high else a.high + b.high
    return Values(low, high, *_known(a, b))


def subtract(a: Values, b: Values) -> Values:
    return add(a, negative(b))


def multiply(a: Values, b: Values) -> Values:
    if a.low is a.high and b.low is b.high:
        low = a.low * b.low
        return Values(low, low, *_known(a, b))
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    return Values(low, high, *_known(a, b))


def divide(a: Values, b: Values) -> Values:
    """The quotient; UNKNOWN where the divisor is 0."""
    known, maybe = _known(a, b)
    if a.low is a.high and b.low is b.high:
        zero = b.low == 0
        low = a.low / np.where(zero, 1.0, b.low)
        known = both(known, ~zero)
        return Values(low, low, known, known if a.known is a.maybe and b.known is b.maybe else maybe & ~zero)
    spans = (b.low <= 0) & (b.high >= 0)
    corners = [x / np.where(spans, 1.0, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    low, high = np.where(spans, -_HUGE, low), np.where(spans, _HUGE, high)
    return Values(low, high, both(known, ~spans), both(maybe, ~((b.low == 0) & (b.high == 0))))


def _limits(b: Array, tolerant: bool) -> tuple[Array, Array]:
    """The least and the greatest number that count as equal to each value."""
    if not tolerant:
        return b, b
    slack = TOLERANCE + TOLERANCE * np.abs(b)
    return b - slack, b + slack


def compare(op: str, a: Values, b: Values, tolerant: bool = True) -> Truth:
    """A comparison; with tolerance, values that differ from the right one only by rounding are equal to it."""
    known, maybe = _known(a, b)
    point = a.low is a.high and b.low is b.high
    least, most = _limits(b.low, tolerant)
    if point:
        surely = possibly = _holds(op, a.low, a.low, least, most)
    else:
        least_high, most_high = _limits(b.high, tolerant)
        surely = _surely(op, a, b, least, most, least_high, most_high)
        possibly = ~_surely(_OPPOSITE[op], a, b, least, most, least_high, most_high)
    return _truth(surely, possibly, known, maybe)


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _holds(op: str, low: Array, high: Array, least: Array, most: Array) -> Array:
    if op == "<=":
        return high <= most
    if op == "<":
        return high < least
    if op == ">=":
        return low >= least
    if op == ">":
        return np.asarray(low > most)
    equal = (least <= low) & (high <= most)
    return equal if op == "=" else ~equal


def _surely(
    op: str, a: Values, b: Values, least: Array, most: Array, least_high: Array, most_high: Array
) -> Array:
    """Whether a comparison holds for all values of the intervals; the limits are those of both ends of b."""
    if op in ("<", "<="):
        return _holds(op, a.low, a.high, least, most)
    if op in (">", ">="):
        return _holds(op, a.low, a.high, least_high, most_high)
    if op == "<>":
        return (a.high < least) | (a.low > most_high)
    point = (a.low == a.high) & (b.low == b.high)
    return np.asarray(point & (least <= a.low) & (a.high <= most))


def _truth(surely: Array, possibly: Array, known: Array, maybe: Array) -> Truth:
    true, false = both(surely, known), both(~possibly, known)
    if surely is possibly and known is maybe:
        return Truth(true, true, false, false)
    return Truth(true, both(possibly, maybe), false, both(~surely, maybe))


def definite(surely: Array) -> Truth:
    """A condition that is never UNKNOWN, and whose value is certain."""
    false = ~surely
    return Truth(surely, surely, false, false)


def is_unknown(a: Values) -> Truth:
    if a.known is a.maybe:
        return definite(~a.known)
    return Truth(~a.maybe, ~a.known, a.known, a.maybe)


def invert(a: Truth) -> Truth:
    return Truth(a.false, a.maybe_false, a.true, a.maybe_true)


def conjunction(a: Truth, b: Truth) -> Truth:
    true, false = a.true & b.true, a.false | b.false
    if a.exact and b.exact:
        return Truth(true, true, false, false)
    return Truth(true, a.maybe_true & b.maybe_true, false, a.maybe_false | b.maybe_false)


def disjunction(a: Truth, b: Truth) -> Truth:
    return invert(conjunction(invert(a), invert(b)))


class Present(NamedTuple):
    """Which rows of a select there are: surely, and possibly."""

    surely: Array
    possibly: Array

    @property
    def exact(self) -> bool:
        return self.surely is self.possibly


ALL_ROWS = Present(TRUE, TRUE)


def aggregate(name: str, values: Values | None, present: Present, rows: int) -> Values:
    """An aggregate over the last axis; None for the values is `count(*)`."""
    if values is None:
        surely, possibly = present
    else:
        surely = both(present.surely, values.known)
        exact = present.exact and values.known is values.maybe
        possibly = surely if exact else both(present.possibly, values.maybe)
    if name == "count":
        low = _count(surely, rows)
        return Values(low, low if surely is possibly else _count(possibly, rows), TRUE, TRUE)
    assert values is not None
    if name == "sum":
        return _sum(values, surely, possibly, rows)
    if name == "avg":
        return _average(values, surely, possibly, rows)
    if name == "min":
        return negative(_largest(negative(values), surely, possibly, rows))
    return _largest(values, surely, possibly, rows)


def any_row(a: Array, rows: int) -> Array:
    """Whether it holds in some row of the last axis."""
    return np.asarray(_spread(a, rows).any(axis=-1))


def all_rows(a: Array, rows: int) -> Array:
    """Whether it holds in all rows of the last axis."""
    return np.asarray(_spread(a, rows).all(axis=-1))


def _spread(a: Array, rows: int) -> Array:
    """With its last axis at full length: constants have length 1."""
    return a if a.ndim and a.shape[-1] == rows else np.broadcast_to(a, (*a.shape[:-1], rows))


def _count(included: Array, rows: int) -> Array:
    return np.asarray(_spread(included, rows).sum(axis=-1), np.float64)


def _sum(values: Values, surely: Array, possibly: Array, rows: int) -> Values:
    if surely is possibly:
        low = _spread(np.where(surely, values.low, 0.0), rows).sum(axis=-1)
        if values.low is values.high:
            return Values(low, low, TRUE, TRUE)
        return Values(low, _spread(np.where(surely, values.high, 0.0), rows).sum(axis=-1), TRUE, TRUE)
    unsure_low, unsure_high = np.minimum(values.low, 0.0), np.maximum(values.high, 0.0)
    low = np.where(surely, values.low, np.where(possibly, unsure_low, 0.0))
    high = np.where(surely, values.high, np.where(possibly, unsure_high, 0.0))
    return Values(_spread(low, rows).sum(axis=-1), _spread(high, rows).sum(axis=-1), TRUE, TRUE)


def _largest(values: Values, surely: Array, possibly: Array, rows: int) -> Values:
    known = any_row(surely, rows)
    if rows == 0:
        zero = np.zeros(known.shape)
        return Values(zero, zero, known, known)
    low = _max(values.low, surely, rows)
    if surely is possibly:
        low = np.where(known, low, 0.0)
        high = low if values.low is values.high else np.where(known, _max(values.high, surely, rows), 0.0)
        return Values(low, high, known, known)
    maybe = any_row(possibly, rows)
    least = -_max(-values.low, possibly, rows)
    low = np.where(known, low, np.where(maybe, least, 0.0))
    return Values(low, np.where(maybe, _max(values.high, possibly, rows), 0.0), known, maybe)


def _max(value: Array, included: Array, rows: int) -> Array:
    return np.asarray(_spread(np.where(included, value, -np.inf), rows).max(axis=-1))


def _average(values: Values, surely: Array, possibly: Array, rows: int) -> Values:
    if surely is possibly:
        count = _count(surely, rows)
        known = count > 0
        divisor = np.maximum(count, 1.0)
        total = _sum(values, surely, possibly, rows)
        low = total.low / divisor
        high = low if total.low is total.high else total.high / divisor
        return Values(low, high, known, known)
    top = _largest(values, surely, possibly, rows)
    bottom = negative(_largest(negative(values), surely, possibly, rows))
    least = -_max(-values.low, possibly, rows) if rows else bottom.low
    most = _max(values.high, possibly, rows) if rows else top.high
    low, high = np.where(top.maybe, least, 0.0), np.where(top.maybe, most, 0.0)
    return Values(low, high, top.known, top.maybe)
