"""Levels of a graph, compiled: for graphs to which many planners and runs add an order of tasks."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry
from headrace.model.graph import Bools, Graph, Ints, order_and_level


def compiled_order_and_level(graph: Graph) -> tuple[Ints, Ints]:
    """As `order_and_level`: O(tasks + reads), without the array operations for each level.

    >>> from headrace.testing import random_program
    >>> graph = random_program(1).graph
    >>> order, level = compiled_order_and_level(graph)
    >>> bool((order == graph.order).all() and (level == graph.level).all())
    True
    """
    order, level, placed = _order_and_level(
        graph.producer[graph.reads] >= 0,
        graph.read_ptr,
        graph.write_ptr,
        graph.writes,
        graph.reader_ptr,
        graph.readers,
    )
    return (order, level) if placed == graph.n_tasks else order_and_level(graph)  # which names the circle


@entry
def _order_and_level(
    made: Bools, read_ptr: Ints, write_ptr: Ints, writes: Ints, reader_ptr: Ints, readers: Ints
) -> tuple[Ints, Ints, int]:
    """Order, levels, and how many tasks do not wait for each other in a circle. `made`: reads of what a task makes."""
    n = len(read_ptr) - 1
    waits = np.zeros(n, np.int64)
    for task in range(n):
        for i in range(read_ptr[task], read_ptr[task + 1]):
            waits[task] += made[i]
    level, queue, last = np.zeros(n, np.int32), np.empty(n, np.int64), 0
    for task in range(n):
        if waits[task] == 0:
            queue[last] = task
            last += 1
    first = 0
    while first < last:
        task = queue[first]
        first += 1
        for i in range(write_ptr[task], write_ptr[task + 1]):
            for k in range(reader_ptr[writes[i]], reader_ptr[writes[i] + 1]):
                reader = readers[k]
                level[reader] = max(level[reader], level[task] + 1)
                waits[reader] -= 1
                if waits[reader] == 0:
                    queue[last] = reader
                    last += 1
    begin = np.zeros(n + 1, np.int64)
    for task in range(n):
        begin[level[task] + 1] += 1
    begin = np.cumsum(begin)
    order = np.empty(n, np.int32)
    for task in range(n):
        order[begin[level[task]]] = task
        begin[level[task]] += 1
    return order, level, last
