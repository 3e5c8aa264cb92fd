"""Text of the rules language to a typed tree.

Every rule of a file is parsed by itself, so that all bad rules are reported at once. Nothing here recurses as deep as
the text nests before the depth has been checked, and all steps are linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from headrace.formats.files import read_file
from headrace.model.errors import BadFile
from headrace.rules.collecting import without_collection
from headrace.rules.lexer import (
    BAD_CHARACTER,
    KEYWORDS,
    LONG_NAME,
    MAX_NAME,
    OPEN_STRING,
    UNITS,
    span_of,
    tokens_of,
)
from headrace.rules.messages import (
    Problem,
    bad_rules,
    did_you_mean,
    expected_words,
    listed,
    printable,
)
from headrace.rules.resolve import resolve_rule
from headrace.rules.statements import Builder, Statement, rule_of
from headrace.rules.table_parser import NotAccepted, TableParser
from headrace.rules.tree import Rule, RuleSet, Span
from headrace.rules.types import part_names

MAX_BYTES = 1_000_000
MAX_RULES = 10_000
MAX_PROBLEMS = 100
"""Bad rules after which the rest of a file is not read."""
MAX_NESTING = 50
"""Parentheses within parentheses."""
MAX_DEPTH = 150
"""Levels of the tree: parentheses, selects, and the operators of a chain such as a + b + c."""


@without_collection
def parse_rules(text: str, source: str = "rules") -> RuleSet:
    """The rules of a text, with names resolved and types checked.

    >>> text = "on-time: assert relationship requirement ((select max(task-finish-time) from task) <= 2 h)"
    >>> rule = parse_rules(text).rules[0]
    >>> rule.name, rule.body.condition.right.value
    ('on-time', 7200.0)

    Parameters
    ----------
    text
        The rules.
    source
        The file's name, for messages.

    Raises
    ------
    BadRules
        If any rule is wrong: the first one, with the others in `others`.
    """
    if len(text) > MAX_BYTES:
        problem = Problem(f"longer than {MAX_BYTES:,} characters", Span(0, 0), "split it")
        raise bad_rules([problem], "", source)
    text = text.removeprefix("\ufeff")
    problems: list[Problem] = []
    rules: list[Rule] = []
    try:
        for number, tokens in enumerate(_split(tokens_of(text)), start=1):
            if number > MAX_RULES:
                raise Problem(f"more than {MAX_RULES:,} rules", span_of(tokens[0]), "split the file")
            try:
                rules.append(_parse_rule(tokens, text, number))
            except Problem as problem:
                problems.append(problem)
                if len(problems) == MAX_PROBLEMS:
                    break
    except Problem as problem:
        problems.append(problem)
    problems += _repeated_names(rules)
    if problems:
        raise bad_rules(problems, text, source)
    return RuleSet(tuple(rules), source, text)


def read_rules(path: str | Path) -> RuleSet:
    """The rules of a file.

    Raises
    ------
    BadFile
        If the file cannot be read, is not UTF-8 text, or is larger than MAX_BYTES.
    BadRules
        If any rule is wrong.
    """
    data = read_file(path, limit=MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(
            f"not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}",
            where=str(path),
            hint="save it as UTF-8",
        ) from None
    return parse_rules(text, str(path))


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each rule. A rule begins at a label or `assert`, unless that is the function of a value rule.

    This does not depend on parentheses, so that a missing one spoils one rule only.
    """
    start = 0
    for index in range(1, len(tokens)):
        before = tokens[index - 1].type
        kind = tokens[index].type
        if kind == "LABEL" or (kind == "ASSERT" and before not in ("EQUAL", "LABEL")):
            yield tokens[start:index]
            start = index
    if tokens:
        yield tokens[start:]


def _parse_rule(tokens: list[Token], text: str, number: int) -> Rule:
    _check_nesting(tokens)
    label, statement = _read(tokens)
    name = str(label).rstrip(":").rstrip() if label is not None else f"rule-{number}"
    written = text[tokens[0].start_pos : tokens[-1].end_pos]
    rule = rule_of(statement, name, span_of(tokens[0]), written)
    if len(tokens) > MAX_DEPTH:  # every level of the tree has a token of its own
        _check_depth(rule)
    return resolve_rule(rule)


def _read(tokens: list[Token]) -> tuple[Token | None, Statement]:
    """The label and the statement of a rule."""
    grammar, parser = _grammar()
    try:
        read: tuple[Token | None, Statement] = parser.parse(tokens)
    except NotAccepted:
        try:
            grammar.parse(tokens)
        except UnexpectedToken as error:
            raise _unexpected(error, tokens) from None
        raise AssertionError("two parsers with the same tables differ") from None
    return read


class _Given(Lexer):
    """Hands the parser tokens that have been made already."""

    def __init__(self, configuration: Any) -> None:
        pass

    def lex(self, tokens: list[Token]) -> Iterator[Token]:  # type: ignore[override]
        return iter(tokens)


@cache
def _grammar() -> tuple[Lark, TableParser]:
    text = files("headrace.rules").joinpath("grammar.lark").read_text(encoding="utf-8")
    grammar = Lark(text, start="rule", parser="lalr", lexer=_Given)
    return grammar, TableParser(grammar, Builder())


def _check_nesting(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.type == "_LPAR") - (token.type == "_RPAR")
        if depth > MAX_NESTING:
            raise Problem(
                f"parentheses are nested more than {MAX_NESTING} deep", span_of(token), "write several rules"
            )


def _check_depth(rule: Rule) -> None:
    """Refuse trees that are too deep for functions that recurse over them."""
    pending: list[tuple[Any, int]] = [(rule.body, 1), (rule.priority, 1), (rule.low, 1), (rule.high, 1)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, tuple):
            pending += [(item, depth) for item in node]
        elif names := part_names(type(node)):
            if depth > MAX_DEPTH:
                raise Problem(
                    f"expression of more than {MAX_DEPTH} levels",
                    rule.at,
                    "write shorter sums, or several rules",
                )
            pending += [(getattr(node, name), depth + 1) for name in names]


def _repeated_names(rules: list[Rule]) -> list[Problem]:
    first: dict[str, Rule] = {}
    problems = []
    for rule in rules:
        earlier = first.setdefault(rule.name, rule)
        if earlier is not rule:
            what = f"the name {rule.name} is already that of the rule in line {earlier.line}"
            problems.append(Problem(what, rule.at, "give each rule a name of its own"))
    return problems


# What the parser did not expect.


def _unexpected(error: UnexpectedToken, tokens: list[Token]) -> Problem:
    token = error.token
    parser: Any = error.interactive_parser
    possible = set(parser.accepts()) if parser else set(error.expected)
    if token.type == "$END":
        last = span_of(tokens[-1])
        at = Span(last.line, last.column + last.length, 1)
        return Problem(f"the rule ends too early: expected {_listed(possible)}", at)
    at, shown = span_of(token), printable(str(token), 40)
    if token.type == BAD_CHARACTER:
        return Problem(f"unexpected character {str(token)!r}", at, _CHARACTERS.get(shown, ""))
    if token.type == OPEN_STRING:
        return Problem(f"text without a closing {str(token)[0]}", at, "close it in the same line")
    if token.type == LONG_NAME:
        return Problem(f"name of more than {MAX_NAME} characters", at)
    index = next(i for i, other in enumerate(tokens) if other is token)
    before = tokens[index - 1] if index else None
    if token.type == "NAME":
        return _unexpected_name(token, before, possible)
    hint = ""
    if token.type in KEYWORDS.values() and "NAME" in possible:
        hint = f"`{shown}` is a word of the language: choose another name"
    elif token == "=" and before == "=":
        hint = "write a single ="
    return Problem(f"unexpected `{shown}`: expected {_listed(possible)}", at, hint)


def _unexpected_name(token: Token, before: Token | None, possible: set[str]) -> Problem:
    at, shown = span_of(token), printable(token)
    if before is not None and before.type == "NUMBER":
        suggestion = did_you_mean(token, UNITS, ": expected one such as s, min, h, kB, MB")
        return Problem(f"unknown unit {shown}{suggestion}", at)
    words = [word for word, kind in KEYWORDS.items() if kind in possible]
    near = did_you_mean(token.lower(), words)
    if not near and before is not None and before.type == "NAME":
        earlier = did_you_mean(before.lower(), KEYWORDS)  # as in (selct task-id from task)
        if earlier:
            return Problem(f"unexpected {printable(before)}{earlier}", span_of(before))
    return Problem(f"unexpected {shown}{near or f': expected {_listed(possible)}'}", at)


_CHARACTERS = {
    "%": "percentages are plain numbers: 3, not 3 %",
    "`": "names are not quoted",
    "[": "lists are written in parentheses",
    "{": "lists are written in parentheses",
    ":": "only the name of a rule is followed by a colon",
}


def _listed(possible: set[str]) -> str:
    return listed(expected_words(possible))
