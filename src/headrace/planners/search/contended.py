"""Improve a plan where links carry one transfer at a time: annealing over orders and hosts, judged by list passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from headrace.arrays import Int64s
from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.list.heft import Heft
from headrace.planners.search.annealing_search import order_of
from headrace.planners.search.contended_moves import Moves
from headrace.planners.search.contended_state import Passes
from headrace.planners.search.restarts import Restarted
from headrace.planners.side_by_side import Ends, searches_side_by_side

_WARM = 0.002
"""Initial temperature as a share of the makespan."""
_RESTARTS = 0.35
"""Share of the time for list schedules from perturbed ranks, of which the best is annealed."""
_LOOK = 16
"""Moves between two looks at the clock."""
_STAGE, _STAGES = 0.5, 8
"""The longest time and least number of stages after which the best plan is told, and passed on between searches."""
_BEHIND = 2e-3
"""A search goes on from the best plan of all if its own is longer by more than this share."""


def contended(
    problem: Problem,
    plan: Plan,
    seconds: float,
    seed: int,
    until: float,
    tell: Callable[[float], None],
    stop: Callable[[], bool],
) -> Plan:
    """The best plan found from `plan` in `seconds` of moves, or until the clock reaches `until` or `stop` says so.

    Never a worse one. Two searches with different seeds run side by side if there are two cores. The seconds are
    counted for each of them, not measured, and moves depend only on the seed: the same call gives the same plan, unless
    the clock ends it early.
    """
    ends, count = Ends(until, stop), searches_side_by_side()
    given = Heft().plan(problem)
    restarted = [Restarted(problem, given, seed + k) for k in range(count)]
    ends.side_by_side([partial(found.run, _RESTARTS * seconds) for found in restarted])
    starts = [_start(plan, found) for found in restarted]
    best = min(start[0].makespan for start in starts)
    if best < plan.makespan * (1 - 1e-12):
        tell(best)
    left = seconds - max(found.seconds for found in restarted)
    del restarted
    if left <= 0:
        return min((start for start, _ in starts), key=lambda start: start.makespan)
    searches = [_Search(problem, *starts[k], seed + k) for k in range(count)]
    stages = max(_STAGES, math.ceil(left / _STAGE))
    for stage in range(1, stages + 1):
        if ends.asked():
            break
        ends.side_by_side([partial(search.run, left, stage / stages) for search in searches])
        leader = min(searches, key=lambda search: search.best)
        if leader.best < best * (1 - 1e-12):
            best = leader.best
            tell(best)
        for search in searches:
            search.follow(leader)
    return min((search.plan() for search in searches), key=lambda found: found.makespan)


def _start(plan: Plan, restarted: Restarted) -> tuple[Plan, Int64s]:
    """The better one of two plans, with its order."""
    if restarted.order is None or restarted.plan.makespan > plan.makespan * (1 + 1e-12):
        return plan, order_of(plan)
    return replace(restarted.plan, scheduler=plan.scheduler, notes=plan.notes), restarted.order


class _Search:
    """Annealing from a plan."""

    def __init__(self, problem: Problem, plan: Plan, order: Int64s, seed: int) -> None:
        self.given = plan
        host = plan.host.astype(np.int32)
        both = [Passes(problem, results_wait=waits) for waits in (False, True)]
        found = [passes.trial(order, host, 0, np.inf) for passes in both]
        self.passes = both[int(np.argmin(found))]
        self.best, self.decisions = min(found), (order, host)
        """The least makespan of all trials and its decisions; inf if the plan needs relays that passes do
        not make."""
        self.passes.accept(order, 0, self.best)
        self.moves = Moves(problem, self.passes, seed)
        self.moves.note_current()

    def run(self, seconds: float, share: float, stop: Callable[[], bool]) -> None:
        """Make moves until this share of all seconds is counted, or until `stop` says so."""
        while self.passes.seconds < share * seconds and np.isfinite(self.best):
            for _ in range(_LOOK):
                self.step(min(1.0, self.passes.seconds / seconds))
            if stop():
                return

    def follow(self, leader: _Search) -> None:
        """Go on from the best solution of another search, if it is clearly better, also by the passes here."""
        if leader.best >= self.best * (1 - _BEHIND):
            return
        order, host = leader.decisions
        found = self.passes.trial(order, host, 0, self.best)
        if found < self.best:
            self.best, self.decisions = found, leader.decisions
            self.passes.accept(order, 0, found)
            self.moves.note_current()

    def step(self, progress: float) -> None:
        """Make one move, and accept it if the plan is not much longer."""
        random, passes = self.moves.random, self.passes
        move = random.choice(self.moves.kinds)()
        if move is None:
            passes.skip()
            return
        warmth = _WARM * (1.0 - progress) ** 2
        limit = passes.makespan + warmth * self.best * random.expovariate(1.0)
        found = passes.trial(move.order, move.host, move.first, limit)
        if found > limit:
            return
        passes.accept(move.order, move.first, found)
        self.moves.note_current()
        if found < self.best * (1 - 1e-12):
            self.best, self.decisions = found, (passes.order, passes.host)

    def plan(self) -> Plan:
        """The best plan found."""
        if self.best >= self.given.makespan:
            return self.given
        order, host = self.decisions
        self.passes.trial(order, host, 0, np.inf)
        return replace(self.passes.plan(self.given.scheduler), notes=self.given.notes)
