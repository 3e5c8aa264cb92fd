"""Max-min: of all ready tasks, the one that is complete last even on its best host."""

from __future__ import annotations

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import MAXMIN


class MaxMin:
    """H2: the ready task with the largest best completion time goes to the host that gives it.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; else in the order in which it reads them.
    """

    name = "maxmin"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, MAXMIN, by_usage=self.by_usage)
