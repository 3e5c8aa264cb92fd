"""Rules as callers give them: text, a file, several texts, or rules that have been parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from headrace.rules.tree import RuleSet

Rules: TypeAlias = RuleSet | str | Path | Sequence[str]
"""Parsed rules; a text of rules, or the name of a file; or several texts, as the functions of `headrace.rules` make."""
MOST_PARSED = 8
_parsed: dict[str, RuleSet] = {}
"""The last texts, parsed: programs are planned again and again under the same rules."""
_TEXT = re.compile(r"\bassert\b|\n|--|^\s*$", re.IGNORECASE)


def as_rules(given: Rules) -> RuleSet:
    """The rules that are meant. A text has an `assert`, a comment, or a line break; anything else names a file.

    >>> from headrace.rules import avoid, finish_by
    >>> len(as_rules([avoid("laptop"), finish_by("6 h")])), len(as_rules("-- none"))
    (2, 0)

    Raises
    ------
    BadRules
        If a rule is wrong.
    BadFile
        If the file cannot be read.
    """
    from headrace.rules.parser import parse_rules, read_rules  # loaded when there are rules

    if isinstance(given, RuleSet):
        return given
    if isinstance(given, Path):
        return read_rules(given)
    if isinstance(given, str) and not _TEXT.search(given):
        return read_rules(given)
    text = given if isinstance(given, str) else "\n".join(given)
    if text not in _parsed:
        if len(_parsed) >= MOST_PARSED:
            _parsed.pop(next(iter(_parsed)), None)
        _parsed[text] = parse_rules(text)
    return _parsed[text]
