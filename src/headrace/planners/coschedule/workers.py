"""Searches that run side by side, each with its own list scheduler, one for each of two cores.

Every worker does the same number of trials before their results are compared, in the order of the workers: what is
found does not depend on which of them is faster.
"""

from __future__ import annotations

from headrace.planners.coschedule.dispatching import Dispatcher
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler
from headrace.planners.coschedule.local_search import Search
from headrace.planners.coschedule.lp import Relaxer

WORKERS = 2
"""Number of searches side by side."""
BEHIND = 2e-3
"""A worker goes on from the best plan of all workers if its own is longer by more than this share."""


class SearchWorker:
    """A list scheduler with a dispatcher and a local search of its own; worker 0 follows the best plan at once."""

    def __init__(self, number: int, instance: Instance, workers: int) -> None:
        self.number = number
        self.scheduler = ListScheduler(instance)
        self.dispatcher = Dispatcher(self.scheduler, instance.problem.seed, number, workers)
        self.search: Search | None = None

    def know(self, relaxer: Relaxer) -> None:
        """Tell the dispatcher of a relaxation; workers after the first solve it on their own."""
        if self.number and not self.dispatcher.informed:
            relaxer = Relaxer(relaxer.instance)
            relaxer.solve()
        self.dispatcher.know(relaxer)

    def follow(self, decisions: Decisions | None, value: float) -> None:
        """Go on from other decisions if they are better, by more than a little in workers after the first."""
        slack = BEHIND if self.number else 1e-12
        if decisions is not None and (self.search is None or value < self.search.value * (1 - slack)):
            seed = self.scheduler.instance.problem.seed + self.number
            self.search = Search(self.scheduler, decisions, seed, costs=self.dispatcher.costs)
