"""Intervals laid into as few rows as possible."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def pack(intervals: Sequence[tuple[float, float]], slack: float = 0.0) -> list[int]:
    """A row for each (start, finish) so that no two in one row overlap: O(n log n), fewest rows.

    Lowest free row first; ties as the intervals come. Overlaps of up to `slack` do not count: measured
    times of one core can cross by the width of a clock tick.

    >>> pack([(0, 2), (1, 3), (2, 4), (0, 1)])
    [1, 0, 1, 0]
    """
    rows = [0] * len(intervals)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    opened = 0
    # Of those that start together the empty ones go first: they leave their row to the next.
    for i in sorted(range(len(intervals)), key=lambda i: (*intervals[i], i)):
        start, finish = intervals[i]
        while busy and busy[0][0] <= start + slack:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            rows[i] = heapq.heappop(free)
        else:
            rows[i] = opened
            opened += 1
        heapq.heappush(busy, (finish, rows[i]))
    return rows
