"""CPOP: the critical path on one host, everything else where it finishes first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.arrays.problem import ProblemArrays, TaskArrays, problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import downward_rank, mean_costs, ready_queue_order, upward_rank


class Cpop:
    """Critical Path On a Processor (Topcuoglu, Hariri, Wu 2002), insertion-based.

    The priority of a task is the length of the longest path through it; the ready task of highest priority is placed
    next. One critical path goes to the host that runs its tasks in the least time (ties: the lower host number), the
    other tasks go where they finish first. If transfers are slow, binding a path to one host often costs more than it
    saves; therefore the same order is also planned without binding, and the shorter of the two plans is kept, as its
    notes state. O((tasks + reads) log tasks + tasks * hosts), then `list_schedule` once or twice.

    Args:
        always_bind: Always keep the critical path on one host, as published.

    >>> from headrace.testing import random_platform, random_program
    >>> Cpop().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'cpop'
    """

    name = "cpop"

    def __init__(self, always_bind: bool = False) -> None:
        self.always_bind = always_bind

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        order, path = _order_and_critical_path(arrays)
        fixed = np.full(len(order), -1, np.int32)
        fixed[path] = _quickest_host(arrays, path)
        best = list_plan(problem, order, self.name, host_constraints(arrays, fixed=fixed), arrays)
        if not self.always_bind:
            other = list_plan(problem, order, self.name, arrays=arrays)
            if other.makespan < best.makespan:
                note = f"the critical path is not kept on one host: that would take {best.makespan:.6g} s"
                best = replace(other, notes=(*other.notes, note))
        return best


def _order_and_critical_path(problem: ProblemArrays) -> tuple[Ints, list[int]]:
    """Tasks ordered by the longest path through each, on average hosts, and one critical path."""
    costs = mean_costs(problem)
    up = upward_rank(problem.tasks, costs)
    down, before = downward_rank(problem.tasks, costs)
    path = _critical_path(problem.tasks, down + costs.run_seconds, before)
    return ready_queue_order(problem.tasks, up + down), path


def _critical_path(tasks: TaskArrays, ends: Floats, before: Ints) -> list[int]:
    """One longest path, traced back from its end; `ends` are the path lengths to the end of each task. O(tasks)."""
    if not len(ends):
        return []
    task = int(tasks.order[np.argmax(ends[tasks.order])])
    path = [task]
    while before[task] >= 0:
        task = int(before[task])
        path.append(task)
    return path


def _quickest_host(problem: ProblemArrays, path: list[int]) -> int:
    tasks, rate = problem.tasks, problem.hosts.rate
    work = np.bincount(tasks.speed_class[path], weights=tasks.work[path], minlength=len(rate))
    return int(np.argmin(work @ (1.0 / rate)))
