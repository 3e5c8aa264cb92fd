"""Integer terms, literals and three-valued conditions of a CP-SAT model.

Numbers are exact: an integer expression over a constant denominator, or a choice among constants. A literal is a
Boolean variable of the model, its negation, or a Python bool.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from headrace.model.errors import HeadraceError

Literal: TypeAlias = Any
"""A Boolean variable or its negation, or True or False."""
MOST = 2**50
"""Integer expressions stay below this, far from overflow."""
FINEST = 10**7
"""The largest denominator of a constant."""


class CannotExpress(HeadraceError):
    """A rule has no exact form in the solver's model; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Term:
    """`expr / den`, with `low <= expr <= high`."""

    expr: Any
    den: int
    low: int
    high: int

    @property
    def constant(self) -> Fraction | None:
        return Fraction(self.low, self.den) if self.low == self.high else None


@dataclass(frozen=True, slots=True)
class Quotient:
    """A number divided by another that is above 0 wherever the quotient is known."""

    over: Term
    under: Term


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of an expression: one of some constants, or a term; UNKNOWN where `known` is false."""

    choice: tuple[tuple[Literal, float | str], ...] | None = None
    term: Term | Quotient | None = None
    known: Literal = True


class Truth(NamedTuple):
    true: Literal
    false: Literal


UNKNOWN = Cell(choice=((True, 0.0),), known=False)


def constant(value: float | str) -> Cell:
    return Cell(choice=((True, value),))


def fraction(value: float) -> Fraction:
    """The exact fraction that a float stands for: the simplest one within rounding."""
    near = Fraction(value).limit_denominator(FINEST)
    if abs(float(near) - value) > 1e-12 * (1.0 + abs(value)):
        raise CannotExpress(f"{value!r} has no short exact fraction")
    return near


def negated(literal: Literal) -> Literal:
    return (not literal) if isinstance(literal, bool) else ~literal


class Terms:
    """Builds literals and terms in a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    # Literals.

    def new(self) -> Literal:
        return self.model.new_bool_var("")

    def all_of(self, literals: Iterable[Literal]) -> Literal:
        found: list[Literal] = []
        for literal in literals:
            if literal is False:
                return False
            if literal is not True:
                found.append(literal)
        if len(found) <= 1:
            return found[0] if found else True
        both = self.new()
        self.model.add_bool_and(found).only_enforce_if(both)
        self.model.add_bool_or([*(~f for f in found), both])
        return both

    def any_of(self, literals: Iterable[Literal]) -> Literal:
        return negated(self.all_of([negated(literal) for literal in literals]))

    def conjunction(self, parts: Sequence[Truth]) -> Truth:
        return Truth(self.all_of(p.true for p in parts), self.any_of(p.false for p in parts))

    def known_truth(self, holds: Literal, known: Literal) -> Truth:
        return Truth(self.all_of((holds, known)), self.all_of((negated(holds), known)))

    # Terms.

    def term(self, cell: Cell) -> Term:
        """A cell as a linear term."""
        if isinstance(cell.term, Quotient):
            raise CannotExpress("a quotient of values that depend on the schedule can only be compared")
        if cell.term is not None:
            return cell.term
        assert cell.choice is not None
        if any(isinstance(value, str) for _, value in cell.choice):
            raise CannotExpress("a text is used as a number")
        values = [fraction(float(value)) for _, value in cell.choice]
        den = math.lcm(*(v.denominator for v in values))
        if den > FINEST * 100:
            raise CannotExpress("constants have no common denominator")
        whole = [int(v * den) for v in values]
        if len(set(whole)) == 1:
            return Term(whole[0], den, whole[0], whole[0])
        expr = sum(n * literal for n, (literal, _) in zip(whole, cell.choice, strict=True))
        return Term(expr, den, min(whole), max(whole))

    def number(self, value: Fraction | float) -> Term:
        value = value if isinstance(value, Fraction) else fraction(value)
        return Term(value.numerator, value.denominator, value.numerator, value.numerator)

    def scaled(self, term: Term, factor: Fraction) -> Term:
        n, den = factor.numerator, term.den * factor.denominator
        low, high = sorted((term.low * n, term.high * n))
        return self._checked(Term(term.expr * n, den, low, high))

    def plus(self, a: Term, b: Term) -> Term:
        den = math.lcm(a.den, b.den)
        m, n = den // a.den, den // b.den
        return self._checked(
            Term(a.expr * m + b.expr * n, den, a.low * m + b.low * n, a.high * m + b.high * n)
        )

    def minus(self, a: Term, b: Term) -> Term:
        return self.plus(a, self.scaled(b, Fraction(-1)))

    def times(self, a: Term, b: Term) -> Term:
        for x, y in ((a, b), (b, a)):
            if x.constant is not None:
                return self.scaled(y, x.constant)
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        product = self._checked(Term(0, a.den * b.den, min(corners), max(corners)))
        made = self.variable(product.low, product.high)
        self.model.add_multiplication_equality(made, [self.as_variable(a), self.as_variable(b)])
        return Term(made, product.den, product.low, product.high)

    def absolute(self, a: Term) -> Term:
        if a.low >= 0:
            return a
        high = max(abs(a.low), abs(a.high))
        made = self.variable(0, high)
        self.model.add_abs_equality(made, a.expr)
        return Term(made, a.den, 0, high)

    def variable(self, low: int, high: int) -> Any:
        return self.model.new_int_var(low, high, "")

    def as_variable(self, a: Term) -> Any:
        made = self.variable(a.low, a.high)
        self.model.add(made == a.expr)
        return made

    def only_if(self, term: Term, literal: Literal) -> Term:
        """The term where a literal holds, 0 elsewhere."""
        if literal is True:
            return term
        if literal is False or (term.low == term.high == 0):
            return Term(0, 1, 0, 0)
        if term.low == term.high:
            low, high = sorted((0, term.low))
            return Term(term.low * literal, term.den, low, high)
        low, high = min(0, term.low), max(0, term.high)
        made = self.variable(low, high)
        self.model.add(made == term.expr).only_enforce_if(literal)
        self.model.add(made == 0).only_enforce_if(negated(literal))
        return Term(made, term.den, low, high)

    def total(self, terms: Sequence[Term]) -> Term:
        result = Term(0, 1, 0, 0)
        for term in terms:
            result = self.plus(result, term)
        return result

    def largest(self, terms: Sequence[tuple[Literal, Term]]) -> tuple[Term, Literal]:
        """The largest of the terms whose literal holds, and whether there is one."""
        terms = [(literal, term) for literal, term in terms if literal is not False]
        if not terms:
            return Term(0, 1, 0, 0), False
        den = math.lcm(*(t.den for _, t in terms))
        even = [self.scaled(t, Fraction(1)) if t.den == den else self._to(t, den) for _, t in terms]
        low, high = min(t.low for t in even), max(t.high for t in even)
        made = self.variable(low, high)
        known = self.any_of(literal for literal, _ in terms)
        if all(literal is True for literal, _ in terms):
            self.model.add_max_equality(made, [t.expr for t in even])
            return Term(made, den, low, high), True
        taken = []
        for (literal, _), t in zip(terms, even, strict=True):
            chosen = self.new()
            taken.append(chosen)
            at_least, same = self.model.add(made >= t.expr), self.model.add(made == t.expr)
            same.only_enforce_if(chosen)
            if literal is not True:
                at_least.only_enforce_if(literal)
                self.model.add_implication(chosen, literal)
        self.model.add_bool_or([*taken, *([] if known is True else [negated(known)])])
        if known is not True:
            self.model.add(made == low).only_enforce_if(negated(known))
        return Term(made, den, low, high), known

    def _to(self, term: Term, den: int) -> Term:
        n = den // term.den
        return self._checked(Term(term.expr * n, den, term.low * n, term.high * n))

    def _checked(self, term: Term) -> Term:
        if max(abs(term.low), abs(term.high)) > MOST:
            raise CannotExpress("numbers become too large for exact integers")
        return term

    # Comparisons.

    def compare(self, op: str, a: Cell, b: Cell, tolerant: bool) -> Truth:
        known = self.all_of((a.known, b.known))
        if known is False:
            return Truth(False, False)
        if a.choice is not None and b.choice is not None:
            pairs = [
                self.all_of((x, y)) for x, v in a.choice for y, w in b.choice if _holds(op, v, w, tolerant)
            ]
            if len(pairs) == len(a.choice) * len(b.choice):
                return self.known_truth(True, known)
            return self.known_truth(self.any_of(pairs), known)
        return self.known_truth(self.reified(op, *self._sides(a, b)), known)

    def _sides(self, a: Cell, b: Cell) -> tuple[Term, Term]:
        """Both sides without quotients: multiplied by what they are divided by."""
        left, right = a.term, b.term
        if isinstance(left, Quotient):
            under = left.under
            other = (
                self.times(right.over, under)
                if isinstance(right, Quotient)
                else self.times(self.term(b), under)
            )
            return (self.times(left.over, right.under) if isinstance(right, Quotient) else left.over), other
        if isinstance(right, Quotient):
            return self.times(self.term(a), right.under), right.over
        return self.term(a), self.term(b)

    def reified(self, op: str, a: Term, b: Term) -> Literal:
        """A literal that holds exactly if the comparison does."""
        d = self.minus(a, b)
        sign = {"<": (d.high < 0, d.low >= 0), "<=": (d.high <= 0, d.low > 0), ">": (d.low > 0, d.high <= 0),
                ">=": (d.low >= 0, d.high < 0), "=": (d.low == d.high == 0, d.low > 0 or d.high < 0),
                "<>": (d.low > 0 or d.high < 0, d.low == d.high == 0)}[op]  # fmt: skip
        if sign[0]:
            return True
        if sign[1]:
            return False
        literal = self.new()
        x = d.expr
        yes, no = {"<": (x < 0, x >= 0), "<=": (x <= 0, x > 0), ">": (x > 0, x <= 0), ">=": (x >= 0, x < 0),
                   "=": (x == 0, x != 0), "<>": (x != 0, x == 0)}[op]  # fmt: skip
        self.model.add(yes).only_enforce_if(literal)
        self.model.add(no).only_enforce_if(~literal)
        return literal


def _holds(op: str, a: Any, b: Any, tolerant: bool) -> bool:
    """A comparison of two constants, with the tolerance of `vectors`."""
    slack = 1e-9 + 1e-9 * abs(b) if tolerant and not isinstance(b, str) else 0
    if op in ("=", "<>"):
        same = a == b if isinstance(b, str) else abs(a - b) <= slack
        return bool(same == (op == "="))
    if isinstance(b, str):
        return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])
    return bool({"<": a < b - slack, "<=": a <= b + slack, ">": a > b + slack, ">=": a >= b - slack}[op])
