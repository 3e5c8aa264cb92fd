"""Conditions over parameters and results, such as `detect = 'canny' and sigma < 1`: parsed, never executed as code.

The syntax is that of SQL: comparisons of columns and constants, `in`, `between`, `like`, `is null`, `and`, `or`, `not`.
A comparison of values of different types, or with a missing value, is false, and so is its negation.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.model.errors import UsageError

LONGEST = 10_000
"""Characters of a condition."""
DEEPEST = 50
Flags: TypeAlias = npt.NDArray[np.bool_]
Columns: TypeAlias = Mapping[str, Sequence[Any]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<name>[A-Za-z_][\w.-]*|\[[^\]]+\])|(?P<sign><=|>=|<>|!=|==|[=<>(),+-])|(?P<end>\Z))""",
    re.VERBOSE,
)
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
_SPELLED = {"==": "=", "<>": "!="}


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class Constant:
    value: str | float | bool | None


Operand: TypeAlias = Column | Constant


@dataclass(frozen=True)
class Predicate:
    """A test of single rows: operands, and what holds of their values."""

    operands: tuple[Operand, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Combination:
    """`and`, `or`, or `not` of other conditions."""

    word: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = Predicate | Combination


def parse_condition(text: str, where: str = "condition") -> Condition:
    """The tree of a condition: O(characters).

    >>> tree = parse_condition("detect = 'canny' and not sigma >= 1")
    >>> select(tree, {"detect": ["canny", "sobel", "canny"], "sigma": [0.5, 0.5, 2.0]}).tolist()
    [True, False, False]
    """
    if len(text) > LONGEST:
        raise UsageError(f"a condition of {len(text)} characters", where=where, hint=f"at most {LONGEST}")
    parser = _Parser(list(_tokens(text, where)), where)
    found = parser.either(0)
    if parser.kind != "end":
        raise parser.unexpected("and, or, or the end")
    return found


def columns_of(condition: Condition) -> set[str]:
    """The columns that a condition names."""
    if isinstance(condition, Predicate):
        return {each.name for each in condition.operands if isinstance(each, Column)}
    return set().union(*(columns_of(part) for part in condition.parts))


def select(condition: Condition, columns: Columns) -> Flags:
    """Which rows satisfy a condition: O(rows * tests). Equal combinations of values are judged once."""
    rows = len(next(iter(columns.values()), ()))
    if isinstance(condition, Combination):
        parts = [select(part, columns) for part in condition.parts]
        if condition.word == "not":
            return ~parts[0]
        combined = np.all(parts, axis=0) if condition.word == "and" else np.any(parts, axis=0)
        return np.asarray(combined, np.bool_)
    named = [
        columns[each.name] if isinstance(each, Column) else [each.value] * rows for each in condition.operands
    ]
    known: dict[tuple[Any, ...], bool] = {}
    found = np.zeros(rows, np.bool_)
    for row, values in enumerate(zip(*named, strict=True)):
        key = tuple((type(value), value) for value in values)
        if key not in known:
            known[key] = condition.holds(*values)
        found[row] = known[key]
    return found


def require_columns(condition: Condition, known: Sequence[str], where: str) -> None:
    """Refuse a condition that names an unknown column."""
    for name in sorted(columns_of(condition)):
        if name not in known:
            raise UsageError(
                f"there is no {name!r}", where=where, hint=f"use one of {', '.join(list(known)[:20])}"
            )


def _tokens(text: str, where: str) -> Iterator[tuple[str, str, int]]:
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            raise UsageError(
                f"{text[position : position + 20]!r} at character {position + 1} is not understood",
                where=where,
                hint="compare columns with numbers or 'texts'",
            )
        kind = str(found.lastgroup)
        yield kind, found[kind], found.start(kind) + 1
        if kind == "end":
            return
        position = found.end()


class _Parser:
    """Recursive descent; `depth` limits nesting."""

    def __init__(self, tokens: list[tuple[str, str, int]], where: str) -> None:
        self.tokens = tokens
        self.where = where
        self.at = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def word(self) -> str:
        """The present token in lower case, if it is no text."""
        kind, value, _ = self.tokens[self.at]
        return value.lower() if kind != "text" else ""

    def accept(self, *words: str) -> bool:
        if self.word in words and self.kind in ("name", "sign"):
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.unexpected(word)

    def unexpected(self, wanted: str) -> UsageError:
        kind, value, position = self.tokens[self.at]
        shown = "the end" if kind == "end" else repr(value[:40])
        return UsageError(f"{shown} at character {position}", where=self.where, hint=f"expected {wanted}")

    def either(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise UsageError("a condition is nested too deeply", where=self.where, hint="simplify it")
        parts = [self.both(depth)]
        while self.accept("or"):
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else Combination("or", tuple(parts))

    def both(self, depth: int) -> Condition:
        parts = [self.negation(depth)]
        while self.accept("and"):
            parts.append(self.negation(depth))
        return parts[0] if len(parts) == 1 else Combination("and", tuple(parts))

    def negation(self, depth: int) -> Condition:
        if self.accept("not"):
            if depth > DEEPEST:
                raise UsageError("a condition is nested too deeply", where=self.where, hint="simplify it")
            return Combination("not", (self.negation(depth + 1),))
        if self.accept("("):
            inner = self.either(depth + 1)
            self.expect(")")
            return inner
        return self.test()

    def test(self) -> Condition:
        left = self.operand()
        if self.accept("is"):
            absent = not self.accept("not")
            self.expect("null")
            return Predicate((left,), lambda value: (value is None) == absent)
        negated = self.accept("not")
        found = self._set_test(left)
        if found is None:
            sign = _SPELLED.get(self.word, self.word)
            if negated or sign not in _ORDERED:
                raise self.unexpected("=, !=, <, <=, >, >=, in, between, like or is null")
            self.at += 1
            found = _compared(sign, left, self.operand())
        return _negated(found) if negated else found

    def _set_test(self, left: Operand) -> Predicate | None:
        """`in`, `between` or `like`."""
        if self.accept("in"):
            self.expect("(")
            among = [self.operand()]
            while self.accept(","):
                among.append(self.operand())
            self.expect(")")
            return Predicate((left, *among), lambda value, *of: any(_same(value, one) for one in of))
        if self.accept("between"):
            low = self.operand()
            self.expect("and")
            high = self.operand()
            return Predicate((left, low, high), lambda v, a, b: _holds(">=", v, a) and _holds("<=", v, b))
        if self.accept("like"):
            kind, value, _ = self.tokens[self.at]
            if kind != "text":
                raise self.unexpected("a text such as 'region%'")
            self.at += 1
            matches = _like(_unquoted(value))
            return Predicate((left,), lambda found: isinstance(found, str) and matches(found))
        return None

    def operand(self) -> Operand:
        sign = -1.0 if self.word == "-" else 1.0
        if self.word in ("-", "+"):
            self.at += 1
            if self.kind != "number":
                raise self.unexpected("a number")
        kind, value, _ = self.tokens[self.at]
        if kind == "number":
            found: Operand = Constant(sign * float(value))
        elif kind == "text":
            found = Constant(_unquoted(value))
        elif kind == "name" and self.word in ("true", "false", "null"):
            found = Constant({"true": True, "false": False, "null": None}[self.word])
        elif kind == "name" and self.word not in ("and", "or", "not", "in", "between", "like", "is"):
            found = Column(value[1:-1] if value.startswith("[") else value)
        else:
            raise self.unexpected("a column, a number or a 'text'")
        self.at += 1
        return found


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(2 * quote, quote)


def _compared(sign: str, left: Operand, right: Operand) -> Predicate:
    return Predicate((left, right), lambda a, b: _holds(sign, a, b))


def _negated(test: Predicate) -> Predicate:
    holds = test.holds
    return Predicate(test.operands, lambda *values: None not in values and not holds(*values))


def _holds(sign: str, a: Any, b: Any) -> bool:
    """A comparison of two numbers, two texts, or two truth values; of other pairs only `!=` holds."""
    if a is None or b is None:
        return False
    if _type(a) is not _type(b):
        return sign == "!="
    return _ORDERED[sign](a, b)


def _same(a: Any, b: Any) -> bool:
    return _holds("=", a, b)


def _type(value: Any) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _like(pattern: str) -> Callable[[str], bool]:
    """SQL's pattern: `%` any characters, `_` one."""
    shell = "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)
    compiled = re.compile(fnmatch.translate(shell), re.IGNORECASE)
    return lambda text: compiled.match(text) is not None
