"""Which tasks a plan is made for, where there are more than it shall hold."""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.model.graph import Floats, Graph, Ints

Reduction = Literal["random", "shared-file"]


def reduced(
    graph: Graph, left: Ints, limit: int, how: Reduction, rng: np.random.Generator, size: Floats | None = None
) -> Ints:
    """At most `limit` of the tasks `left`, those of lower levels first: what a chosen task reads is made by one
    that is chosen as well or no longer left.

    Within a level at random; or ("shared-file") grouped by the largest input they share with other tasks that
    are left, the input that most of them read first. `size` of items if others than the graph's are believed
    in. O(reads + tasks log tasks).

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
    """For each task left the largest input that others read too, and how many do; -1 and 0 without one."""
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
