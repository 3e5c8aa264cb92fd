"""The first jump in the ordered completion times of clusters (Extended Sufferage and Sufferage II)."""

from __future__ import annotations

import numpy as np
from numba import njit

SLACK = 1e-9
"""Rounding does not make a jump: it exceeds mean plus deviation by more than this share."""


@njit(cache=True)
def sort_clusters(grid, wave, row, values):
    """Bring the clusters of a row into the order of their times, written to `values` by cluster.

    Insertion into the order of last time: linear when little has changed.
    """
    order = wave.order[row]
    for c in range(len(order)):
        values[c] = np.inf
    for k in range(len(grid.cluster)):
        values[grid.cluster[k]] = min(values[grid.cluster[k]], wave.time[row, k])
    for i in range(1, len(order)):
        c = order[i]
        value = values[c]
        at = i
        while at > 0 and values[order[at - 1]] > value:
            order[at] = order[at - 1]
            at -= 1
        order[at] = c


@njit(cache=True)
def first_jump(order, values):
    """(clusters before the first jump, its height, the largest difference).

    The first difference above mean plus standard deviation; the first of all if there is none. Clusters
    that cannot be reached do not count.
    """
    count = 0
    while count + 1 < len(order) and values[order[count + 1]] < np.inf:
        count += 1
    if count == 0:
        return 1, 0.0, 0.0
    mean = (values[order[count]] - values[order[0]]) / count
    squares, largest = 0.0, 0.0
    for i in range(count):
        jump = values[order[i + 1]] - values[order[i]]
        squares += (jump - mean) * (jump - mean)
        largest = max(largest, jump)
    threshold = (mean + np.sqrt(squares / count)) * (1.0 + SLACK)
    if largest > threshold:
        for i in range(count):
            jump = values[order[i + 1]] - values[order[i]]
            if jump > threshold:
                return i + 1, jump, largest
    return 1, values[order[1]] - values[order[0]], largest
