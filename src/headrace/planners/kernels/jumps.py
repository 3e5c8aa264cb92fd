"""The first jump in the ordered completion times of clusters (Extended Sufferage and Sufferage II)."""

from __future__ import annotations

import numpy as np

from headrace.planners.kernels.batch_arrays import FEWEST_BEFORE_JUMP
from headrace.planners.kernels.jit import inner

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
    """First jumps of the first `count` rows of `wave.rest`: O(places + clusters) a row.

    The first jump is the first difference above mean plus standard deviation; the first of all if there is
    none. Clusters that cannot be reached do not count. Arrays are named before the loop and nothing is called
    in it.
    """
    rows, times, order, values, least = wave.rest, wave.time, wave.order, wave.ordered, wave.cluster_time
    height, drift, jump_at = wave.second, wave.drift, wave.before
    margin, firm, seen = wave.margin, wave.firm, wave.seen
    cluster, largest, clusters = grid.cluster, wave.largest, wave.order.shape[1]
    single = len(cluster) == clusters  # one place each, in the same order
    for r in range(count):
        row = rows[r]
        if not single:
            least[:] = np.inf
            for k in range(len(cluster)):
                least[cluster[k]] = min(least[cluster[k]], times[k, row])
        for k in range(seen.shape[0]):
            seen[k, row] = times[k, row]
        reached = 0
        for i in range(clusters):
            # Insertion into the order of last time: linear when little has changed.
            c = order[row, i]
            value = times[c, row] if single else least[c]
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
        clear = above = threshold - most
        for i in range(1, reached if most > threshold else 0):
            first = values[i] - values[i - 1]
            if first > threshold:
                before, above = i, first - threshold
                clear = min(above, threshold - smaller)
                break
            smaller = max(smaller, first)
        height[row], largest[row], drift[row], jump_at[row] = first, most, 0.0, before
        # While each difference moves by at most d, their mean moves by d / m at most and their deviation by d.
        # While that is less than `clear`, the jump stays where it is; while it is less than `above`, no later
        # difference takes its place: an earlier one is smaller.
        share = (1.0 - SLACK) / (2.0 + 1.0 / count_jumps)
        margin[row] = clear * share if reached > 2 else np.inf  # a single difference is always the first
        firm[row] = above * share if reached > 2 else np.inf
