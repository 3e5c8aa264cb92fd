"""Packing of intervals into as few rows as possible."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def pack(
    intervals: Sequence[tuple[float, float]], slack: float = 0.0, preferred: Sequence[int] | None = None
) -> list[int]:
    """A row for each (start, finish) so that no two in one row overlap: O(n log n).

    An interval gets its preferred row if that is free, else the lowest free one; without preferences
    the number of rows is minimal. Overlaps of up to `slack` are ignored: measured times of one core can
    overlap by a clock tick.

    >>> pack([(0, 2), (1, 3), (2, 4), (0, 1)])
    [1, 0, 1, 0]
    >>> pack([(0, 2), (3, 4)], preferred=[1, 1])
    [1, 1]
    """
    rows = [0] * len(intervals)
    until: list[float] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for i in sorted(range(len(intervals)), key=lambda i: (*intervals[i], i)):
        start, finish = intervals[i]
        while busy and busy[0][0] <= start + slack:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = preferred[i] if preferred is not None else 0
        while len(until) <= row:
            heapq.heappush(free, len(until))
            until.append(float("-inf"))
        if preferred is None or until[row] > start + slack:
            row = _lowest_free(free, until, start + slack)
        rows[i] = row
        until[row] = finish
        heapq.heappush(busy, (finish, row))
    return rows


def _lowest_free(free: list[int], until: list[float], start: float) -> int:
    """Pop a free row from the heap, skipping rows that were taken as a preference since."""
    while free:
        row = heapq.heappop(free)
        if until[row] <= start:
            return row
    until.append(start)
    return len(until) - 1
