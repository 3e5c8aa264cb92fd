"""A Griffe extension: doctests of docstrings are shown as examples, whatever style a docstring has."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^>>> .*\n(?:^\S.*\n|^    .*\n)*\n?)+", re.MULTILINE)
UNDERLINED = re.compile(r"^(?:Parameters|Returns|Yields|Raises)\n-+$", re.MULTILINE)
COLON = re.compile(r"^(?:Args|Returns|Yields|Raises):$", re.MULTILINE)


class Doctests(griffe.Extension):
    """Put doctests into the examples of a docstring, or into a block if it has no sections."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = with_examples(obj.docstring.value)


def with_examples(text: str) -> str:
    text = text.rstrip("\n") + "\n"
    if UNDERLINED.search(text):
        return DOCTEST.sub(lambda found: f"Examples\n--------\n{found.group()}", text, count=1)
    if COLON.search(text):
        return DOCTEST.sub(
            lambda found: "Examples:\n" + re.sub(r"^(?=.)", "    ", found.group(), flags=re.M), text
        )
    return DOCTEST.sub(lambda found: f"```pycon\n{found.group().rstrip()}\n```\n\n", text)
