"""SQL's `like`: patterns in which % is any text and _ one character."""

from __future__ import annotations

import re
from collections.abc import Callable


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether the whole of a text matches; upper and lower case differ.

    The parts between % are searched one after the other, each at its first place, so there is no backtracking:
    O(length of the text * parts).

    >>> [matcher("FFT%")(name) for name in ("FFT.3", "fft")], matcher("a_c")("abc"), matcher("%a%b")("xaxbb")
    ([True, False], True, True)
    """
    first, *rest = pattern.split("%")
    if not rest:
        whole = _fixed(first)
        return lambda text: len(text) == len(first) and whole.match(text) is not None
    *middle, last = rest
    begins, ends = _fixed(first), _fixed(last)
    inner = [(_fixed(part), len(part)) for part in middle if part]

    def matches(text: str) -> bool:
        end = len(text) - len(last)
        if begins.match(text) is None or end < len(first) or ends.match(text, end) is None:
            return False
        at = len(first)
        for part, length in inner:
            found = part.search(text, at, end)
            if found is None:
                return False
            at = found.start() + length
        return True

    return matches


def _fixed(part: str) -> re.Pattern[str]:
    """A pattern of fixed length, whose search takes time linear in the text for a given part."""
    return re.compile("".join("." if c == "_" else re.escape(c) for c in part), re.DOTALL)
