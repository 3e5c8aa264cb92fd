"""Extended Sufferage: place the ready task next that would lose most without one of its good clusters."""

from __future__ import annotations

from headrace.core.scheduler import Problem, obeys
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import CLUSTER_SUFFERAGE


class ExtendedSufferage:
    """H4: the loss is the height of the first large gap in the sorted completion times of clusters.

    A cluster is a site. A gap is large if it exceeds the mean gap plus one standard deviation; if none does, the first
    gap is used. On a single site, hosts are compared as in H3.

    Complexity: see `batch_schedule`.

    Args:
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.

    >>> from headrace.testing import random_platform, random_program
    >>> ExtendedSufferage().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'xsufferage'
    """

    name = "xsufferage"

    def __init__(self, by_usage: bool = True) -> None:
        self.by_usage = by_usage

    @obeys
    def plan(self, problem: Problem) -> Plan:
        return batch_plan(problem, self.name, CLUSTER_SUFFERAGE, by_usage=self.by_usage)
