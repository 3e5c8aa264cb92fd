"""Sufferage II: place the ready task with the fewest good clusters next."""

from __future__ import annotations

from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import FEWEST_CLUSTERS


class SufferageTwo:
    """H9: fewest clusters before the first large gap (see H4), then the larger gap, then the lower task number.

    On a single site, hosts are compared as in H3.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.

    >>> from headrace.testing import random_platform, random_program
    >>> SufferageTwo().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'sufferage2'
    """

    name = "sufferage2"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    @obeys
    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, FEWEST_CLUSTERS, by_usage=self.by_usage)
