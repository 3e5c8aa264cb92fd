"""The first jump in the ordered completion times of clusters (Extended Sufferage and Sufferage II)."""

from __future__ import annotations

import numpy as np

from headrace.planners.kernels.batch_arrays import FEWEST_BEFORE_JUMP, FIRST_JUMP
from headrace.planners.kernels.jit import inner

STEADY = 3.1
"""Times that move by d in all move a difference of neighbours by at most d, the mean of differences by less and
their deviation by at most d. So a jump stays where it is while its margins are above 3 d."""
SLACK = 1e-9
"""Rounding does not make a jump: it exceeds mean plus deviation by more than this share."""


@inner
def find_jumps(rule, tolerance, grid, wave, rows, count):
    """Bring keys up to date; for FIRST_JUMP only those that can be the best or within tolerance of it.

    The row that was highest when last seen comes first, so that most others can be left out.
    """
    key, height, largest, margin, drift = wave.key, wave.second, wave.largest, wave.margin, wave.drift
    chosen = wave.rest
    share = 1.0 - max(tolerance, 0.0)
    highest = 0.0
    if rule == FIRST_JUMP:
        chosen[0] = rows[0]
        for i in range(1, count):
            if height[rows[i]] > height[chosen[0]]:
                chosen[0] = rows[i]
        _measure(rule, grid, wave, 1)
        highest = height[chosen[0]] * share
    some = 0
    for i in range(count):
        row = rows[i]
        if drift[row] > 0.0:
            bound = (height[row] if STEADY * drift[row] < margin[row] else largest[row]) + drift[row]
            if rule == FIRST_JUMP and bound * (1.0 + SLACK) < highest:
                key[row] = 0.0
            else:
                chosen[some] = row
                some += 1
        elif rule == FIRST_JUMP:
            key[row] = -height[row]
    _measure(rule, grid, wave, some)


@inner
def _measure(rule, grid, wave, count):
    """First jumps of the first `count` rows of `wave.rest`, and their keys: O(places + clusters) a row.

    The first jump is the first difference above mean plus standard deviation; the first of all if there is
    none. Clusters that cannot be reached do not count. Arrays are named before the loop and nothing is called
    in it.
    """
    rows, times, order, values, least = wave.rest, wave.time, wave.order, wave.ordered, wave.cluster_time
    key, tie, height, margin, drift = wave.key, wave.tie, wave.second, wave.margin, wave.drift
    cluster, largest, clusters = grid.cluster, wave.largest, wave.order.shape[1]
    single = len(cluster) == clusters  # one place each, in the same order
    for r in range(count):
        row = rows[r]
        if not single:
            least[:] = np.inf
            for k in range(len(cluster)):
                least[cluster[k]] = min(least[cluster[k]], times[row, k])
        reached = 0
        for i in range(clusters):
            # Insertion into the order of last time: linear when little has changed.
            c = order[row, i]
            value = times[row, c] if single else least[c]
            reached += value < np.inf
            at = i
            while at > 0 and values[at - 1] > value:
                values[at], order[row, at] = values[at - 1], order[row, at - 1]
                at -= 1
            values[at], order[row, at] = value, c
        count_jumps = max(reached - 1, 1)
        mean = (values[reached - 1] - values[0]) / count_jumps if reached > 1 else 0.0
        squares, most = 0.0, 0.0
        for i in range(1, reached):
            jump = values[i] - values[i - 1]
            squares += (jump - mean) * (jump - mean)
            most = max(most, jump)
        threshold = (mean + np.sqrt(squares / count_jumps)) * (1.0 + SLACK)
        before, first, smaller = 1, values[1] - values[0] if reached > 1 else 0.0, 0.0
        clear = threshold - most
        for i in range(1, reached if most > threshold else 0):
            first = values[i] - values[i - 1]
            if first > threshold:
                before, clear = i, min(first - threshold, threshold - smaller)
                break
            smaller = max(smaller, first)
        height[row], largest[row], margin[row], drift[row] = first, most, clear, 0.0
        if rule == FEWEST_BEFORE_JUMP:
            key[row], tie[row] = before, -first
        else:
            key[row] = -first
