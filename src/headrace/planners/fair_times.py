"""Times of plans where links are shared fairly: only a simulation can tell them."""

from __future__ import annotations

from dataclasses import replace
from heapq import heapreplace

import numpy as np

from headrace.arrays.levels import compiled_order_and_level
from headrace.core.scheduler import Problem
from headrace.model.constraints import with_order
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.simulator.replay.replay import replay


def as_executed(plan: Plan, problem: Problem) -> Plan:
    """A plan with the times that follow from its decisions where links are shared fairly; else the plan itself."""
    if problem.platform.contention != "fair":
        return plan
    turns = at_once_pairs(plan, problem)
    executed = replay(
        replace(plan, graph=with_order(plan.graph, turns, compiled_order_and_level)) if len(turns) else plan,
        holders=problem.holders,
        prefetch_depth=None if plan.in_turn else problem.prefetch_depth,
        not_before=_not_before(plan, problem),
    )
    return replace(executed, graph=plan.graph) if len(turns) else executed


def at_once_pairs(plan: Plan, problem: Problem) -> Ints:
    """Pairs of tasks, the second after the first, that keep the limits on tasks at once when times change.

    Each limit of k tasks at once has k slots; in the order of the plan, each task takes the slot that is free first and
    waits for the task that had it before. O(limits * tasks * log tasks).
    """
    pairs: list[tuple[int, int]] = []
    for limit in () if problem.constraints is None else problem.constraints.limits:
        counted = limit.tasks & limit.hosts[plan.host] & (plan.finish > plan.start)
        if not np.isfinite(limit.at_once) or limit.at_once < 1 or counted.sum() <= limit.at_once:
            continue
        tasks = np.flatnonzero(counted)
        order = tasks[np.lexsort((tasks, plan.finish[tasks], plan.start[tasks]))].tolist()
        slots = [(0.0, -1)] * int(limit.at_once)
        for task in order:
            _, before = heapreplace(slots, (float(plan.finish[task]), task))
            if before >= 0:
                pairs.append((before, task))
    return np.array(pairs, np.int32).reshape(-1, 2)


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
