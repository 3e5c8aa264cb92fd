"""HEFT: tasks by upward rank, each to the host where it finishes first, in gaps where one fits."""

from __future__ import annotations

import time

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan
from headrace.planners.costs import mean_costs
from headrace.planners.kernels.ranks import upward_ranks


class Heft:
    """Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002), insertion-based.

    Mean communication is taken over pairs of different hosts. Where links are limited, transfers are booked
    on them in the first common gap. O(tasks + reads) for ranks, then see `list_schedule`.
    """

    name = "heft"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        graph = problem.graph
        cost, latency, seconds = mean_costs(problem)
        rank = upward_ranks(
            graph.order, cost, graph.read_ptr, graph.reads, graph.producer, graph.size, latency, seconds
        )
        position = np.empty(graph.n_tasks, np.int64)
        position[graph.order] = np.arange(graph.n_tasks)
        order = np.lexsort((position, -rank)).astype(np.int32)
        return list_plan(problem, order, self.name, began=began)
