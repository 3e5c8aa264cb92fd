"""Longest paths through a program."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry


@entry
def heads_and_tails(order, shortest, read_ptr, reads, write_ptr, writes, producer, fetch, give):
    """Longest ways to and from each task: O(tasks + reads + writes).

    `fetch` is the least time for an item from outside to arrive, `give` for a result to return.
    """
    n = len(order)
    head = np.zeros(n)
    tail = np.zeros(n)
    for task in order:
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            since = fetch[reads[i]] if maker < 0 else head[maker] + shortest[maker]
            head[task] = max(head[task], since)
    for position in range(n - 1, -1, -1):
        task = order[position]
        for i in range(write_ptr[task], write_ptr[task + 1]):
            tail[task] = max(tail[task], give[writes[i]])
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                tail[maker] = max(tail[maker], shortest[task] + tail[task])
    return head, tail
