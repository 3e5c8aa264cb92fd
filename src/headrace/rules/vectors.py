"""Columns of values, some of them UNKNOWN, and their arithmetic, comparison and three-valued logic.

Numbers, times and ids are floats. Texts are numbers of words in a sorted tuple, so that they compare as their numbers.
Arrays of one element stand for every row.

**Tolerance.** Numbers, times, money, power and energy come out of sums in floating point: values that differ from the
right operand `b` of a comparison by at most `1e-9 + 1e-9 * abs(b)` count as equal to it. So `a <= b` and `a = b` hold
for them, and `a < b` does not. Sizes, ids and texts are compared exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.model.graph import Bools, Floats
from headrace.rules.tree import Comparison, Expression, Operator, Type

ABSOLUTE = 1e-9
RELATIVE = 1e-9
EXACT = (Type.SIZE, Type.TASK, Type.PROC, Type.TEXT, Type.TASKS)
"""Types compared without tolerance."""

_KNOWN = np.ones(1, np.bool_)
_NOT_KNOWN = np.zeros(1, np.bool_)


@dataclass(eq=False, slots=True)
class Vector:
    """One value for each row, or a single value for all rows. Never changed; a frozen one takes longer to make."""

    values: Floats
    known: Bools
    words: tuple[str, ...] | None = None
    """For texts: sorted, `values` are positions in it."""

    def __getitem__(self, rows: Any) -> Vector:
        """The values of some rows."""
        return Vector(self.values[rows], self.known[rows], self.words)

    @property
    def length(self) -> int:
        return len(self.values)

    def spread(self, length: int) -> Vector:
        """One value for each of `length` rows."""
        if len(self.values) == length:
            return self
        return Vector(np.broadcast_to(self.values, length), np.broadcast_to(self.known, length), self.words)

    def word(self, row: int) -> str:
        assert self.words is not None
        return self.words[int(self.values[row])]


class Truth(NamedTuple):
    """Where a condition is TRUE and where it is FALSE; UNKNOWN elsewhere."""

    true: Bools
    false: Bools

    def spread(self, length: int) -> Truth:
        return Truth(np.broadcast_to(self.true, length), np.broadcast_to(self.false, length))

    def negated(self, negate: bool = True) -> Truth:
        return Truth(self.false, self.true) if negate else self


UNKNOWN = Vector(np.zeros(1), _NOT_KNOWN)


def numbers(values: Any, known: Any = None) -> Vector:
    """
    >>> numbers([1.0, 2.0]).known.tolist()
    [True, True]
    """
    values = np.asarray(values, np.float64)
    return Vector(values, np.ones(len(values), np.bool_) if known is None else np.asarray(known, np.bool_))


def constant(value: float | str) -> Vector:
    if isinstance(value, str):
        return Vector(np.zeros(1), _KNOWN, (value,))
    return Vector(np.array([value], np.float64), _KNOWN)


def texts(values: list[str | None]) -> Vector:
    """Texts, None for UNKNOWN: O(n log n).

    >>> texts(["b", None, "a"]).words
    ('a', 'b')
    """
    words = tuple(sorted({value for value in values if value is not None}))
    number: dict[str | None, float] = {word: float(i) for i, word in enumerate(words)}
    number[None] = 0.0
    coded = np.fromiter((number[value] for value in values), np.float64, len(values))
    known = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return Vector(coded, known, words)


def with_common_words(left: Vector, right: Vector) -> tuple[Vector, Vector]:
    """Two vectors of texts as numbers that can be compared; vectors of numbers as they are.

    A word that a vector does not have gets a number between its neighbours. O(words) unless one is a single word.
    """
    if left.words is None or right.words is None or left.words is right.words:
        return left, right
    if len(right.words) == 1:
        return left, _recoded(right, left.words)
    if len(left.words) == 1:
        return _recoded(left, right.words), right
    words = tuple(sorted({*left.words, *right.words}))
    return _recoded(left, words), _recoded(right, words)


def _recoded(vector: Vector, words: tuple[str, ...]) -> Vector:
    assert vector.words is not None
    at = np.empty(max(1, len(vector.words)))
    for i, word in enumerate(vector.words):
        position = bisect_left(words, word)
        found = position < len(words) and words[position] == word
        at[i] = position if found else position - 0.5
    return Vector(at[vector.values.astype(np.intp)], vector.known, words)


def arithmetic(op: Operator, left: Vector, right: Vector) -> Vector:
    """UNKNOWN if an operand is, and where the result is not a number (division by zero)."""
    a, b = left.values, right.values
    with np.errstate(all="ignore"):
        if op == "+":
            values = a + b
        elif op == "-":
            values = a - b
        elif op == "*":
            values = a * b
        else:
            values = np.where(b == 0, np.nan, a / b)
    undefined = np.isnan(values)
    known = left.known & right.known & ~undefined
    return Vector(np.where(undefined, 0.0, values), known)


def is_tolerant(left: Expression, right: Expression) -> bool:
    """Whether values of these expressions are compared with tolerance."""
    return left.type not in EXACT and right.type not in EXACT


def limits(values: Floats, tolerant: bool) -> tuple[Floats, Floats]:
    """The least and the greatest number that count as equal to each value; both increase with the value."""
    if not tolerant:
        return values, values
    slack = ABSOLUTE + RELATIVE * np.abs(values)
    slack[np.isinf(values)] = 0.0
    return values - slack, values + slack


def compare(op: Comparison, left: Vector, right: Vector, tolerant: bool) -> Truth:
    """Three-valued comparison, row by row.

    >>> compare("<=", numbers([1.0, 2.0]), numbers([1.0 - 1e-12]), tolerant=True).true.tolist()
    [True, False]
    """
    left, right = with_common_words(left, right)
    a, (low, high) = left.values, limits(right.values, tolerant)
    if op == "<=":
        holds = a <= high
    elif op == "<":
        holds = a < low
    elif op == ">=":
        holds = a >= low
    elif op == ">":
        holds = a > high
    else:
        holds = (low <= a) & (a <= high)
        holds = holds if op == "=" else ~holds
    known = left.known & right.known
    return Truth(known & holds, known & ~holds)


class Tests(NamedTuple):
    """How many tests of each row are TRUE and FALSE; the others are UNKNOWN."""

    true: NDArray[np.int64]
    false: NDArray[np.int64]


def tests_per_row(op: Comparison, left: Vector, right: Vector, tolerant: bool) -> Tests:
    """For each left value, the number of right values for which the comparison is TRUE, and FALSE.

    O((n + m) log m): the right values are sorted.
    """
    left, right = with_common_words(left, right)
    a, known = left.values, np.sort(right.values[right.known])
    low, high = limits(known, tolerant)
    if op == "<=":
        true = len(known) - np.searchsorted(high, a, "left")
    elif op == "<":
        true = len(known) - np.searchsorted(low, a, "right")
    elif op == ">=":
        true = np.searchsorted(low, a, "right")
    elif op == ">":
        true = np.searchsorted(high, a, "left")
    else:
        true = np.searchsorted(low, a, "right") - np.searchsorted(high, a, "left")
        true = true if op == "=" else len(known) - true
    return Tests(np.where(left.known, true, 0), np.where(left.known, len(known) - true, 0))


def conjunction(parts: list[Truth]) -> Truth:
    true, false = parts[0]
    for part in parts[1:]:
        true, false = true & part.true, false | part.false
    return Truth(true, false)


def disjunction(parts: list[Truth]) -> Truth:
    return conjunction([part.negated() for part in parts]).negated()


Codes: TypeAlias = NDArray[np.integer[Any]]


def codes(vector: Vector, length: int) -> Codes:
    """Whole numbers, equal where values are equal; UNKNOWN values are equal to each other only."""
    vector = vector.spread(length)
    values = vector.values
    least, most = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if (
        most - least < 4 * length + 1000 and (values == np.rint(values)).all()
    ):  # no need to sort small whole numbers
        small: Codes = np.where(vector.known, (values - least).astype(np.int64) + 1, 0)
        return small
    _, inverse = np.unique(vector.values, return_inverse=True)
    coded: Codes = np.where(vector.known, inverse.reshape(-1) + 1, 0)
    return coded


def paired(first: Codes, second: Codes) -> Codes:
    """One whole number for each pair, in the pairs' lexicographic order."""
    if not first.any():
        return second
    pairs: Codes = first.astype(np.int64) * (int(second.max(initial=0)) + 1) + second
    return pairs


def dense(first: Codes, second: Codes) -> Codes:
    """Like `paired`, small enough to be combined again."""
    _, inverse = np.unique(paired(first, second), return_inverse=True)
    coded: Codes = inverse.reshape(-1)
    return coded
