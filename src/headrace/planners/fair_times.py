"""Times of plans where links are shared fairly: only a simulation can tell them."""

from __future__ import annotations

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.simulator.replay.replay import replay


def as_executed(plan: Plan, problem: Problem) -> Plan:
    """A plan with the times that follow from its decisions where links are shared fairly; else the plan itself."""
    if problem.platform.contention != "fair":
        return plan
    return replay(
        plan,
        holders=problem.holders,
        prefetch_depth=problem.prefetch_depth,
        not_before=_not_before(plan, problem),
    )


def _not_before(plan: Plan, problem: Problem) -> Floats:
    """When each task can start at the earliest: its host is free, and inputs that are in flight have arrived."""
    graph = plan.graph
    earliest = np.zeros(graph.n_tasks)
    for host, free in problem.free_at.items():
        earliest[plan.host == host] = free
    place = problem.platform.network.host_place[plan.host]
    for (item, target), arrival in problem.since.items():
        readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]]
        there = readers[place[readers] == target]
        earliest[there] = np.maximum(earliest[there], arrival)
    return earliest
