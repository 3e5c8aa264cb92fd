"""Rule expressions translated to the terms of a solver's model, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias

from headrace.rules.cpsat_schedule import ScheduleModel
from headrace.rules.cpsat_terms import (
    UNKNOWN,
    CannotExpress,
    Cell,
    Literal,
    Quotient,
    Term,
    Truth,
    constant,
    negated,
)
from headrace.rules.frames import one_row
from headrace.rules.incremental_compile import is_tolerant
from headrace.rules.joins import join
from headrace.rules.like import matcher
from headrace.rules.select import Evaluator
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
    Ordering,
    RelationName,
    Relationship,
    Select,
    Source,
    Span,
    Text,
    Unknown,
)
from headrace.rules.walk import children, is_static, sources_of

MOST_ROWS = 200_000
"""A rule that combines more rows than this is not translated."""

Env: TypeAlias = Mapping[str, tuple[RelationName, int]]
"""By alias: a row of a relation."""


class Row(NamedTuple):
    """A row of a select: whether there is one, its value, and the rows that it was made of."""

    present: Literal
    cell: Cell
    env: Env


class Test(NamedTuple):
    """One test of a rule: whether it is made, whether it fails, and its rows."""

    present: Literal
    false: Literal
    rows: tuple[Env, ...]


@dataclass(frozen=True)
class Group:
    """Rows that are aggregated together."""

    rows: Sequence[tuple[Literal, Env]]


class Translator:
    """Translates expressions and conditions of rules into a model."""

    def __init__(self, schedule: ScheduleModel) -> None:
        self.schedule = schedule
        self.terms = schedule.terms
        self.evaluator = Evaluator(schedule.relations, "")

    # Expressions.

    def cell(self, node: Expression, env: Env, group: Group | None = None) -> Cell:
        match node:
            case Number() | Text():
                return constant(node.value)
            case Unknown():
                return UNKNOWN
            case Column():
                relation, row = env[node.source]
                return self.schedule.cell(relation, node.attribute, row, node.type)
            case Arithmetic():
                left, right = self.cell(node.left, env, group), self.cell(node.right, env, group)
                return self._arithmetic(node.op, left, right)
            case Negative():
                return self._arithmetic("*", constant(-1.0), self.cell(node.operand, env, group))
            case Absolute():
                inside = self.cell(node.operand, env, group)
                return Cell(term=self.terms.absolute(self.terms.term(inside)), known=inside.known)
            case Aggregate():
                assert group is not None
                return self._aggregate(node, group)
            case Select():
                return self._single(node, env)
        raise CannotExpress(f"{type(node).__name__} has no form in the model")

    def _arithmetic(self, op: str, a: Cell, b: Cell) -> Cell:
        terms, known = self.terms, self.terms.all_of((a.known, b.known))
        if known is False:
            return UNKNOWN
        constants = [_constant(c) for c in (a, b)]
        if op == "/":
            return self._quotient(a, b, known)
        if op == "*":
            for cell, factor in ((a, constants[1]), (b, constants[0])):
                if isinstance(cell.term, Quotient) and factor is not None and factor > 0:
                    scaled = Quotient(terms.scaled(cell.term.over, factor), cell.term.under)
                    return Cell(term=scaled, known=known)
        left, right = terms.term(a), terms.term(b)
        made = {"+": terms.plus, "-": terms.minus, "*": terms.times}[op](left, right)
        return Cell(term=made, known=known)

    def _quotient(self, a: Cell, b: Cell, known: Literal) -> Cell:
        terms, under = self.terms, self.terms.term(b)
        if under.constant is not None:
            if under.constant == 0:
                return UNKNOWN
            if isinstance(a.term, Quotient):
                raise CannotExpress("a quotient of quotients is not linear")
            return Cell(term=terms.scaled(terms.term(a), 1 / under.constant), known=known)
        if under.low < 0:
            raise CannotExpress("a value is divided by one that may be negative")
        nonzero = terms.reified(">", under, terms.number(Fraction(0)))
        return Cell(term=Quotient(terms.term(a), under), known=terms.all_of((known, nonzero)))

    def _single(self, node: Select, env: Env) -> Cell:
        rows = [row for row in self.rows(node, env) if row.present is not False]
        if not rows:
            return UNKNOWN
        if len(rows) > 1:
            raise CannotExpress("a select of several rows is used as one value")
        return Cell(
            rows[0].cell.choice, rows[0].cell.term, self.terms.all_of((rows[0].present, rows[0].cell.known))
        )

    # Aggregates.

    def _aggregate(self, node: Aggregate, group: Group) -> Cell:
        terms = self.terms
        if node.operand is None:
            return Cell(term=self._count([present for present, _ in group.rows]))
        rows = []
        for present, env in group.rows:
            cell = self.cell(node.operand, env)
            rows.append((terms.all_of((present, cell.known)), cell))
        if node.distinct and node.name in ("count", "sum", "avg"):
            rows = [(lit, constant(v)) for v, lit in self._distinct(rows).items()]
        if node.name == "count":
            return Cell(term=self._count([included for included, _ in rows]))
        values = [(included, terms.term(cell)) for included, cell in rows if included is not False]
        if node.name in ("max", "min"):
            sign = Fraction(1 if node.name == "max" else -1)
            best, known = terms.largest([(lit, terms.scaled(t, sign)) for lit, t in values])
            return Cell(term=terms.scaled(best, sign), known=known)
        total = terms.total([terms.only_if(t, lit) for lit, t in values])
        if node.name == "sum":
            return Cell(term=total)
        return self._quotient(Cell(term=total), Cell(term=self._count([lit for lit, _ in values])), True)

    def _count(self, literals: Sequence[Literal]) -> Term:
        fixed = sum(literal is True for literal in literals)
        moving = [literal for literal in literals if not isinstance(literal, bool)]
        return Term(fixed + sum(moving), 1, fixed, fixed + len(moving))

    def _distinct(self, rows: Sequence[tuple[Literal, Cell]]) -> dict[float | str, Literal]:
        """Each different value, and whether some row has it."""
        found: dict[float | str, list[Literal]] = {}
        for included, cell in rows:
            if cell.choice is None:
                raise CannotExpress("distinct values of times or sums are not modelled")
            for literal, value in cell.choice:
                found.setdefault(value, []).append(self.terms.all_of((included, literal)))
        return {value: self.terms.any_of(literals) for value, literals in found.items()}

    # Selects.

    def rows(self, node: Select, env: Env) -> list[Row]:
        """The rows of a select, without those that cannot be there."""
        found = list(self._joined(node, env))
        column = node.columns[0] if node.columns else Number(1.0, node.at)
        if node.group_by:
            made = [row for group in self._groups(node, found) for row in self._of_group(node, *group)]
        elif any(_aggregates(n) for n in (*node.columns, *([node.having] if node.having else []))):
            made = self._of_group(node, True, Group(found), env)
        else:
            made = [Row(present, self.cell(column, inner), inner) for present, inner in found]
        if not node.distinct:
            return made
        values = self._distinct([(row.present, row.cell) for row in made if row.cell.known is True])
        if any(row.cell.known is not True for row in made):
            raise CannotExpress("distinct values that may be UNKNOWN are not modelled")
        return [Row(literal, constant(value), {}) for value, literal in values.items()]

    def _of_group(self, node: Select, present: Literal, group: Group, env: Env) -> list[Row]:
        if node.having is not None:
            present = self.terms.all_of((present, self.truth(node.having, env, group).true))
        return [] if present is False else [Row(present, self.cell(node.columns[0], env, group), env)]

    def _groups(
        self, node: Select, rows: Sequence[tuple[Literal, Env]]
    ) -> Iterator[tuple[Literal, Group, Env]]:
        """The groups of rows with equal keys; a key that depends on the schedule may put a row into several."""
        groups: dict[tuple[float | str | None, ...], list[tuple[Literal, Env]]] = {}
        for present, env in rows:
            keys = [self.cell(key, env) for key in node.group_by]
            if any(key.choice is None or key.known not in (True, False) for key in keys):
                raise CannotExpress("groups by times or sums are not modelled")
            options = [[(True, None)] if k.known is False else list(k.choice or ()) for k in keys]
            for combination in product(*options):
                literal = self.terms.all_of((present, *(lit for lit, _ in combination)))
                if literal is not False:
                    groups.setdefault(tuple(v for _, v in combination), []).append((literal, env))
        for members in groups.values():
            yield self.terms.any_of(lit for lit, _ in members), Group(members), members[0][1]

    def _joined(self, node: Select, env: Env) -> Iterator[tuple[Literal, Env]]:
        """All combinations of rows for which the condition may hold; conditions are tested as soon as they can be."""
        parts = _conjuncts(node.where)
        aliases = [s.alias for s in node.sources]
        ready = [[p for p in parts if _last_source(p, aliases) == i] for i in range(len(aliases))]
        rows = []
        for source, tests in zip(node.sources, ready, strict=True):
            fixed = [p for p in tests if _is_fixed(p, source.alias)]
            rows.append(self._fixed_rows(source, fixed, node.at))
            tests[:] = [p for p in tests if p not in fixed]
        made = 0

        def extend(position: int, inner: Env, present: Literal) -> Iterator[tuple[Literal, Env]]:
            nonlocal made
            if position == len(aliases):
                yield present, inner
                return
            source = node.sources[position]
            for row in rows[position]:
                made += 1
                if made > MOST_ROWS:
                    raise CannotExpress(f"a select combines more than {MOST_ROWS:,} rows")
                wider = {**inner, source.alias: (source.relation, row)}
                literal = present
                for part in ready[position]:
                    literal = self.terms.all_of((literal, self.truth(part, wider).true))
                    if literal is False:
                        break
                if literal is not False:
                    yield from extend(position + 1, wider, literal)

        yield from extend(0, env, True)

    def _fixed_rows(self, source: Source, tests: list[Condition], at: Span) -> Sequence[int]:
        """The rows of a relation for which conditions that no schedule changes are TRUE."""
        if not tests:
            return range(self.schedule.length(source.relation))
        relations = self.schedule.relations
        frame, _ = join(self.evaluator, (source,), tests, one_row(relations), at)
        found: list[int] = frame.rows[source.alias].tolist()
        return found

    # Conditions.

    def truth(self, node: Condition, env: Env, group: Group | None = None) -> Truth:
        match node:
            case Compare():
                left, right = self.cell(node.left, env, group), self.cell(node.right, env, group)
                return self.terms.compare(node.op, left, right, is_tolerant(node.left, node.right))
            case And():
                return self.terms.conjunction([self.truth(p, env, group) for p in node.parts])
            case Or():
                parts = [self.truth(p, env, group) for p in node.parts]
                return _inverted(self.terms.conjunction([_inverted(p) for p in parts]))
            case Not():
                return _inverted(self.truth(node.part, env, group))
            case IsUnknown():
                known = self.cell(node.operand, env, group).known
                return _negate(node.negated, Truth(negated(known), known))
            case Between():
                operand = self.cell(node.operand, env, group)
                above, below = (
                    self.terms.compare(
                        op, operand, self.cell(end, env, group), is_tolerant(node.operand, end)
                    )
                    for op, end in ((">=", node.low), ("<=", node.high))
                )
                return _negate(node.negated, self.terms.conjunction([above, below]))
            case Like():
                return self._like(node, self.cell(node.operand, env, group))
            case In():
                return self._in(node, self.cell(node.operand, env, group), env)

    def _like(self, node: Like, cell: Cell) -> Truth:
        matches = matcher(node.pattern)
        assert cell.choice is not None
        hits = [literal for literal, value in cell.choice if matches(str(value))]
        holds = True if len(hits) == len(cell.choice) else self.terms.any_of(hits)
        return _negate(node.negated, self.terms.known_truth(holds, cell.known))

    def _in(self, node: In, operand: Cell, env: Env) -> Truth:
        if isinstance(node.options, Select):
            tolerant = is_tolerant(node.operand, node.options)
            parts = []
            for row in self.rows(node.options, env):
                same = self.terms.compare("=", operand, row.cell, tolerant)
                absent = negated(row.present)
                parts.append(
                    Truth(
                        self.terms.all_of((same.true, row.present)), self.terms.any_of((same.false, absent))
                    )
                )
        else:
            parts = [
                self.terms.compare("=", operand, self.cell(o, env), is_tolerant(node.operand, o))
                for o in node.options
            ]
        found = _inverted(self.terms.conjunction([_inverted(p) for p in parts]))
        return _negate(node.negated, found)

    # Tests of rules.

    def tests(self, body: Relationship | Ordering) -> list[Test]:
        """All tests of a rule that may be made."""
        return self._relationship(body) if isinstance(body, Relationship) else self._ordering(body)

    def _relationship(self, body: Relationship) -> list[Test]:
        selects = _top_selects(body.condition)
        tables = [self.rows(select, {}) for select in selects]
        size = 1
        for table in tables:
            size *= len(table)
        if size > MOST_ROWS:
            raise CannotExpress(f"a rule has more than {MOST_ROWS:,} tests")
        made = []
        for rows in product(*tables):
            present = self.terms.all_of(row.present for row in rows)
            if present is False:
                continue
            fixed = {id(s): row.cell for s, row in zip(selects, rows, strict=True)}
            truth = _TopLevel(self, fixed).truth(body.condition, {})
            made.append(Test(present, truth.false, tuple(row.env for row in rows)))
        return made

    def _ordering(self, body: Ordering) -> list[Test]:
        node = body.sequence
        rows = self.rows(node, {})
        tolerant = is_tolerant(node, node)
        made = []
        for i, a in enumerate(rows):
            for b in rows[i + 1 :]:
                present = self.terms.all_of((a.present, b.present))
                if present is False:
                    continue
                first = self._precedes(node, a, b)
                for literal, x, y in ((first, a, b), (negated(first), b, a)):
                    there = self.terms.all_of((present, literal))
                    if there is not False:
                        false = self.terms.compare(body.test, x.cell, y.cell, tolerant).false
                        made.append(Test(there, false, (x.env, y.env)))
        return made

    def _precedes(self, node: Select, a: Row, b: Row) -> Literal:
        """Whether row a comes before row b, which is later in the natural order: UNKNOWN keys last."""
        result: Literal = True
        for order in reversed(node.order_by):
            x, y = self.cell(order.key, a.env), self.cell(order.key, b.env)
            if any(c.known not in (True, False) for c in (x, y)):
                raise CannotExpress("an order by values that may be UNKNOWN is not modelled")
            if x.known is not y.known:
                result = x.known
            elif x.known is True:
                op = ">" if order.descending else "<"
                less = self.terms.compare(op, x, y, False).true
                same = self.terms.compare("=", x, y, False).true
                result = self.terms.any_of((less, self.terms.all_of((same, result))))
        return result


class _TopLevel(Translator):
    """Translates the condition of a relationship for one combination of the rows of its selects."""

    def __init__(self, below: Translator, fixed: Mapping[int, Cell]) -> None:
        super().__init__(below.schedule)
        self.below, self.fixed = below, fixed

    def cell(self, node: Expression, env: Env, group: Group | None = None) -> Cell:
        return self.fixed[id(node)] if isinstance(node, Select) else super().cell(node, env, group)

    def rows(self, node: Select, env: Env) -> list[Row]:
        return self.below.rows(node, env)


def _constant(cell: Cell) -> Fraction | None:
    if cell.choice is not None and len(cell.choice) == 1 and not isinstance(cell.choice[0][1], str):
        return Fraction(cell.choice[0][1])
    return None


def _inverted(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true)


def _negate(negate: bool, truth: Truth) -> Truth:
    return _inverted(truth) if negate else truth


def _conjuncts(where: Condition | None) -> list[Condition]:
    if where is None:
        return []
    return [c for part in where.parts for c in _conjuncts(part)] if isinstance(where, And) else [where]


def _columns(node: Expression | Condition) -> Iterator[Column]:
    if isinstance(node, Column):
        yield node
    for child in children(node):
        yield from _columns(child)


def _is_fixed(node: Condition, alias: str) -> bool:
    """Whether a condition is about one source, and no schedule and no sub-select changes it."""
    return is_static(node) and sources_of(node) == {alias} and not _has_select(node)


def _has_select(node: Expression | Condition) -> bool:
    return isinstance(node, Select) or any(_has_select(child) for child in children(node))


def _last_source(node: Condition, aliases: Sequence[str]) -> int:
    """The last of a select's sources that a condition refers to."""
    return max((aliases.index(c.source) for c in _columns(node) if c.source in aliases), default=0)


def _aggregates(node: Expression | Condition) -> bool:
    if isinstance(node, Aggregate):
        return True
    return not isinstance(node, Select) and any(_aggregates(child) for child in children(node))


def _top_selects(condition: Condition) -> list[Select]:
    """The selects of a relationship, not those inside selects or after `in`."""
    found: list[Select] = []

    def visit(node: Expression | Condition) -> None:
        if isinstance(node, Select):
            found.append(node)
            return
        if isinstance(node, In) and isinstance(node.options, Select):
            visit(node.operand)
            return
        for child in children(node):
            visit(child)

    visit(condition)
    return found
