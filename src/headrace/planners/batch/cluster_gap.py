"""The first large gap in the sorted completion times of clusters (Extended Sufferage and Sufferage II).

A gap is large if it exceeds the mean of all gaps plus one standard deviation; if none does, the first gap is used.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import leaf
from headrace.model.graph import Floats
from headrace.planners.batch.records import FEWEST_CLUSTERS, GapStatistics, HostGroups, ReadyTasks

TOGETHER = 64
"""Number of rows measured together."""
SLACK = 1e-9
"""A large gap must exceed mean plus deviation by more than this share, so that rounding does not make a gap large."""


@leaf
def update_gap_keys(rule: int, tolerance: float, groups: HostGroups, ready: ReadyTasks, count: int) -> None:
    """Update the keys of all unplaced rows that can be next, or are within tolerance of it; other keys become inf.

    The row that was best when last measured is evaluated first, so that most others can be skipped.
    """
    fewest, chosen = rule == FEWEST_CLUSTERS, ready.rows_anywhere
    likely = _likely_next(ready, count, fewest)
    chosen[0] = likely
    _measure(groups, ready, 1)
    highest, least_before = ready.gap[likely] * (1.0 - max(tolerance, 0.0)), ready.clusters_before[likely]
    measured = 0
    for i in range(count):
        row = ready.unplaced[i]
        drift = ready.drift[row]
        if drift > 0.0:
            bound = (ready.gap[row] if drift < ready.height_slack[row] else ready.largest_gap[row]) + drift
            above = 0.0
            if fewest:
                above = (
                    ready.clusters_before[row] if drift < ready.position_slack[row] else 1.0
                ) - least_before
            if above > 0 or (above == 0 and bound * (1.0 + SLACK) < highest):
                ready.key[row] = np.inf
                continue
            chosen[measured] = row
            measured += 1
        _set_key(ready, row, fewest)
    _measure(groups, ready, measured)
    for i in range(measured):
        _set_key(ready, chosen[i], fewest)


@leaf
def measure_row(rule: int, groups: HostGroups, ready: ReadyTasks, row: int) -> None:
    """Update the key of one row."""
    ready.rows_anywhere[0] = row
    _measure(groups, ready, 1)
    _set_key(ready, row, rule == FEWEST_CLUSTERS)


@leaf
def measure_all_rows(rule: int, groups: HostGroups, ready: ReadyTasks, count: int) -> None:
    """Update the keys of all unplaced rows, whether they can be next or not."""
    for i in range(count):
        ready.rows_anywhere[i] = ready.unplaced[i]
    _measure(groups, ready, count)
    for i in range(count):
        _set_key(ready, ready.unplaced[i], rule == FEWEST_CLUSTERS)


@leaf
def _likely_next(ready: ReadyTasks, count: int, fewest: bool) -> int:
    """The row that would be next if nothing had changed since rows were measured."""
    gap, before = ready.gap, ready.clusters_before
    likely = ready.unplaced[0]
    for i in range(1, count):
        row = ready.unplaced[i]
        fewer = before[row] < before[likely] if fewest else False
        if fewer or (gap[row] > gap[likely] and not (fewest and before[row] > before[likely])):
            likely = row
    return likely


@leaf
def _set_key(ready: ReadyTasks, row: int, fewest: bool) -> None:
    ready.key[row] = ready.clusters_before[row] if fewest else -ready.gap[row]
    ready.tie[row] = -ready.gap[row] if fewest else 0.0


@leaf
def _measure(groups: HostGroups, ready: ReadyTasks, count: int) -> None:
    """Find the first large gaps of the first `count` of `rows_anywhere`: O(places + clusters * log^2 clusters) per row.

    Unreachable clusters are ignored. Rows are processed TOGETHER at a time.
    """
    for low in range(0, count, TOGETHER):
        rows = ready.rows_anywhere[low : min(low + TOGETHER, count)]
        _load_clusters(groups, ready, rows)
        _sort_columns(ready.ordered)
        _gap_statistics(ready.statistics, ready.ordered)
        _first_large_gaps(ready.statistics, ready.ordered)
        _store_gaps(ready, rows)


@leaf
def _load_clusters(groups: HostGroups, ready: ReadyTasks, rows: Int64s) -> None:
    """Load the best completion time of each cluster, one column per row; columns without a row are inf."""
    times, measured, ordered, cluster = ready.time, ready.measured_time, ready.ordered, groups.cluster
    noted = measured.shape[0] > 0
    ordered[:] = np.inf
    for k in range(len(cluster)):
        c = cluster[k]
        for i in range(len(rows)):
            time = times[k, rows[i]]
            ordered[c, i] = min(ordered[c, i], time)
            if noted:
                measured[k, rows[i]] = time


@leaf
def _sort_columns(values: Floats) -> None:
    """Sort every column with Batcher's sorting network."""
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


@leaf
def _exchange(a: Floats, b: Floats) -> None:
    for i in range(len(a)):
        x, y = a[i], b[i]
        a[i], b[i] = min(x, y), max(x, y)


@leaf
def _gap_statistics(statistics: GapStatistics, ordered: Floats) -> None:
    """Compute the number, mean and maximum of each column's gaps, and the threshold above which a gap is large."""
    number, mean, squares = statistics.number, statistics.mean, statistics.squares
    largest, threshold = statistics.largest, statistics.threshold
    lowest = ordered[0]
    for i in range(TOGETHER):
        number[i], squares[i], largest[i], mean[i] = 0.0, 0.0, 0.0, lowest[i]
    for c in range(1, ordered.shape[0]):
        upper = ordered[c]
        for i in range(TOGETHER):
            reached = upper[i] < np.inf
            number[i] += 1.0 if reached else 0.0
            mean[i] = upper[i] if reached else mean[i]
    for i in range(TOGETHER):
        mean[i] = (mean[i] - lowest[i]) / max(number[i], 1.0) if number[i] > 0.0 else 0.0
    for c in range(1, ordered.shape[0]):
        lower, upper = ordered[c - 1], ordered[c]
        for i in range(TOGETHER):
            reached = upper[i] < np.inf
            gap = upper[i] - lower[i] if reached else mean[i]
            squares[i] += (gap - mean[i]) * (gap - mean[i])
            largest[i] = max(largest[i], gap if reached else 0.0)
    for i in range(TOGETHER):
        threshold[i] = (mean[i] + np.sqrt(squares[i] / max(number[i], 1.0))) * (1.0 + SLACK)


@leaf
def _first_large_gaps(statistics: GapStatistics, ordered: Floats) -> None:
    """Find the position (0: none) and height of each column's first large gap, and the largest gap before it."""
    threshold, before = statistics.threshold, statistics.clusters_before
    height, largest_before = statistics.height, statistics.largest_before
    for i in range(TOGETHER):
        before[i], height[i], largest_before[i] = 0.0, 0.0, 0.0
    for c in range(1, ordered.shape[0]):
        lower, upper = ordered[c - 1], ordered[c]
        for i in range(TOGETHER):
            gap = upper[i] - lower[i] if upper[i] < np.inf else 0.0
            unknown = before[i] == 0.0
            hit = unknown & (gap > threshold[i])
            largest_before[i] = max(largest_before[i], gap) if unknown & (not hit) else largest_before[i]
            height[i] = gap if hit else height[i]
            before[i] = float(c) if hit else before[i]


@leaf
def _store_gaps(ready: ReadyTasks, rows: Int64s) -> None:
    """Store the result of each row, and how far times may move before it can change."""
    found, ordered = ready.statistics, ready.ordered
    for i in range(len(rows)):
        row, before, height = rows[i], found.clusters_before[i], found.height[i]
        above = height - found.threshold[i]
        clear = min(above, found.threshold[i] - found.largest_before[i])
        if before == 0.0:
            before = 1.0
            clear = above = found.threshold[i] - found.largest[i]
            height = ordered[1, i] - ordered[0, i] if found.number[i] > 0.0 else 0.0
        ready.gap[row], ready.clusters_before[row] = height, before
        ready.largest_gap[row], ready.drift[row] = found.largest[i], 0.0
        # While each of m gaps moves by at most d, their mean moves by d / m at most and their deviation by d. While
        # that is less than `clear`, the first large gap stays where it is; while it is less than `above`, no later
        # gap takes its place: an earlier one is smaller. A single gap is always the first.
        share = (1.0 - SLACK) / (2.0 + 1.0 / max(found.number[i], 1.0))
        ready.position_slack[row] = clear * share if found.number[i] > 1.0 else np.inf
        ready.height_slack[row] = above * share if found.number[i] > 1.0 else np.inf
