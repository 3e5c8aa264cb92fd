"""Wu and Gajski's order: the task with the longest way to the end next, where it can start first."""

from __future__ import annotations

import time

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan
from headrace.planners.priorities import by_rank, upward
from headrace.planners.problem_arrays import choice_of


class WuGajski:
    """Longest-path order and earliest start (Wu, Gajski 1988), the default order of constraint-based scheduling.

    The path counts run times and non-local communication, both as means over hosts: the algorithm was made
    for equal machines. Hosts where a task can start at the same time are told apart by its finish there.
    O(tasks + reads) for the order, then see `list_schedule`.
    """

    name = "wu-gajski"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        order = by_rank(problem.graph, upward(problem))
        choice = choice_of(problem, by_start=True)
        return list_plan(problem, order, self.name, began=began, choice=choice)
