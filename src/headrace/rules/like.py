"""SQL's `like`: patterns in which % is any text and _ one character."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

_LAST = chr(0x10FFFF)
_MOST_PIECES = 16
"""Pieces of a pattern, between `_`, by which sorted words are narrowed down; more would take longer than they save."""


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
    >>> matching(("a_1", "a_2", "ab1", "ba1"), "a_1%")
    [0, 2]
    """
    first, *rest = pattern.split("%")
    pieces = first.split("_")
    narrow = _beginning(words, pieces[:_MOST_PIECES])
    found = [at for low, high in narrow for at in range(low, high)]
    if rest and not any(rest) and len(pieces) <= _MOST_PIECES:
        return found
    matches = matcher(pattern)
    return [at for at in found if matches(words[at])]


def _beginning(words: Sequence[str], pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of the sorted words, in order, that begin with these pieces, any character between two of them.

    O(log words) for each piece and each different character between two.
    """
    pending = [(0, "", 0, len(words))]
    while pending:
        done, prefix, low, high = pending.pop()
        if pieces[done]:
            prefix += pieces[done]
            low, high = bisect_left(words, prefix, low, high), _end(words, prefix, low, high)
        if done == len(pieces) - 1:
            yield low, high
            continue
        longer: list[tuple[int, str, int, int]] = []
        while low < high:
            if len(words[low]) > len(prefix):
                start = words[low][: len(prefix) + 1]
                end = _end(words, start, low, high)
                longer.append((done + 1, start, low, end))
                low = end
            else:  # it ends where one more character is wanted
                low += 1
        pending += reversed(longer)


def _end(words: Sequence[str], prefix: str, low: int, high: int) -> int:
    """The position after the last word that begins with a prefix."""
    if prefix[-1] == _LAST:
        return next(
            (at for at in range(low, high) if words[at] > prefix and not words[at].startswith(prefix)), high
        )
    return bisect_left(words, prefix[:-1] + chr(ord(prefix[-1]) + 1), low, high)


def _fixed(part: str) -> re.Pattern[str]:
    """A pattern of fixed length, whose search takes time linear in the text for a given part."""
    return re.compile("".join("." if c == "_" else re.escape(c) for c in part), re.DOTALL)
