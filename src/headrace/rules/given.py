"""Rules as callers give them: text, a file, several texts, or rules that have been parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from headrace.rules.tree import RuleSet

Rules: TypeAlias = RuleSet | str | Path | Sequence[str]
"""Parsed rules; a text of rules, or the name of a file; or several texts, as the functions of `headrace.rules` make."""
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
    if isinstance(given, str):
        return parse_rules(given) if _TEXT.search(given) else read_rules(given)
    return parse_rules("\n".join(given))
