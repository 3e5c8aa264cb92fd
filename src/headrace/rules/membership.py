"""`x in (select ...)`."""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.rules.vectors import Codes, Truth, Vector, limits, with_common_words


def member(x: Vector, key: Codes, owner: Codes, options: Vector, tolerant: bool) -> Truth:
    """Whether each value is among the options whose owner is its key: O((n + m) log m).

    As in SQL, a value that is not found is UNKNOWN if there is an UNKNOWN option, and nothing is in an empty set.
    """
    x, options = with_common_words(x, options)
    length = len(key) if len(x.values) == 1 else len(x.values)
    x, key = x.spread(length), np.broadcast_to(key, length)
    keys = int(key.max(initial=0)) + 1
    known = np.flatnonzero(options.known)
    order = known[np.lexsort((options.values[known], owner[known]))]
    end = np.cumsum(np.bincount(owner[known], minlength=keys))
    start = end - np.bincount(owner[known], minlength=keys)
    low, high = limits(options.values[order], tolerant)
    first = _search(high, start[key], end[key], x.values, right=False)
    last = _search(low, start[key], end[key], x.values, right=True)
    any_option = np.bincount(owner, minlength=keys)[key] > 0
    any_unknown = np.bincount(owner[~options.known], minlength=keys)[key] > 0
    found: Bools = x.known & (last > first)
    return Truth(found, ~any_option | (x.known & ~found & ~any_unknown))


def _search(values: Floats, start: Codes, end: Codes, x: Floats, *, right: bool) -> Codes:
    """Binary search for each x between its own start and end."""
    low, high = start.copy(), end.copy()
    if not len(values):
        return low
    for _ in range(int(np.max(high - low, initial=0)).bit_length()):
        middle = (low + high) // 2
        at = values[np.minimum(middle, len(values) - 1)]
        before = (at <= x) if right else (at < x)
        open_ = low < high
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    return low
