"""Select the tasks to plan for if there are more than one plan may hold."""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.model.graph import Floats, Graph, Ints

Reduction = Literal["random", "shared-file"]


def reduced(
    graph: Graph, left: Ints, limit: int, how: Reduction, rng: np.random.Generator, size: Floats | None = None
) -> Ints:
    """Select at most `limit` of the remaining tasks `left`, lower levels first.

    The producers of a selected task's inputs are therefore selected too, or are no longer in `left`. Within a level the
    selection is random or, with "shared-file", grouped by the largest input shared with other remaining tasks, the most
    widely read input first. `size` replaces the graph's item sizes with estimates. O(reads + tasks log tasks).

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[1] * 4, size=[9, 5], producer=[-1, -1], read_ptr=[0, 1, 2, 3, 4], reads=[0, 1, 1, 1])
    >>> reduced(g, np.arange(4, dtype=np.int32), 3, "shared-file", np.random.default_rng(0)).tolist()
    [1, 2, 3]
    """
    level = graph.level[left]
    if how == "random":
        order = np.lexsort((rng.permutation(len(left)), level))
    else:
        item, users = _largest_shared(graph, left, graph.size if size is None else size)
        order = np.lexsort((left, item, -users, level))
    return left[order[:limit]]


def _largest_shared(graph: Graph, left: Ints, size: Floats) -> tuple[Ints, Ints]:
    """For each remaining task, its largest input with other readers, and the number of readers; -1 and 0 if none."""
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    is_left = np.zeros(graph.n_tasks, np.bool_)
    is_left[left] = True
    reader, item = reader[is_left[reader]], graph.reads[is_left[reader]]
    users = np.bincount(item, minlength=graph.n_items)
    shared = (users[item] > 1) & (size[item] > 0)
    reader, item = reader[shared], item[shared]
    order = np.lexsort((-size[item], reader))
    first = order[np.concatenate(([True], np.diff(reader[order]) > 0))] if len(order) else order
    largest = np.full(graph.n_tasks, -1, np.int32)
    largest[reader[first]] = item[first]
    count = np.where(largest >= 0, users[largest], 0).astype(np.int32)
    return largest[left], count[left]
