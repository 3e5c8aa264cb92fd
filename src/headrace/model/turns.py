"""An order of tasks that keeps limits on what runs at once, whatever the run times."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from headrace.model.constraints import Limit
from headrace.model.graph import Ints
from headrace.model.need_limits import with_needs
from headrace.model.plan import Plan


def turns_of(limit: Limit, plan: Plan) -> Ints:
    """[pairs, 2] an order of the tasks that a limit counts in which no more of them run at once than it permits.

    Each task comes after those that leave it what it takes in a plan that satisfies the limit: O(tasks log tasks).

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> tasks = [program.task(None, work=1.0) for _ in range(3)]
    >>> plan = hr.plan(program, hr.Platform.local(1, cores=3))
    >>> turns_of(Limit(np.ones(3, np.bool_), np.ones(1, np.bool_), at_once=3.0), plan).shape
    (0, 2)
    """
    counted = np.flatnonzero(limit.tasks & limit.hosts[plan.host] & (plan.finish > plan.start))
    counted = counted[np.lexsort((counted, plan.finish[counted], plan.start[counted]))]
    free = limit.at_once if limit.amount is not None else float(np.floor(limit.at_once))
    least = 1e-9 * free
    held: list[tuple[float, int, float]] = []
    pairs = []
    for task in counted.tolist():
        amount = 1.0 if limit.amount is None else float(limit.amount[task])
        missing = amount - free
        free = max(0.0, free - amount)
        while missing > least and held:
            finish, before, left = heappop(held)
            pairs.append((before, task))
            missing -= left
            if missing < -least:
                heappush(held, (finish, before, -missing))
        heappush(held, (float(plan.finish[task]), task, amount))
    return np.array(pairs, np.int32).reshape(-1, 2)


def need_turns(plan: Plan) -> Ints:
    """[pairs, 2] the turns in which tasks of a plan have memory and resources, as in `turns_of`."""
    found = with_needs(None, plan.graph, plan.platform)  # nothing to do if tasks need nothing
    turns = [] if found is None else [turns_of(limit, plan) for limit in found.limits]
    return np.concatenate([np.empty((0, 2), np.int32), *turns])
