"""Rule files as a format of the registry; they are recognised by their suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.formats.format import Format

if TYPE_CHECKING:
    from headrace.rules.tree import RuleSet


def _read(path: str | Path) -> RuleSet:
    from headrace.rules.parser import read_rules  # the parser is loaded when there are rules to read

    return read_rules(path)


FORMATS = (Format("rules", "rules", "rules for schedules", suffixes=(".rules",), read=_read),)
