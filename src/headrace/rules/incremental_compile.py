"""Rules compiled to functions over batches of schedules.

A compiled expression takes a `Frame` (the columns of the relations for a batch) and returns `Values`. What does not
depend on the schedule is done once, when compiling: joins, the conditions of `where` over fixed attributes, and orders
by fixed keys. Shapes that have no such form raise `NotCompiled`; they are evaluated schedule by schedule instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from headrace.rules import incremental_values as iv
from headrace.rules.attributes import RELATIONS
from headrace.rules.incremental_values import ALL_ROWS, Array, Present, Truth, Values
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
    RelationName,
    Select,
    Text,
    Type,
    Unknown,
)

MOST_ROWS = 1_000_000
"""A select over more combinations of rows than this is not compiled."""

Key: TypeAlias = tuple[str, str, bool]
"""Relation, attribute, and whether it is read as text."""
Frame: TypeAlias = Mapping[Key, Values]
ValueOf: TypeAlias = Callable[[Frame], Values]
TruthOf: TypeAlias = Callable[[Frame], Truth]


EXACT = (Type.SIZE, Type.TASK, Type.PROC, Type.TEXT, Type.TASKS)
"""Types compared without tolerance."""


def is_tolerant(left: Expression, right: Expression) -> bool:
    return left.type not in EXACT and right.type not in EXACT


class NotCompiled(Exception):
    """This shape of a rule has no compiled form."""


class Catalog(Protocol):
    """What compiling needs to know about a problem."""

    def rows(self, relation: RelationName) -> int: ...

    def fixed(self, key: Key) -> Values:
        """A column that does not depend on the schedule, as [1, rows]."""
        ...

    def code(self, text: str) -> int:
        """The number of a text among all texts in the rules and columns, in their order."""
        ...

    def matching(self, pattern: str) -> Array:
        """For each text number, whether the text matches the pattern of a `like`."""
        ...


@dataclass(frozen=True)
class Level:
    """A select around an expression: its rows are one axis of the arrays."""

    sources: Mapping[str, tuple[RelationName, Array]]
    """By alias: the relation, and its row in each row of the select."""
    rows: int


Levels: TypeAlias = tuple[Level, ...]


class Rows(NamedTuple):
    """A compiled select that is not a single value."""

    values: Callable[[Frame], tuple[Values, Present]]
    rows: int


def is_fixed(node: Expression | Condition) -> bool:
    """Whether a value is known before planning."""
    return not any(
        (isinstance(part, Column) and _scheduled(part.attribute)) or isinstance(part, Select)
        for part in walk(node)
    )


def _scheduled(attribute: str) -> bool:
    return any(attribute in r and r[attribute].scheduled for r in RELATIONS.values())


def walk(node: Expression | Condition) -> Iterator[Expression | Condition]:
    """A node and all nodes below it, selects included."""
    yield node
    for child in children_of(node):
        yield from walk(child)


def children_of(node: Expression | Condition) -> list[Expression | Condition]:
    match node:
        case Arithmetic() | Compare():
            return [node.left, node.right]
        case Negative() | Absolute() | IsUnknown() | Like():
            return [node.operand]
        case Aggregate():
            return [] if node.operand is None else [node.operand]
        case Between():
            return [node.operand, node.low, node.high]
        case In():
            options = [node.options] if isinstance(node.options, Select) else [*node.options]
            return [node.operand, *options]
        case And() | Or():
            return [*node.parts]
        case Not():
            return [node.part]
        case Select():
            conditions = [c for c in (node.where, node.having) if c is not None]
            return [*node.columns, *conditions, *node.group_by, *(o.key for o in node.order_by)]
    return []


class Compiler:
    """Compiles expressions and conditions; collects the columns that they read."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.used: set[Key] = set()

    # Expressions. `levels` are the selects around them, outermost first.

    def value(self, node: Expression, levels: Levels = ()) -> ValueOf:
        match node:
            case Number():
                constant = iv.exactly(np.array([node.value]))
                return lambda frame: constant
            case Text():
                coded = iv.exactly(np.array([float(self.catalog.code(node.value))]))
                return lambda frame: coded
            case Unknown():
                unknown = iv.exactly(np.zeros(1), iv.FALSE)
                return lambda frame: unknown
            case Column():
                return self._column(node, levels)
            case Negative():
                operand = self.value(node.operand, levels)
                return lambda frame: iv.negative(operand(frame))
            case Absolute():
                inside = self.value(node.operand, levels)
                return lambda frame: iv.absolute(inside(frame))
            case Arithmetic():
                return self._arithmetic(
                    node.op, self.value(node.left, levels), self.value(node.right, levels)
                )
            case Select():
                return self.scalar(node, levels)
        raise NotCompiled(type(node).__name__)

    def _arithmetic(self, op: str, left: ValueOf, right: ValueOf) -> ValueOf:
        do = {"+": iv.add, "-": iv.subtract, "*": iv.multiply, "/": iv.divide}[op]
        return lambda frame: do(left(frame), right(frame))

    def _column(self, node: Column, levels: Levels) -> ValueOf:
        for axis in range(len(levels) - 1, -1, -1):
            if node.source in levels[axis].sources:
                relation, index = levels[axis].sources[node.source]
                break
        else:
            raise NotCompiled(node.attribute)
        key = (relation, node.attribute, node.type is Type.TEXT)
        self.used.add(key)
        whole = len(index) == self.catalog.rows(relation) and bool((index == np.arange(len(index))).all())
        before, after = (1,) * axis, (1,) * (len(levels) - 1 - axis)

        def shaped(a: Array) -> Array:
            if a.ndim < 2:
                return a
            a = a if whole else a[:, index]
            return a.reshape(a.shape[0], *before, a.shape[1], *after) if before or after else a

        return lambda frame: mapped(frame[key], shaped)

    def scalar(self, node: Select, levels: Levels) -> ValueOf:
        """A select with one row: aggregates without `group by`, or a single row found when compiling."""
        if node.group_by or node.having is not None:
            raise NotCompiled("group by")
        if not node.single:
            return self._only_row(node, levels)
        level, present = self._level(node, levels)
        inner = (*levels, level)
        column = self._aggregated(node.columns[0], inner, levels)
        return lambda frame: column(frame, present(frame))

    def _only_row(self, node: Select, levels: Levels) -> ValueOf:
        rows = self.rows(node, levels)
        if rows.rows != 1:
            raise NotCompiled("a select of several rows as one value")

        def value(frame: Frame) -> Values:
            values, present = rows.values(frame)
            known = iv.both(values.known, present.surely)
            exact = present.exact and values.known is values.maybe
            maybe = known if exact else iv.both(values.maybe, present.possibly)
            return mapped(Values(values.low, values.high, known, maybe), _last_removed)

        return value

    def _aggregated(
        self, node: Expression, inner: Levels, outer: Levels
    ) -> Callable[[Frame, Present], Values]:
        """An expression over aggregates of the innermost level."""
        match node:
            case Aggregate():
                if node.distinct and node.name in ("count", "sum", "avg"):
                    raise NotCompiled("distinct")
                rows, name = inner[-1].rows, node.name
                if node.operand is None:
                    return lambda frame, present: iv.aggregate(name, None, present, rows)
                operand = self.value(node.operand, inner)
                return lambda frame, present: iv.aggregate(name, operand(frame), present, rows)
            case Arithmetic():
                left, right = (self._aggregated(n, inner, outer) for n in (node.left, node.right))
                do = {"+": iv.add, "-": iv.subtract, "*": iv.multiply, "/": iv.divide}[node.op]
                return lambda frame, present: do(left(frame, present), right(frame, present))
            case Negative():
                negated = self._aggregated(node.operand, inner, outer)
                return lambda frame, present: iv.negative(negated(frame, present))
            case Absolute():
                inside = self._aggregated(node.operand, inner, outer)
                return lambda frame, present: iv.absolute(inside(frame, present))
        plain = self.value(node, outer)
        return lambda frame, present: plain(frame)

    def rows(self, node: Select, levels: Levels = ()) -> Rows:
        """A select as one value per row, with the rows that there are."""
        if node.group_by or node.having is not None or node.distinct or len(node.columns) != 1:
            raise NotCompiled("group by, having or distinct")
        if node.single:
            scalar = self.scalar(node, levels)
            return Rows(lambda frame: (mapped(scalar(frame), last_added), ALL_ROWS), 1)
        level, present = self._level(node, levels)
        column = self.value(node.columns[0], (*levels, level))
        return Rows(lambda frame: (column(frame), present(frame)), level.rows)

    def _level(self, node: Select, levels: Levels) -> tuple[Level, Callable[[Frame], Present]]:
        """The rows of a select: those that the fixed conditions of `where` leave, and a test for the others."""
        level = _product(node, self.catalog)
        parts = _conjuncts(node.where)
        aliases = set(level.sources)
        fixed = [p for p in parts if is_fixed(p) and _sources(p) <= aliases]
        for part in fixed:
            level = _kept(level, self._fixed_truth(part, level))
        if node.order_by and all(is_fixed(o.key) and _sources(o.key) <= aliases for o in node.order_by):
            level = _kept(level, self._fixed_order(node, level))
        inner = (*levels, level)
        tests = [self.truth(p, inner) for p in parts if p not in fixed]
        if not tests:
            return level, lambda frame: ALL_ROWS

        def present(frame: Frame) -> Present:
            truth = tests[0](frame)
            for test in tests[1:]:
                truth = iv.conjunction(truth, test(frame))
            return Present(truth.true, truth.maybe_true)

        return level, present

    def _fixed_frame(self, node: Expression | Condition, level: Level) -> Frame:
        keys = {
            (level.sources[n.source][0], n.attribute, n.type is Type.TEXT)
            for n in walk(node)
            if isinstance(n, Column)
        }
        return {key: self.catalog.fixed(key) for key in sorted(keys)}

    def _fixed_truth(self, part: Condition, level: Level) -> Array:
        true = self.truth(part, (level,))(self._fixed_frame(part, level)).true
        return np.flatnonzero(np.broadcast_to(true, (1, level.rows))[0])

    def _fixed_order(self, node: Select, level: Level) -> Array:
        """Rows by the keys of `order by`; UNKNOWN last, ties in the natural order."""
        keys: list[Array] = []
        for order in node.order_by:
            values = self.value(order.key, (level,))(self._fixed_frame(order.key, level))
            shape = (1, level.rows)
            known = np.broadcast_to(values.known, shape)[0]
            value = np.broadcast_to(values.low, shape)[0]
            keys = [np.where(known, -value if order.descending else value, 0.0), ~known, *keys]
        # lexsort takes the most important key last.
        pairs = [(keys[i], keys[i + 1]) for i in range(0, len(keys), 2)]
        return np.lexsort([k for value, unknown in pairs for k in (value, unknown)])

    # Conditions.

    def truth(self, node: Condition, levels: Levels = ()) -> TruthOf:
        match node:
            case Compare():
                left, right, op = self.value(node.left, levels), self.value(node.right, levels), node.op
                tolerant = is_tolerant(node.left, node.right)
                return lambda frame: iv.compare(op, left(frame), right(frame), tolerant)
            case And() | Or():
                parts = [self.truth(p, levels) for p in node.parts]
                return _joined(iv.conjunction if isinstance(node, And) else iv.disjunction, parts)
            case Not():
                inside = self.truth(node.part, levels)
                return lambda frame: iv.invert(inside(frame))
            case IsUnknown():
                operand = self.value(node.operand, levels)
                return negate(node.negated, lambda frame: iv.is_unknown(operand(frame)))
            case Between():
                return self._between(node, levels)
            case Like():
                return self._like(node, levels)
            case In():
                return self._in(node, levels)
        raise NotCompiled(type(node).__name__)

    def _between(self, node: Between, levels: Levels) -> TruthOf:
        operand, low, high = (self.value(n, levels) for n in (node.operand, node.low, node.high))
        tolerant = [is_tolerant(node.operand, n) for n in (node.low, node.high)]

        def truth(frame: Frame) -> Truth:
            value = operand(frame)
            above = iv.compare(">=", value, low(frame), tolerant[0])
            return iv.conjunction(above, iv.compare("<=", value, high(frame), tolerant[1]))

        return negate(node.negated, truth)

    def _like(self, node: Like, levels: Levels) -> TruthOf:
        operand, matches = self.value(node.operand, levels), self.catalog.matching(node.pattern)

        def truth(frame: Frame) -> Truth:
            value = operand(frame)
            hit = matches[value.low.astype(np.int64)]
            if value.exact:
                return Truth(hit & value.known, hit & value.known, ~hit & value.known, ~hit & value.known)
            sure = (value.low == value.high) & value.known
            return Truth(hit & sure, value.maybe & (hit | ~sure), ~hit & sure, value.maybe & ~(hit & sure))

        def exact_truth(frame: Frame) -> Truth:
            found = truth(frame)
            if operand(frame).exact:
                return Truth(found.true, found.true, found.false, found.false)
            return found

        return negate(node.negated, exact_truth)

    def _in(self, node: In, levels: Levels) -> TruthOf:
        operand = self.value(node.operand, levels)
        if not isinstance(node.options, Select):
            tests = [self.truth(Compare("=", node.operand, o, node.at), levels) for o in node.options]
            if not tests:
                return negate(node.negated, lambda frame: iv.definite(iv.FALSE))
            return negate(node.negated, _joined(iv.disjunction, tests))
        rows, tolerant = self.rows(node.options, levels), is_tolerant(node.operand, node.options)

        def truth(frame: Frame) -> Truth:
            values, present = rows.values(frame)
            same = iv.compare("=", mapped(operand(frame), last_added), values, tolerant)
            true = iv.any_row(same.true & present.surely, rows.rows)
            false = iv.all_rows(same.false | ~present.possibly, rows.rows)
            if same.exact and present.exact:
                return Truth(true, true, false, false)
            maybe = iv.any_row(same.maybe_true & present.possibly, rows.rows)
            maybe_not = iv.all_rows(same.maybe_false | ~present.surely, rows.rows)
            return Truth(true, maybe, false, maybe_not)

        return negate(node.negated, truth)


def _joined(do: Callable[[Truth, Truth], Truth], parts: list[TruthOf]) -> TruthOf:
    def truth(frame: Frame) -> Truth:
        found = parts[0](frame)
        for part in parts[1:]:
            found = do(found, part(frame))
        return found

    return truth


def negate(negated: bool, truth: TruthOf) -> TruthOf:
    return (lambda frame: iv.invert(truth(frame))) if negated else truth


def mapped(values: Values, do: Callable[[Array], Array]) -> Values:
    """All four arrays through a change of shape; arrays that are the same stay the same."""
    low, known = do(values.low), do(values.known)
    high = low if values.high is values.low else do(values.high)
    return Values(low, high, known, known if values.maybe is values.known else do(values.maybe))


def last_added(a: Array) -> Array:
    return a if a.ndim == 0 or a is iv.TRUE else a[..., None]


def _last_removed(a: Array) -> Array:
    return a if a.ndim < 2 else a[..., 0]


def _conjuncts(where: Condition | None) -> list[Condition]:
    if where is None:
        return []
    return [c for part in where.parts for c in _conjuncts(part)] if isinstance(where, And) else [where]


def _sources(node: Expression | Condition) -> set[str]:
    return {part.source for part in walk(node) if isinstance(part, Column)}


def _product(node: Select, catalog: Catalog) -> Level:
    """All combinations of the rows of a select's sources, the last source fastest."""
    sizes = [catalog.rows(source.relation) for source in node.sources]
    if np.prod(sizes, dtype=np.float64) > MOST_ROWS:
        raise NotCompiled("too many rows")
    grids = [g.ravel() for g in np.indices(sizes)]
    sources = {s.alias: (s.relation, g) for s, g in zip(node.sources, grids, strict=True)}
    return Level(sources, int(np.prod(sizes)))


def _kept(level: Level, rows: Array) -> Level:
    return Level({a: (r, index[rows]) for a, (r, index) in level.sources.items()}, len(rows))
