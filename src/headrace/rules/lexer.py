"""The tokens of a rule file, and the limits that keep hostile files harmless."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from lark import Token

from headrace.model.units import unit_factors
from headrace.rules.messages import Problem
from headrace.rules.tree import Span

MAX_TOKENS = 100_000
MAX_NAME = 100
"""Characters in a name."""

BAD_CHARACTER = "BAD_CHARACTER"
OPEN_STRING = "OPEN_STRING"
LONG_NAME = "LONG_NAME"
"""Tokens that no rule has: the parser stops at them, and the message says why."""

KEYWORDS = {
    "assert": "ASSERT",
    "relationship": "_RELATIONSHIP",
    "ordering": "_ORDERING",
    "order": "_ORDER",
    "value": "_VALUE",
    "requirement": "REQUIREMENT",
    "preference": "PREFERENCE",
    "priority": "PRIORITY",
    "min": "MIN",
    "max": "MAX",
    "opt-type": "OPT_TYPE",
    "minimize": "MINIMIZE",
    "minimise": "MINIMIZE",
    "maximize": "MAXIMIZE",
    "maximise": "MAXIMIZE",
    "function": "FUNCTION",
    "select": "SELECT",
    "distinct": "DISTINCT",
    "from": "_FROM",
    "where": "_WHERE",
    "group": "_GROUP",
    "by": "_BY",
    "having": "_HAVING",
    "asc": "ASC",
    "desc": "DESC",
    "inner": "_INNER",
    "cross": "_CROSS",
    "join": "_JOIN",
    "on": "_ON",
    "as": "_AS",
    "and": "_AND",
    "or": "_OR",
    "not": "NOT",
    "in": "_IN",
    "between": "_BETWEEN",
    "like": "_LIKE",
    "is": "_IS",
    "unknown": "UNKNOWN",
    "null": "UNKNOWN",
    "abs": "ABS",
    "absolute-value": "ABS",
    "sum": "SUM",
    "avg": "AVG",
    "count": "COUNT",
}
_SIGNS = {
    "(": "_LPAR",
    ")": "_RPAR",
    ",": "_COMMA",
    ".": "_DOT",
    ";": "_SEMICOLON",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "=": "EQUAL",
} | dict.fromkeys(("<>", "!=", "<", "<=", ">", ">="), "COMPARISON")

_NAME = r"[^\W\d]\w*(?:-\w+)*"
_TOKEN = re.compile(
    rf"""(?:\s+|--[^\n]*)*+(?:
    (?P<NAME>{_NAME})(?P<LABEL>\s*+:)?
    |(?P<SIGN><=|>=|<>|!=|[=<>+\-*/(),;]|\.(?![0-9]))
    |(?P<STRING>"(?:[^"\n]+|"")*+"|'(?:[^'\n]+|'')*+')
    |(?P<NUMBER>(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<OPEN_STRING>["'][^\n]*)
    |(?P<BAD_CHARACTER>.))""",
    re.VERBOSE | re.DOTALL,
)
_UNIT = re.compile(r"[ \t]*([^\W\d_]+)(?![\w(])(?!-\w)")
_SETTING = re.compile(r"\s*=")
UNITS = unit_factors("time").keys() | unit_factors("size").keys()


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, without blanks and comments. Time is linear in the length of the text.

    >>> [token.type for token in tokens_of("x: select task_id -- number")]
    ['LABEL', 'SELECT', 'NAME']

    Raises
    ------
    Problem
        If there are more than MAX_TOKENS.
    """
    found = list(islice(_Lexer(text).tokens(), MAX_TOKENS + 1))
    if len(found) > MAX_TOKENS:
        raise Problem(f"more than {MAX_TOKENS:,} words and signs", span_of(found[-1]), "split the file")
    return found


def span_of(token: Token) -> Span:
    return Span(token.line, token.column, token.end_pos - token.start_pos or 1)  # type: ignore[arg-type,operator]


def _token(kind: str, value: str, start: int, line: int, column: int, end: int) -> Token:
    """A token of the parser, made without looking at how its arguments are called: half the time of lexing."""
    token: Token = str.__new__(Token, value)
    token.type, token.value, token.start_pos, token.end_pos = kind, value, start, end
    token.line, token.column, token.end_line, token.end_column = line, column, None, None
    return token


def _word(value: str) -> str:
    """The kind of a name: it may be a word of the language."""
    if len(value) > MAX_NAME:
        return LONG_NAME
    return KEYWORDS.get(value.lower().replace("_", "-"), "NAME")


_CONTEXT = frozenset(("_VALUE", "ASSERT", "_LPAR", "_RPAR"))


class _Lexer:
    """One pass over a text.

    The only context that matters is whether the token stands directly in the parentheses of a value rule: there
    `priority = 1 min = 0` are two settings without a comma, elsewhere `1 min` is a minute.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.previous = ""
        self.value_rule = False
        self.in_value: list[bool] = []

    def tokens(self) -> Iterator[Token]:
        position, text, match, words = 0, self.text, _TOKEN.match, dict[str, str]()
        line, line_start, line_end = 1, 0, _end_of_line(text, 0)
        while found := match(text, position):
            kind, position = found.lastgroup or "", found.end()
            if kind == "LABEL":
                start, value = found.start("NAME"), text[found.start("NAME") : position]
                kind = "LABEL" if len(value) <= MAX_NAME else LONG_NAME
            else:
                value = found[kind]
                start = position - len(value)
            if kind == "NAME":
                known = words.get(value)
                kind = known or words.setdefault(value, _word(value))
            elif kind == "SIGN":
                kind = _SIGNS[value]
            elif kind == "NUMBER" and (unit := self._unit(position)):
                kind, position, value = "QUANTITY", unit, text[start:unit]
            if kind in _CONTEXT:
                self._follow(kind)
            self.previous = kind
            while start > line_end:
                line, line_start = line + 1, line_end + 1
                line_end = _end_of_line(text, line_start)
            yield _token(kind, value, start, line, start - line_start + 1, position)

    def _follow(self, kind: str) -> None:
        """Keep track of parentheses and of whose they are."""
        if kind == "_VALUE":
            self.value_rule = True
        elif kind == "ASSERT":
            self.value_rule = False
            if self.previous != "EQUAL":  # a new rule, even if the one before lacks a parenthesis
                self.in_value.clear()
        elif kind == "_LPAR":
            self.in_value.append(self.value_rule)
            self.value_rule = False
        elif self.in_value:
            self.in_value.pop()

    def _unit(self, position: int) -> int | None:
        """The end of the unit that follows a number, if there is one."""
        match = _UNIT.match(self.text, position)
        if match is None or match[1] not in UNITS:
            return None
        directly = bool(self.in_value) and self.in_value[-1]
        if directly and match[1] == "min" and _SETTING.match(self.text, match.end()):
            return None
        return match.end()


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)
