"""The chain of tasks and transfers that determines the makespan of a plan."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.model.graph import Ints
from headrace.model.plan import Plan
from headrace.simulator.replay.dependencies import dependencies


def critical_tasks(plan: Plan, holders: Mapping[int, tuple[int, ...]] | None = None) -> Ints:
    """Tasks on one critical chain, each waiting for the one before it, up to the latest end: O(tasks + transfers).

    Returns all tasks if the chain consists only of transfers.
    """
    n = plan.graph.n_tasks
    depends = dependencies(plan, holders or {})
    start = np.concatenate((plan.start, plan.move_start))
    finish = np.concatenate((plan.finish, plan.move_finish))
    source = np.repeat(np.arange(len(start)), np.diff(depends.ptr))
    freed = np.where(depends.lag < np.inf, start[source] + depends.lag, finish[source])
    # For every node, find the predecessor that let it start last: sort by (target, that time), take the last of each.
    by_end = np.lexsort((source, freed, depends.successors))
    last = np.full(len(start), -1, np.int64)
    last[depends.successors[by_end]] = source[by_end]
    node = int(np.argmax(finish))
    chain = []
    while node >= 0:
        if node < n:
            chain.append(node)
        node = int(last[node])
    return np.array(chain, np.int32) if chain else np.arange(n, dtype=np.int32)
