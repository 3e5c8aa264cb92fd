"""HEFT: tasks by upward rank, each on the host where it finishes first, inserted into gaps if possible."""

from __future__ import annotations

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import by_decreasing_rank, mean_costs, upward_rank


class Heft:
    """Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002), insertion-based.

    Mean communication is taken over pairs of different hosts. On limited links, each transfer is booked in the first
    gap common to all links of its route. O(tasks + reads) for ranks, then see `list_schedule`.

    >>> from headrace.testing import random_platform, random_program
    >>> Heft().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'heft'
    """

    name = "heft"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        rank = upward_rank(arrays.tasks, mean_costs(arrays))
        order = by_decreasing_rank(arrays.tasks, rank)
        return list_plan(problem, order, self.name, arrays=arrays)
