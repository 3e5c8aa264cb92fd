"""The transfers that each task triggers when inputs are sent only for the next few tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan
from headrace.simulator.replay.dependencies import Needs, as_lists, positions


class Calls(NamedTuple):
    """The transfers that each task calls for when it starts (CSR), and which transfers need no call."""

    ptr: Ints
    nodes: Ints
    """Transfers, counted from the number of tasks on."""
    called: Bools


def no_calls(plan: Plan) -> Calls:
    """Every transfer starts as soon as it can."""
    zeros = np.zeros(plan.graph.n_tasks + 1, np.int32)
    return Calls(zeros, np.empty(0, np.int32), np.ones(len(plan.move_item), np.bool_))


def calls_for_prefetch(plan: Plan, needed: Needs, depth: int) -> Calls:
    """A task calls for the inputs of the task `depth` places for each core after it in the order of its host.

    The first tasks of a host need no call for theirs. A transfer for several tasks starts at the first call; one
    that brings an item on its way to other places is called for with those that take it on. Transfers that no
    task needs, such as results on their way back, need no call. O(reads * hops).
    """
    n, k = plan.graph.n_tasks, len(plan.move_item)
    caller = _callers(plan, depth)
    supplier = np.full(k, -1, np.int32)
    came_from, onward = needed.sources
    by_transfer = came_from >= n
    supplier[onward[by_transfer] - n] = came_from[by_transfer] - n
    node, reader = needed.inputs
    found = [(node[node >= n] - np.int32(n), caller[reader[node >= n]])]
    # An item passes no place twice in a plan that can be carried out.
    for _ in range(plan.platform.network.n_places):
        before = supplier[found[-1][0]]
        if not (before >= 0).any():
            break
        found.append((before[before >= 0], found[-1][1][before >= 0]))
    transfer, task = (np.concatenate(part) for part in zip(*found, strict=True))
    called = np.ones(k, np.bool_)
    called[transfer] = False
    called[transfer[task < 0]] = True
    waiting = ~called[transfer]
    return Calls(*as_lists(task[waiting], transfer[waiting] + np.int32(n), n), called)


def _callers(plan: Plan, depth: int) -> Ints:
    """The task that calls for the inputs of each task when it starts; -1: they need no call. O(tasks log tasks)."""
    queues = np.lexsort((positions(plan), plan.finish, plan.start, plan.host)).astype(np.int32)
    host = plan.host[queues]
    first = np.searchsorted(host, host)
    cores = np.array([h.cores for h in plan.platform.hosts])
    before = np.arange(len(queues)) - depth * cores[host]
    caller = np.full(len(queues), -1, np.int32)
    called = before >= first
    caller[queues[called]] = queues[before[called]]
    return caller
