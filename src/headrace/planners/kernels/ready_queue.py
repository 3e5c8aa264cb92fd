"""Orders in which tasks leave a queue of those whose predecessors have all left it."""

from __future__ import annotations

import heapq

import numpy as np

from headrace.arrays.compiling import entry


@entry
def ready_order(order, priority, read_ptr, reads, producer, write_ptr, writes, reader_ptr, readers):
    """All tasks, always the ready one of highest priority next; ties: the lower position in `order`.

    O((tasks + reads) log tasks).
    """
    n = len(order)
    waits = np.zeros(n, np.int64)
    position = np.empty(n, np.int64)
    chosen = np.empty(n, np.int32)
    for p in range(n):
        task = order[p]
        position[task] = p
        for i in range(read_ptr[task], read_ptr[task + 1]):
            waits[task] += producer[reads[i]] >= 0
    queue = [(-priority[task], position[task]) for task in order if waits[task] == 0]
    heapq.heapify(queue)
    for at in range(n):
        _, p = heapq.heappop(queue)
        task = order[p]
        chosen[at] = task
        for i in range(write_ptr[task], write_ptr[task + 1]):
            for j in range(reader_ptr[writes[i]], reader_ptr[writes[i] + 1]):
                reader = readers[j]
                waits[reader] -= 1
                if waits[reader] == 0:
                    heapq.heappush(queue, (-priority[reader], position[reader]))
    return chosen
