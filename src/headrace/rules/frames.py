"""Rows of joined relations, and how they are joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.errors import BadRules
from headrace.model.graph import Bools
from headrace.rules.relations import Relations
from headrace.rules.tree import Column, RelationName, Span
from headrace.rules.vectors import Codes, Vector, codes, dense, limits, with_common_words

MOST_ROWS = 20_000_000
"""A select that joins more rows, or a test of more combinations than can be counted by sorting, is an error."""


@dataclass(eq=False)
class Frame:
    """Rows of some sources side by side. It is never changed; a frozen one takes longer to make."""

    relations: Relations
    rows: dict[str, Codes]
    """For each source, its row of the relation."""
    kinds: dict[str, RelationName]
    """The relation of each source."""
    length: int

    def column(self, column: Column) -> Vector:
        relation, rows = self.kinds[column.source], self.rows[column.source]
        whole = self.relations.column(relation, column.attribute, column.type)
        return whole if rows is self.relations.every(relation) else whole[rows]

    def take(self, chosen: Bools | Codes) -> Frame:
        """Some of the rows."""
        rows = {source: row[chosen] for source, row in self.rows.items()}
        length = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
        return Frame(self.relations, rows, self.kinds, length)

    def keep(self, sources: set[str]) -> Frame:
        """The same rows of some of the sources."""
        rows = {source: row for source, row in self.rows.items() if source in sources}
        return Frame(self.relations, rows, self.kinds, self.length)

    def beside(self, other: Frame, mine: Codes, others: Codes) -> Frame:
        """Pairs of rows of two frames; where both have a source, the other's."""
        left, right = self.take(mine), other.take(others)
        return Frame(self.relations, left.rows | right.rows, self.kinds | other.kinds, len(mine))


def one_row(relations: Relations) -> Frame:
    """The frame of a select that stands alone: a single row of no sources."""
    return Frame(relations, {}, {}, 1)


def cross(left: int, right: int, at: Span, source: str) -> tuple[Codes, Codes]:
    """All pairs of rows, in lexicographic order."""
    require_rows(left * right, at, source)
    return np.repeat(np.arange(left), right), np.tile(np.arange(right), left)


def equal_pairs(left: Vector, right: Vector, tolerant: bool) -> tuple[Codes, Codes, Codes]:
    """Rows of the right that match each row of the left: (order of the right, first, number), O((n + m) log m)."""
    left, right = with_common_words(left, right)
    known = np.flatnonzero(right.known)
    order = known[np.argsort(right.values[known], kind="stable")]
    low, high = limits(right.values[order], tolerant)
    first = np.searchsorted(high, left.values, "left")
    count = np.where(left.known, np.searchsorted(low, left.values, "right") - first, 0)
    return order, first, count


def expand(order: Codes, first: Codes, count: Codes) -> tuple[Codes, Codes]:
    """All pairs of rows of `equal_pairs`: O(pairs)."""
    total = int(count.sum())
    mine = np.repeat(np.arange(len(count)), count)
    offset = np.repeat(first - (np.cumsum(count) - count), count)
    return mine, order[offset + np.arange(total)]


def one_key(left: list[Vector], right: list[Vector], n: int, m: int) -> tuple[Vector, Vector]:
    """Several exact keys as one: equal where all are equal and known."""
    if len(left) == 1:
        return left[0].spread(n), right[0].spread(m)
    coded: Codes = np.zeros(n + m, np.int64)
    known = np.ones(n + m, np.bool_)
    for a, b in zip(left, right, strict=True):
        a, b = with_common_words(a, b)
        a, b = a.spread(n), b.spread(m)
        both = Vector(np.concatenate((a.values, b.values)), np.concatenate((a.known, b.known)))
        coded = dense(coded, codes(both, n + m))
        known &= both.known
    values = coded.astype(np.float64)
    return Vector(values[:n], known[:n]), Vector(values[n:], known[n:])


def require_rows(count: int, at: Span, source: str) -> None:
    """Refuse what would take too much memory."""
    if count > MOST_ROWS:
        raise BadRules(
            f"this needs {count:,} rows, more than {MOST_ROWS:,}",
            where=source,
            line=at.line,
            column=at.column,
            hint="join with an equality, or select fewer rows with where",
        )
