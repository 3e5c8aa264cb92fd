"""HEFT: tasks by upward rank, each to the host where it finishes first, in gaps where one fits."""

from __future__ import annotations

import time

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan
from headrace.planners.priorities import by_rank, upward


class Heft:
    """Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002), insertion-based.

    Mean communication is taken over pairs of different hosts. Where links are limited, transfers are booked
    on them in the first common gap. O(tasks + reads) for ranks, then see `list_schedule`.
    """

    name = "heft"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        order = by_rank(problem.graph, upward(problem))
        return list_plan(problem, order, self.name, began=began)
