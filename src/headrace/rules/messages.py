"""What is wrong with a rule, in words: the place in the text, what was expected, the nearest known name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from headrace.model.errors import BadRules
from headrace.rules.tree import Span

MAX_REPORTED = 10
"""Errors reported in full; the others are counted."""
_WIDTH = 100
"""Columns of an excerpt."""


class Problem(Exception):
    """One thing that is wrong, and where; `bad_rules` makes an error of it."""

    def __init__(self, problem: str, at: Span, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.hint = hint


def bad_rules(problems: Sequence[Problem], text: str, source: str) -> BadRules:
    """The error for the problems of a text, in the order of their places."""
    ordered = sorted(problems, key=lambda problem: (problem.at.line, problem.at.column))
    lines = text.split("\n")
    errors = [_error(problem, lines, source) for problem in ordered[:MAX_REPORTED]]
    if len(ordered) > MAX_REPORTED:
        errors.append(BadRules(f"{len(ordered) - MAX_REPORTED} more errors", where=source))
    errors[0].others = tuple(errors[1:])
    return errors[0]


def _error(problem: Problem, lines: list[str], source: str) -> BadRules:
    at = problem.at
    if not at.line:
        return BadRules(problem.problem, where=source, hint=problem.hint)
    excerpt, indent, width = _excerpt(lines[at.line - 1] if at.line <= len(lines) else "", at)
    return BadRules(
        problem.problem,
        where=source,
        hint=problem.hint,
        line=at.line,
        column=at.column,
        excerpt=excerpt,
        indent=indent,
        width=width,
    )


def _excerpt(line: str, at: Span) -> tuple[str, int, int]:
    """The line, or the part around the place if it is long; where the caret stands; how wide it is."""
    start = max(0, at.column - 1 - _WIDTH // 2) if len(line) > _WIDTH else 0
    part = line[start : start + _WIDTH]
    stripped = part.lstrip()
    indent = max(0, at.column - 1 - start - (len(part) - len(stripped)))
    width = max(1, min(at.length, len(stripped) - indent))
    return printable(stripped.rstrip()), indent, width


def printable(text: str, limit: int | None = None) -> str:
    """The text without characters that would move the cursor of a terminal, cut to `limit` characters.

    >>> printable("a\\tb\\x1b[0m"), printable("abcdef", 4)
    ('a b?[0m', 'abc…')
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def did_you_mean(name: str, known: Collection[str], otherwise: str = "") -> str:
    """A suggestion to append to a message: the nearest known name, whatever its case, if one is near.

    >>> did_you_mean("task-finnish-time", ["task-finish-time", "task-id"])
    ': did you mean task-finish-time?'
    """
    lowered = {word.lower(): word for word in sorted(known)}
    near = get_close_matches(name.lower(), lowered, n=1, cutoff=0.7)
    return f": did you mean {lowered[near[0]]}?" if near else otherwise


def listed(words: Iterable[str], last: str = "or") -> str:
    """
    >>> listed(["task", "proc", "dep"])
    'task, proc or dep'
    """
    *most, final = words
    return f"{', '.join(most)} {last} {final}" if most else final


_EXPRESSION = {"NUMBER", "QUANTITY", "STRING", "NAME", "MINUS", "ABS", "SUM", "AVG", "COUNT", "MIN", "MAX"}
_COMPARISON = {"EQUAL", "COMPARISON"}
_TESTS = {"_IN", "_BETWEEN", "_LIKE", "_IS"}
_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH"}
_GROUPS: tuple[tuple[str, set[str], set[str]], ...] = (
    ("a condition", _EXPRESSION | {"NOT", "_LPAR"}, {"UNKNOWN"}),
    ("an expression", _EXPRESSION | {"_LPAR"}, {"UNKNOWN"}),
    ("a comparison", _COMPARISON | _TESTS, {"NOT"}),
    ("a comparison (=, <>, <, <=, >, >=)", _COMPARISON, set()),
    ("an operator (+, -, *, /)", _OPERATORS, set()),
    ("an operator (*, /)", {"STAR", "SLASH"}, set()),
)
"""A group's words stand for its tokens if all of them are possible, and for further ones that go with them."""
_WORDS = {
    "LABEL": "a name with a colon",
    "NAME": "a name",
    "NUMBER": "a number",
    "QUANTITY": "a quantity",
    "STRING": "text in quotes",
    "EQUAL": "`=`",
    "COMPARISON": "another comparison",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "_LPAR": "`(`",
    "_RPAR": "`)`",
    "_COMMA": "a comma",
    "_DOT": "a dot",
    "_SEMICOLON": "a semicolon",
    "OPT_TYPE": "`opt-type`",
    "$END": "the end of the rule",
}
_UNSAID = {"_SEMICOLON", "QUANTITY", "_DOT", "_INNER", "_CROSS"}
"""Tokens that are possible, but would not help the reader."""


def expected_words(tokens: Collection[str]) -> list[str]:
    """The tokens that could follow, in words: groups first, then single ones in the order of the alphabet.

    >>> expected_words({"_RPAR", "_AND", "_OR", "PLUS", "MINUS", "STAR", "SLASH"})
    ['an operator (+, -, *, /)', '`)`', '`and`', '`or`']
    """
    left = set(tokens)
    words = []
    for name, needed, further in _GROUPS:
        if needed <= left:
            words.append(name)
            left -= needed | further
    return words + sorted(_WORDS.get(token) or f"`{token.strip('_').lower()}`" for token in left - _UNSAID)
