"""Workqueue: the next task to the host that is free first, without estimates."""

from __future__ import annotations

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.batch import workqueue_plan


class Workqueue:
    """H0: tasks in topological order, ties by number, each to the host that is free first.

    Run times and transfers count only in so far as they decide when hosts are free. O(tasks * hosts).
    """

    name = "workqueue"

    def plan(self, problem: Problem) -> Plan:
        return workqueue_plan(problem, self.name)
