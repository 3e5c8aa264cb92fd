"""Longest paths through a program."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry
from headrace.arrays.problem import TaskArrays
from headrace.model.graph import Floats


@entry
def heads_and_tails(
    tasks: TaskArrays, shortest: Floats, fetch_seconds: Floats, return_seconds: Floats
) -> tuple[Floats, Floats]:
    """Longest paths to and from each task, with run times `shortest`: O(tasks + reads + writes).

    `fetch_seconds` is the minimum time for an item from outside to arrive, `return_seconds` for a result to return.
    """
    n = len(tasks.order)
    head = np.zeros(n)
    tail = np.zeros(n)
    for task in tasks.order:
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            item = tasks.reads[i]
            maker = tasks.producer[item]
            since = fetch_seconds[item] if maker < 0 else head[maker] + shortest[maker]
            head[task] = max(head[task], since)
    for task in tasks.order[::-1]:
        for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
            tail[task] = max(tail[task], return_seconds[tasks.writes[i]])
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            maker = tasks.producer[tasks.reads[i]]
            if maker >= 0:
                tail[maker] = max(tail[maker], shortest[task] + tail[task])
    return head, tail
