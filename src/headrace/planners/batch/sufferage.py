"""Sufferage: the ready task that loses most if it does not get its best host."""

from __future__ import annotations

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import SUFFERAGE


class Sufferage:
    """H3: the loss is the difference between the best and the second best host.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; else in the order in which it reads them.
    """

    name = "sufferage"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, SUFFERAGE, by_usage=self.by_usage)
