"""The first jump in the ordered completion times of clusters (Extended Sufferage and Sufferage II)."""

from __future__ import annotations

import numpy as np

from headrace.planners.kernels.batch_arrays import FEWEST_BEFORE_JUMP, FIRST_JUMP
from headrace.planners.kernels.jit import inner

SLACK = 1e-9
"""Rounding does not make a jump: it exceeds mean plus deviation by more than this share."""


@inner
def find_jumps(rule, tolerance, grid, wave, rows, count, highest):
    """Bring keys up to date; for FIRST_JUMP only those that can be the best or within tolerance of it.

    A jump of `highest` is known of. The row that was highest when last seen comes first, so that most others
    can be left out.
    """
    key, tie, stale, bound, height = wave.key, wave.tie, wave.stale, wave.bound, wave.second
    times, order, values, cluster = wave.time, wave.order, wave.cluster_time, grid.cluster
    share = 1.0 - max(tolerance, 0.0)
    likely = 0
    for i in range(count if rule == FIRST_JUMP else 0):
        if height[rows[i]] > height[rows[likely]]:
            likely = i
    for i in range(-1, count):
        row = rows[i if i >= 0 else likely]
        if stale[row]:
            if rule == FIRST_JUMP and bound[row] * (1.0 + SLACK) < highest * share:
                key[row] = 0.0
                continue
            _sort(times, cluster, values, order, row)
            before, height[row], bound[row] = _first_jump(order, row, values)
            stale[row] = False
            key[row] = -height[row]
            if rule == FEWEST_BEFORE_JUMP:
                key[row], tie[row] = before, -height[row]
        highest = max(highest, height[row])


@inner
def _sort(times, cluster, values, order, row):
    """Bring the clusters of a row into the order of their times, which are written to `values`.

    Insertion into the order of last time: O(places + clusters) when little has changed.
    """
    for c in range(len(values)):
        values[c] = np.inf
    for k in range(len(cluster)):
        values[cluster[k]] = min(values[cluster[k]], times[row, k])
    for i in range(1, order.shape[1]):
        c = order[row, i]
        at = i
        while at > 0 and values[order[row, at - 1]] > values[c]:
            order[row, at] = order[row, at - 1]
            at -= 1
        order[row, at] = c


@inner
def _first_jump(order, row, values):
    """(clusters before the first jump, its height, the largest difference).

    The first difference above mean plus standard deviation; the first of all if there is none. Clusters
    that cannot be reached do not count.
    """
    count = 0
    while count + 1 < order.shape[1] and values[order[row, count + 1]] < np.inf:
        count += 1
    if count == 0:
        return 1, 0.0, 0.0
    low, high = values[order[row, 0]], values[order[row, count]]
    mean = (high - low) / count
    squares, largest = 0.0, 0.0
    before = low
    for i in range(1, count + 1):
        jump = values[order[row, i]] - before
        before = values[order[row, i]]
        squares += (jump - mean) * (jump - mean)
        largest = max(largest, jump)
    threshold = (mean + np.sqrt(squares / count)) * (1.0 + SLACK)
    if largest > threshold:
        before = low
        for i in range(1, count + 1):
            jump = values[order[row, i]] - before
            before = values[order[row, i]]
            if jump > threshold:
                return i, jump, largest
    return 1, values[order[row, 1]] - low, largest
