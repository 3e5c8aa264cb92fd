"""CPOP: the critical path on one host, everything else where it finishes first."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.planners.booking import booked_plan, with_bound
from headrace.planners.costs import mean_costs
from headrace.planners.kernels.ranks import downward_ranks, upward_ranks
from headrace.planners.priorities import from_ready_queue
from headrace.planners.problem_arrays import arrays_of, choice_of


class Cpop:
    """Critical Path On a Processor (Topcuoglu, Hariri, Wu 2002), insertion-based.

    The priority of a task is the length of the longest path through it; the ready task of highest priority
    goes next. One critical path goes to the host that runs its tasks in the least time (ties: the lower
    host), the other tasks where they finish first. Where transfers take long, binding a path to one host
    often costs more than it saves: unless `always_bind`, which is the algorithm as published, the same order
    is also planned with no task bound and the shorter of the two plans is kept; its notes say which.
    O((tasks + reads) log tasks + tasks * hosts), then `list_schedule` once or twice.
    """

    name = "cpop"

    def __init__(self, always_bind: bool = False) -> None:
        self.always_bind = always_bind

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        order, path = _order_and_critical_path(problem)
        forced = np.full(problem.graph.n_tasks, -1, np.int32)
        forced[path] = _quickest_host(problem, path)
        arrays = arrays_of(problem)
        bound, free = choice_of(problem, forced=forced), choice_of(problem)
        best = booked_plan(problem, self.name, lambda board: board.place(order, bound), arrays)
        if not self.always_bind:
            other = booked_plan(problem, self.name, lambda board: board.place(order, free), arrays)
            if other.makespan < best.makespan:
                note = f"the critical path is not kept on one host: that would take {best.makespan:.6g} s"
                best = replace(other, notes=(*other.notes, note))
        return with_bound(best, problem, began)


def _order_and_critical_path(problem: Problem) -> tuple[Ints, list[int]]:
    """Tasks by the longest path through each, on average machines, and one path that is longest of all."""
    graph = problem.graph
    cost, latency, seconds = mean_costs(problem)
    edges = (graph.read_ptr, graph.reads, graph.producer, graph.size)
    up = upward_ranks(graph.order, cost, *edges, latency, seconds)
    down, before = downward_ranks(graph.order, cost, *edges, latency, seconds)
    return from_ready_queue(graph, up + down), _critical_path(graph, down + cost, before)


def _critical_path(graph: Graph, ends: Floats, before: Ints) -> list[int]:
    """One longest path, from its end back: `ends` are the lengths up to the end of each task. O(tasks)."""
    if graph.n_tasks == 0:
        return []
    task = int(graph.order[np.argmax(ends[graph.order])])
    path = [task]
    while before[task] >= 0:
        task = int(before[task])
        path.append(task)
    return path


def _quickest_host(problem: Problem, path: list[int]) -> int:
    graph = problem.graph
    work = np.bincount(graph.kind[path], weights=graph.work[path], minlength=len(graph.kinds))
    return int(np.argmin(work @ (1.0 / problem.platform.rates(graph.kinds))))
