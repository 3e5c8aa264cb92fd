"""Everything on one host: the plan every other one must beat."""

from __future__ import annotations

import time

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.booking import list_plan


class SingleHost:
    """All tasks on the host that does them in the least time, all its cores used.

    Hosts are compared by work / (speed * cores); ties: the lower number. O(tasks * hosts).
    """

    name = "single-host"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        graph, hosts = problem.graph, problem.platform.hosts
        work = np.bincount(graph.kind, weights=graph.work, minlength=len(graph.kinds))
        seconds = (work[:, None] / problem.platform.rates(graph.kinds)).sum(axis=0)
        seconds /= np.array([h.cores for h in hosts])
        forced = np.full(graph.n_tasks, int(np.argmin(seconds)), np.int32)
        return list_plan(problem, graph.order, self.name, forced, began)
