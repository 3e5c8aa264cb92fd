"""Randomized batch heuristics: the next task is drawn among those that are close to the best."""

from __future__ import annotations

from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import UsageError
from headrace.model.plan import Plan
from headrace.planners.batch.batch_planner import batch_plan
from headrace.planners.batch.records import CLUSTER_SUFFERAGE, MAXMIN, MINMIN, SUFFERAGE


class Randomized:
    """The next task is drawn uniformly, with the problem's seed, among those that are close to the best.

    Complexity: see `batch_schedule`.

    Args:
        tolerance: A task is close if its value is within this share of the best value (at least 0, below 1). With the
            default only ties are drawn; with 0.05 different seeds give different plans.
        by_usage: Send a task's most used inputs first; otherwise in the order in which it reads them.
    """

    name = ""
    rule = MINMIN

    def __init__(self, tolerance: float = 1e-9, by_usage: bool = True) -> None:
        self.tolerance = tolerance
        self.by_usage = by_usage

    @obeys
    def plan(self, problem: Problem) -> Plan:
        if not 0.0 <= self.tolerance < 1.0:
            raise UsageError(
                f"tolerance is {self.tolerance}",
                where=self.name,
                hint="use a share of at least 0 and below 1, such as 1e-9",
            )
        return batch_plan(problem, self.name, self.rule, tolerance=self.tolerance, by_usage=self.by_usage)


class RandomMinMin(Randomized):
    """H5."""

    name = "random-minmin"
    rule = MINMIN


class RandomMaxMin(Randomized):
    """H6."""

    name = "random-maxmin"
    rule = MAXMIN


class RandomSufferage(Randomized):
    """H7."""

    name = "random-sufferage"
    rule = SUFFERAGE


class RandomExtendedSufferage(Randomized):
    """H8."""

    name = "random-xsufferage"
    rule = CLUSTER_SUFFERAGE
