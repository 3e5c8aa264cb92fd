"""Tasks dealt out to the hosts in turn, blind to speeds and data."""

from __future__ import annotations

import time

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan


class RoundRobin:
    """The i-th task in topological order goes to host i modulo the number of hosts. O(tasks)."""

    name = "round-robin"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        graph = problem.graph
        forced = np.empty(graph.n_tasks, np.int32)
        forced[graph.order] = np.arange(graph.n_tasks) % len(problem.platform.hosts)
        return list_plan(problem, graph.order, self.name, forced, began)
