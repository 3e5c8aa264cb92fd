"""Wu and Gajski's order: the task with the longest path to the end next, on the host where it can start first."""

from __future__ import annotations

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import by_decreasing_rank, mean_costs, upward_rank


class WuGajski:
    """Longest-path order and earliest start (Wu, Gajski 1988), the default order of constraint-based scheduling.

    The path length includes run times and non-local communication, both as means over hosts, because the algorithm was
    designed for identical machines. Ties between hosts with the same start are broken by the finish. O(tasks + reads)
    for the order, then see `list_schedule`.

    >>> from headrace.testing import random_platform, random_program
    >>> WuGajski().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'wu-gajski'
    """

    name = "wu-gajski"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        order = by_decreasing_rank(arrays.tasks, upward_rank(arrays.tasks, mean_costs(arrays)))
        return list_plan(problem, order, self.name, host_constraints(arrays, earliest_start=True), arrays)
