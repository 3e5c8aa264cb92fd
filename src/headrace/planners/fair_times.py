"""Times of plans where links are shared fairly: only a simulation can tell them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.arrays.levels import compiled_order_and_level
from headrace.core.scheduler import Problem
from headrace.model.constraints import with_order
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.model.turns import turns_of
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

    Those that follow from what tasks need are a matter of the replay. O(limits * tasks * log tasks).
    """
    limits = () if problem.constraints is None else problem.constraints.limits
    timed = [limit for limit in limits if 1 <= limit.at_once < np.inf and not limit.need]
    turns = [turns_of(limit, plan) for limit in timed]
    return np.concatenate([np.empty((0, 2), np.int32), *turns])


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
