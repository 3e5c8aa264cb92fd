"""Max-min: place the ready task with the largest best completion time next."""

from __future__ import annotations

from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import MAXMIN


class MaxMin:
    """H2: the ready task whose earliest completion time is largest goes to the host where it completes first.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.

    >>> from headrace.testing import random_platform, random_program
    >>> MaxMin().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'maxmin'
    """

    name = "maxmin"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    @obeys
    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, MAXMIN, by_usage=self.by_usage)
