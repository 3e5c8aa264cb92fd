"""Ranks of tasks: how long the program takes before and after each one, on average machines."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner


@inner
def _add_bytes(task, read_ptr, reads, producer, size, bytes_from):
    """Sum up what a task reads from each of its predecessors."""
    for i in range(read_ptr[task], read_ptr[task + 1]):
        maker = producer[reads[i]]
        if maker >= 0:
            bytes_from[maker] += size[reads[i]]


@inner
def _clear_bytes(task, read_ptr, reads, producer, bytes_from):
    for i in range(read_ptr[task], read_ptr[task + 1]):
        if producer[reads[i]] >= 0:
            bytes_from[producer[reads[i]]] = 0.0


@entry
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
        _add_bytes(task, read_ptr, reads, producer, size, bytes_from)
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                move = latency + bytes_from[maker] * seconds_per_byte if bytes_from[maker] > 0 else 0.0
                below[maker] = max(below[maker], move + rank[task])
        _clear_bytes(task, read_ptr, reads, producer, bytes_from)
    return rank


@entry
def downward_ranks(order, cost, read_ptr, reads, producer, size, latency, seconds_per_byte):
    """rank(t) = max over predecessors p of (rank(p) + cost(p) + communication(p, t)), and which p that is.

    Ties: the predecessor whose item is read first; -1 for tasks without predecessors. O(tasks + reads).
    """
    n = len(order)
    bytes_from = np.zeros(n)
    rank = np.zeros(n)
    before = np.full(n, -1, np.int32)
    for task in order:
        _add_bytes(task, read_ptr, reads, producer, size, bytes_from)
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                move = latency + bytes_from[maker] * seconds_per_byte if bytes_from[maker] > 0 else 0.0
                way = rank[maker] + cost[maker] + move
                if way > rank[task] or before[task] < 0:
                    rank[task] = way
                    before[task] = maker
        _clear_bytes(task, read_ptr, reads, producer, bytes_from)
    return rank, before


@entry
def optimistic_costs(order, work, kind, rate, host_place, read_ptr, reads, producer, size, mean_move, table):
    """PEFT's table over places: the least time from a task's end at a place to the end of the program.

    table(t, p) = max over successors s of min over hosts w of (table(s, place of w) + time of s on w + the
    mean communication if w is not at p). With m the minimum over all hosts without communication and m(p)
    that over the hosts at p, the inner minimum is min(m(p), m + communication), which makes it
    O((tasks + reads) * hosts). `table` must be zero.
    """
    latency, seconds_per_byte = mean_move
    places = table.shape[1]
    bytes_from = np.zeros(len(order))
    here = np.empty(places)
    for position in range(len(order) - 1, -1, -1):
        task = order[position]
        here[:] = np.inf
        least = np.inf
        for host in range(len(host_place)):
            place = host_place[host]
            value = table[task, place] + work[task] / rate[kind[task], host]
            here[place] = min(here[place], value)
            least = min(least, value)
        _add_bytes(task, read_ptr, reads, producer, size, bytes_from)
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                move = latency + bytes_from[maker] * seconds_per_byte if bytes_from[maker] > 0 else 0.0
                for place in range(places):
                    table[maker, place] = max(table[maker, place], min(here[place], least + move))
        _clear_bytes(task, read_ptr, reads, producer, bytes_from)
