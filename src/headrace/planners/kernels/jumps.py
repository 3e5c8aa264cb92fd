"""The first jump in the ordered completion times of clusters (Extended Sufferage and Sufferage II)."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.planners.kernels.batch_arrays import FEWEST_BEFORE_JUMP

LANES = 64
"""Rows that are measured together."""
SLACK = 1e-9
"""Rounding does not make a jump: it exceeds mean plus deviation by more than this share."""


@inner
def find_jumps(rule, tolerance, grid, wave, rows, count):
    """Bring the keys of all rows up to date that can be next, or within tolerance of it; others get inf.

    The row that was best when last seen comes first, so that most others can be left out.
    """
    key, tie, height, before = wave.key, wave.tie, wave.second, wave.before
    largest, firm, margin, drift, chosen = wave.largest, wave.firm, wave.margin, wave.drift, wave.rest
    fewest = rule == FEWEST_BEFORE_JUMP
    likely = rows[0]
    for i in range(1, count):
        row = rows[i]
        fewer = before[row] < before[likely] if fewest else False
        if fewer or (height[row] > height[likely] and not (fewest and before[row] > before[likely])):
            likely = row
    chosen[0] = likely
    _measure(grid, wave, 1)
    highest, least_before = height[likely] * (1.0 - max(tolerance, 0.0)), before[likely]
    some = 0
    for i in range(count):
        row = rows[i]
        if drift[row] > 0.0:
            bound = (height[row] if drift[row] < firm[row] else largest[row]) + drift[row]
            above = (before[row] if drift[row] < margin[row] else 1) - least_before if fewest else 0
            if above > 0 or (above == 0 and bound * (1.0 + SLACK) < highest):
                key[row] = np.inf
                continue
            chosen[some] = row
            some += 1
        key[row] = before[row] if fewest else -height[row]
        tie[row] = -height[row] if fewest else 0.0
    _measure(grid, wave, some)
    for i in range(some):
        row = chosen[i]
        key[row] = before[row] if fewest else -height[row]
        tie[row] = -height[row] if fewest else 0.0


@inner
def _measure(grid, wave, count):
    """First jumps of the first `count` rows of `wave.rest`: O(places + clusters * log^2 clusters) a row.

    The first jump is the first difference above mean plus standard deviation; the first of all if there is
    none. Clusters that cannot be reached do not count. Rows go through every step together, LANES at a time.
    """
    for low in range(0, count, LANES):
        rows = wave.rest[low : min(low + LANES, count)]
        _load(grid, wave, rows, wave.ordered)
        _sort(wave.ordered)
        _statistics(wave.lanes, wave.ordered)
        _first_jumps(wave.lanes, wave.ordered)
        _keep_jumps(wave, rows, wave.lanes, wave.ordered)


@inner
def _load(grid, wave, rows, values):
    """The best completion time of each cluster, a column for each row, inf in columns without; note what is seen."""
    times, seen, cluster, noted = wave.time, wave.seen, grid.cluster, wave.seen.shape[0] > 0
    values[:] = np.inf
    for k in range(len(cluster)):
        c = cluster[k]
        for i in range(len(rows)):
            time = times[k, rows[i]]
            values[c, i] = min(values[c, i], time)
            if noted:
                seen[k, rows[i]] = time


@inner
def _sort(values):
    """Sort every column by Batcher's network of exchanges, the same for all."""
    count = values.shape[0]
    top = 1
    while 2 * top < count:
        top *= 2
    p = top
    while p > 0:
        q, r, distance = top, 0, p
        while True:
            for i in range(count - distance):
                if (i & p) == r:
                    _exchange(values[i], values[i + distance])
            if q == p:
                break
            distance = q - p
            q //= 2
            r = p
        p //= 2


@inner
def _exchange(a, b):
    for i in range(len(a)):
        x, y = a[i], b[i]
        a[i], b[i] = min(x, y), max(x, y)


@inner
def _statistics(lanes, values):
    """Number, mean and largest of the differences of each column, and the threshold for a jump."""
    number, mean, squares, most, threshold = (
        lanes.number, lanes.mean, lanes.squares, lanes.most, lanes.threshold,
    )  # fmt: skip
    lowest = values[0]
    for i in range(LANES):
        number[i], squares[i], most[i], mean[i] = 0.0, 0.0, 0.0, lowest[i]
    for c in range(1, values.shape[0]):
        upper = values[c]
        for i in range(LANES):
            reached = upper[i] < np.inf
            number[i] += 1.0 if reached else 0.0
            mean[i] = upper[i] if reached else mean[i]
    for i in range(LANES):
        mean[i] = (mean[i] - lowest[i]) / max(number[i], 1.0) if number[i] > 0.0 else 0.0
    for c in range(1, values.shape[0]):
        lower, upper = values[c - 1], values[c]
        for i in range(LANES):
            reached = upper[i] < np.inf
            jump = upper[i] - lower[i] if reached else mean[i]
            squares[i] += (jump - mean[i]) * (jump - mean[i])
            most[i] = max(most[i], jump if reached else 0.0)
    for i in range(LANES):
        threshold[i] = (mean[i] + np.sqrt(squares[i] / max(number[i], 1.0))) * (1.0 + SLACK)


@inner
def _first_jumps(lanes, values):
    """Where each column first jumps (0: nowhere), how high, and the largest difference before that."""
    threshold, before, first, smaller = lanes.threshold, lanes.before, lanes.first, lanes.smaller
    for i in range(LANES):
        before[i], first[i], smaller[i] = 0.0, 0.0, 0.0
    for c in range(1, values.shape[0]):
        lower, upper = values[c - 1], values[c]
        for i in range(LANES):
            jump = upper[i] - lower[i] if upper[i] < np.inf else 0.0
            unknown = before[i] == 0.0
            hit = unknown & (jump > threshold[i])
            smaller[i] = max(smaller[i], jump) if unknown & (not hit) else smaller[i]
            first[i] = jump if hit else first[i]
            before[i] = float(c) if hit else before[i]


@inner
def _keep_jumps(wave, rows, lanes, values):
    """Write to each row what was found, and how far times may move until that changes."""
    height, largest, drift, place = wave.second, wave.largest, wave.drift, wave.before
    margin, firm = wave.margin, wave.firm
    number, most, threshold = lanes.number, lanes.most, lanes.threshold
    before, first, smaller = lanes.before, lanes.first, lanes.smaller
    for i in range(len(rows)):
        row, at, jump = rows[i], before[i], first[i]
        above = jump - threshold[i]
        clear = min(above, threshold[i] - smaller[i])
        if at == 0.0:
            at, clear, above = 1.0, threshold[i] - most[i], threshold[i] - most[i]
            jump = values[1, i] - values[0, i] if number[i] > 0.0 else 0.0
        height[row], largest[row], drift[row], place[row] = jump, most[i], 0.0, at
        # While each of m differences moves by at most d, their mean moves by d / m at most and their deviation by
        # d. While that is less than `clear`, the jump stays where it is; while it is less than `above`, no later
        # difference takes its place: an earlier one is smaller. A single difference is always the first.
        share = (1.0 - SLACK) / (2.0 + 1.0 / max(number[i], 1.0))
        margin[row] = clear * share if number[i] > 1.0 else np.inf
        firm[row] = above * share if number[i] > 1.0 else np.inf
