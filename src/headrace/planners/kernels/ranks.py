"""Upward ranks: how long the rest of the program takes after each task, on average machines."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def upward_ranks(order, cost, read_ptr, reads, producer, size, latency, seconds_per_byte):
    """rank(t) = cost(t) + max over successors s of (communication(t, s) + rank(s)): O(tasks + reads).

    The communication of t and s is that of all bytes that s reads from t.
    """
    n = len(order)
    below = np.zeros(n)
    bytes_from = np.zeros(n)
    rank = np.empty(n)
    for position in range(n - 1, -1, -1):
        task = order[position]
        rank[task] = cost[task] + below[task]
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                bytes_from[maker] += size[reads[i]]
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                move = latency + bytes_from[maker] * seconds_per_byte if bytes_from[maker] > 0 else 0.0
                below[maker] = max(below[maker], move + rank[task])
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                bytes_from[maker] = 0.0
    return rank
