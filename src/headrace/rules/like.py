"""SQL's `like`: patterns in which % is any text and _ one character."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

_LAST = chr(0x10FFFF)


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
    if not any(rest):
        return lambda text: begins.match(text) is not None
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


def matching(words: Sequence[str], pattern: str) -> list[int]:
    """The positions of the words that match, in sorted words: only those that begin as the pattern does are looked at.

    >>> matching(("FFT.1", "FFT.2", "FFTs", "sort"), "FFT.%"), matching(("FFT.1", "sort"), "%t")
    ([0, 1], [1])
    """
    prefix = re.split("[%_]", pattern, maxsplit=1)[0]
    low, high = bisect_left(words, prefix), len(words)
    if prefix and prefix[-1] < _LAST:
        high = bisect_left(words, prefix[:-1] + chr(ord(prefix[-1]) + 1), low)
    if pattern == f"{prefix}%" and (not prefix or prefix[-1] < _LAST):
        return list(range(low, high))
    matches = matcher(pattern)
    return [at for at in range(low, high) if matches(words[at])]


def _fixed(part: str) -> re.Pattern[str]:
    """A pattern of fixed length, whose search takes time linear in the text for a given part."""
    return re.compile("".join("." if c == "_" else re.escape(c) for c in part), re.DOTALL)
