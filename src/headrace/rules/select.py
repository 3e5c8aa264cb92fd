"""Evaluation of selects: filters, joins, groups, order; sub-selects, correlated or not.

Everything works on whole columns. A sub-select that refers to rows around it is evaluated once for each different
combination of the values that it refers to, by joining those rows with its own sources.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from headrace.model.errors import BadRules
from headrace.model.graph import Bools, Floats
from headrace.rules.frames import Frame, one_row
from headrace.rules.grouping import Groups, aggregate, groups_of
from headrace.rules.joins import join
from headrace.rules.like import matching
from headrace.rules.membership import member
from headrace.rules.relations import Relations
from headrace.rules.tree import (
    Absolute,
    Aggregate,
    And,
    Arithmetic,
    Between,
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
    Select,
    Text,
    Unknown,
)
from headrace.rules.vectors import (
    UNKNOWN,
    Codes,
    Truth,
    Vector,
    arithmetic,
    codes,
    compare,
    conjunction,
    constant,
    dense,
    disjunction,
    is_tolerant,
)
from headrace.rules.walk import conjuncts, has_aggregate, references


class Context(NamedTuple):
    """Where an expression is evaluated: one value for each row, or for each group."""

    frame: Frame
    """The rows; for groups, the first row of each."""
    groups: Groups | None = None


class Rows(NamedTuple):
    """The result of a select."""

    owner: Codes
    """The row of the frame around it that each result belongs to."""
    value: Vector
    """Its first column."""
    frame: Frame | None
    """The rows that the results were made of, for messages; None if each was made of many."""


class Evaluator:
    """Evaluates expressions and conditions on one schedule."""

    def __init__(self, relations: Relations, source: str = "rules") -> None:
        self.relations = relations
        self.source = source
        """The file, for messages."""
        self._tables: dict[int, tuple[Select, Rows]] = {}

    def table(self, select: Select) -> Rows:
        """The rows of a select that stands alone; evaluated once."""
        if id(select) not in self._tables:
            self._tables[id(select)] = select, self.rows(select, one_row(self.relations))
        return self._tables[id(select)][1]

    def rows(self, select: Select, outer: Frame) -> Rows:
        """The rows of a select for each row of the frame around it."""
        grouped = is_grouped(select)
        ordered_rows = bool(select.group_by) or not grouped
        frame, owner = join(
            self, select.sources, conjuncts(select.where), outer, select.at, ordered=ordered_rows
        )
        context = Context(frame)
        if grouped:
            context, owner = self._grouped(select, frame, owner, outer)
        if select.having is not None:
            kept = self.truth(select.having, context).spread(len(owner)).true
            context, owner = _chosen(context, owner, kept)
        ordered = self._order(select, context, owner)
        value = self.value(select.columns[0], context) if select.columns else constant(1.0)
        value = value.spread(len(owner))
        if ordered is not None:
            value, owner, context = value[ordered], owner[ordered], Context(context.frame.take(ordered))
        if select.distinct:
            _, first = np.unique(dense(owner, codes(value, len(owner))), return_index=True)
            first.sort()
            value, owner, context = value[first], owner[first], Context(context.frame.take(first))
        return Rows(owner, value, None if grouped and not select.group_by else context.frame)

    def _grouped(self, select: Select, frame: Frame, owner: Codes, outer: Frame) -> tuple[Context, Codes]:
        if not select.group_by:  # a group for each row around it, also where there is nothing to aggregate
            return Context(outer, Groups(frame, owner, outer.length)), np.arange(outer.length)
        context = Context(frame)
        groups, first = groups_of(frame, owner, [self.value(key, context) for key in select.group_by])
        return Context(frame.take(first), groups), owner[first]

    def _order(self, select: Select, context: Context, owner: Codes) -> Codes | None:
        """The permutation that `order by` asks for: UNKNOWN last, ties in the order of the rows."""
        if not select.order_by:
            return None
        keys: list[Bools | Floats] = []
        for order in select.order_by:
            key = self.value(order.key, context).spread(len(owner))
            keys += [~key.known, np.where(key.known, -key.values if order.descending else key.values, 0.0)]
        return np.lexsort((*reversed(keys), owner))

    def value(self, expression: Expression, context: Context) -> Vector:
        """One value for each row or group, or a single one for all of them."""
        match expression:
            case Number(value=value) | Text(value=value):
                return constant(value)
            case Unknown():
                return UNKNOWN
            case Column():
                return context.frame.column(expression)
            case Arithmetic(op=op, left=left, right=right):
                return arithmetic(op, self.value(left, context), self.value(right, context))
            case Negative(operand=operand):
                inner = self.value(operand, context)
                return Vector(-inner.values, inner.known)
            case Absolute(operand=operand):
                inner = self.value(operand, context)
                return Vector(np.abs(inner.values), inner.known)
            case Aggregate(operand=argument):
                assert context.groups is not None
                of = None if argument is None else self.value(argument, Context(context.groups.frame))
                return aggregate(expression, context.groups, of)
            case Select():
                return self._single_value(expression, context.frame)

    def _single_value(self, select: Select, frame: Frame) -> Vector:
        """A sub-select as a value: UNKNOWN if it has no row, an error if it has several."""
        inner, key = self.for_each(select, frame)
        count = np.bincount(inner.owner, minlength=int(key.max(initial=0)) + 1)
        if (count > 1).any():
            raise BadRules(
                f"this select gives {int(count.max()):,} values where one is compared",
                where=self.source,
                line=select.at.line,
                column=select.at.column,
                hint="use in, or an aggregate such as max",
            )
        row = np.zeros(len(count), np.int64)
        row[inner.owner] = np.arange(len(inner.owner))
        if not len(inner.owner):
            return UNKNOWN
        found = inner.value[row]
        return Vector(found.values, found.known & (count == 1), found.words)[key]

    def for_each(self, select: Select, frame: Frame) -> tuple[Rows, Codes]:
        """The rows of a sub-select for the different values that it refers to, and the number of these for each row.

        A sub-select that refers to nothing around it is evaluated once, and the second array has one element.
        """
        outside = references(select)
        if not outside:
            return self.table(select), np.zeros(1, np.int64)
        key: Codes = np.zeros(frame.length, np.int64)
        for column in outside.values():
            key = dense(key, codes(frame.column(column), frame.length))
        _, first = np.unique(key, return_index=True)
        needed = frame.keep({column.source for column in outside.values()})
        return self.rows(select, needed.take(first)), key

    def truth(self, condition: Condition, context: Context) -> Truth:
        """Where a condition is TRUE and where FALSE, for each row or group or for all."""
        match condition:
            case Compare(op=op, left=left, right=right):
                a, b = self.value(left, context), self.value(right, context)
                return compare(op, a, b, is_tolerant(left, right))
            case And(parts=parts):
                return conjunction([self.truth(part, context) for part in parts])
            case Or(parts=parts):
                return disjunction([self.truth(part, context) for part in parts])
            case Not(part=part):
                return self.truth(part, context).negated()
            case Between(operand=operand, low=low, high=high, negated=negated):
                x = self.value(operand, context)
                above = compare(">=", x, self.value(low, context), is_tolerant(operand, low))
                below = compare("<=", x, self.value(high, context), is_tolerant(operand, high))
                return conjunction([above, below]).negated(negated)
            case Like():
                return like(condition, self.value(condition.operand, context))
            case IsUnknown(operand=operand, negated=negated):
                known = self.value(operand, context).known
                return Truth(~known, known).negated(negated)
            case In():
                return self._in(condition, context)

    def _in(self, test: In, context: Context) -> Truth:
        x = self.value(test.operand, context)
        if isinstance(test.options, Select):
            options, key = self.for_each(test.options, context.frame)
            found = member(x, key, options.owner, options.value, is_tolerant(test.operand, test.options))
        elif x.words is not None and all(isinstance(option, Text) for option in test.options):
            found = one_of(x, [option.value for option in test.options if isinstance(option, Text)])
        else:
            parts = [
                compare("=", x, self.value(option, context), is_tolerant(test.operand, option))
                for option in test.options
            ]
            found = disjunction(parts)
        return found.negated(test.negated)


def is_grouped(select: Select) -> bool:
    """Whether the rows of a result are made of groups of rows."""
    clauses = [*select.columns, *([] if select.having is None else [select.having])]
    return bool(select.group_by) or any(has_aggregate(clause) for clause in clauses)


def one_of(x: Vector, options: list[str]) -> Truth:
    """Whether each text is one of these: O(rows + options * log words)."""
    words = x.words or ()
    hit = np.zeros(len(words) + 1, np.bool_)
    for option in options:
        at = bisect_left(words, option)
        hit[at] |= at < len(words) and words[at] == option
    holds = hit[x.values.astype(np.intp)]
    return Truth(x.known & holds, x.known & ~holds)


def like(test: Like, x: Vector) -> Truth:
    """A pattern is matched with each different word once, and only with those that begin as it does."""
    words = x.words or ()
    hit = np.zeros(len(words) + 1, np.bool_)
    hit[matching(words, test.pattern)] = True
    holds = hit[x.values.astype(np.intp)]
    return Truth(x.known & holds, x.known & ~holds).negated(test.negated)


def _chosen(context: Context, owner: Codes, kept: Bools) -> tuple[Context, Codes]:
    """The rows or groups where `kept`."""
    frame = context.frame.take(kept)
    if context.groups is None:
        return Context(frame), owner[kept]
    new = np.cumsum(kept) - 1
    rows = kept[context.groups.group]
    inner = context.groups.frame.take(rows)
    groups = Groups(inner, new[context.groups.group[rows]], int(np.count_nonzero(kept)))
    return Context(frame, groups), owner[kept]
