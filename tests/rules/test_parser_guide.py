"""The rules of the guide are rules of the language."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.rules.parser import parse_rules

GUIDE = (Path(__file__).parents[2] / "docs" / "guide-rules.md").read_text()


def test_the_ten_rules_of_the_guide_are_read() -> None:
    blocks = re.findall(r"^```rules\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    assert len(parse_rules("".join(blocks))) == 11


def test_the_python_of_the_guide_makes_rules() -> None:
    block, _ = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    names: dict[str, str] = {}
    exec(block, names)
    assert len(parse_rules(names["rules"])) == 7
