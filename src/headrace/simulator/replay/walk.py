"""Times where no order of events matters: one walk over what waits for what."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry
from headrace.model.graph import Floats, Ints


@entry(nogil=True)
def walk(
    ptr: Ints, successors: Ints, waits: Ints, lag: Floats, seconds: Floats, start: Floats
) -> tuple[Floats, int]:
    """Every node starts when all its predecessors let it, and not before `start`: O(nodes + edges).

    A predecessor lets it start `lag` after its own start, or if that is inf when it has finished. `waits` is used up,
    and `start` becomes when each node starts; the answer is finish and the number of nodes that finished.
    """
    n = len(seconds)
    finish = np.zeros(n)
    stack = np.empty(n, np.int32)
    top = 0
    for node in range(n):
        if waits[node] == 0:
            stack[top] = node
            top += 1
    reached = 0
    while top > 0:
        top -= 1
        node = stack[top]
        reached += 1
        finish[node] = start[node] + seconds[node]
        for i in range(ptr[node], ptr[node + 1]):
            later = successors[i]
            soonest = start[node] + lag[i] if lag[i] < np.inf else finish[node]
            start[later] = max(start[later], soonest)
            waits[later] -= 1
            if waits[later] == 0:
                stack[top] = later
                top += 1
    return finish, reached
