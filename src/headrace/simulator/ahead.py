"""Which tasks call for which transfers, when inputs are sent only so many tasks ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Ints
from headrace.model.plan import Plan
from headrace.simulator.dependencies import Holders, as_lists, by_core, inputs, places_before, sources


@dataclass(frozen=True, eq=False)
class Calls:
    """The transfers that each task calls for when it starts (CSR), and those that need no call."""

    ptr: Ints
    transfers: Ints
    called: Bools


def no_calls(plan: Plan) -> Calls:
    """Every transfer starts as soon as it can."""
    zeros = np.zeros(plan.graph.n_tasks + 1, np.int32)
    return Calls(zeros, np.empty(0, np.int32), np.ones(len(plan.move_item), np.bool_))


def calls_ahead(plan: Plan, ahead: int, holders: Holders) -> Calls:
    """A task calls for the inputs of the task `ahead` places after it on its core.

    The first tasks of a core need no call for theirs. A transfer for several tasks starts at the first call; one
    that brings an item on its way to other places is called for with those that take it on. Transfers that no
    task needs, such as results on their way back, need no call. O(transfers * hops + reads log).
    """
    n, k = plan.graph.n_tasks, len(plan.move_item)
    later, earlier = places_before(plan, by_core(plan), ahead)
    caller = np.full(n, -1, np.int32)
    caller[later] = earlier
    node, reader = inputs(plan, holders)
    transfer, task = node[node >= n] - np.int32(n), caller[reader[node >= n]]
    came_from, onward = sources(plan, holders)
    supplier = np.full(k, -1, np.int32)
    by_transfer = came_from >= n
    supplier[onward[by_transfer] - n] = came_from[by_transfer] - n
    pairs = new = np.unique(transfer.astype(np.int64) * (n + 1) + task + 1)
    while len(new):
        before = supplier[new // (n + 1)]
        passed_on = before[before >= 0].astype(np.int64) * (n + 1) + (new % (n + 1))[before >= 0]
        new = np.setdiff1d(passed_on, pairs)
        pairs = np.union1d(pairs, new)
    transfer, task = (pairs // (n + 1)).astype(np.int32), (pairs % (n + 1) - 1).astype(np.int32)
    called = np.ones(k, np.bool_)
    called[transfer] = False
    called[transfer[task < 0]] = True
    waiting = ~called[transfer]
    return Calls(*as_lists(task[waiting], transfer[waiting], n), called)
