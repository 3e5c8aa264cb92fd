"""Sufferage: place the ready task next that would lose most without its best host."""

from __future__ import annotations

from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import SUFFERAGE


class Sufferage:
    """H3: the loss is the difference in completion time between the best and the second best host.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.

    >>> from headrace.testing import random_platform, random_program
    >>> Sufferage().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'sufferage'
    """

    name = "sufferage"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    @obeys
    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, SUFFERAGE, by_usage=self.by_usage)
