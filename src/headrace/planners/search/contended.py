"""Improve a plan where links carry one transfer at a time: annealing over orders and hosts, judged by list passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.list.heft import Heft
from headrace.planners.search.annealing_search import order_of
from headrace.planners.search.contended_moves import Moves
from headrace.planners.search.contended_state import Passes
from headrace.planners.search.restarts import Restarted

_WARM = 0.002
"""Initial temperature as a share of the makespan."""
_RESTARTS = 0.35
"""Share of the time for list schedules from perturbed ranks, of which the best is annealed."""
_LOOK = 16
"""Moves between two looks at the clock."""


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

    Never a worse one. The seconds are counted, not measured, and moves depend only on the seed: the same call gives
    the same plan, unless the clock ends it early.
    """
    restarted = Restarted(problem, Heft().plan(problem), seed)
    restarted.run(_RESTARTS * seconds, lambda: work_clock() > until or stop())
    order = order_of(plan)
    if restarted.order is not None and restarted.plan.makespan <= plan.makespan * (1 + 1e-12):
        if restarted.plan.makespan < plan.makespan * (1 - 1e-12):
            tell(restarted.plan.makespan)
        plan, order = replace(restarted.plan, scheduler=plan.scheduler, notes=plan.notes), restarted.order
    seconds -= restarted.seconds
    search = _Search(problem, plan, order, seed, tell)
    while search.passes.seconds < seconds and np.isfinite(search.best):
        for _ in range(_LOOK):
            search.step(min(1.0, search.passes.seconds / seconds))
        if work_clock() > until or stop():
            break
    return search.plan()


class _Search:
    def __init__(
        self, problem: Problem, plan: Plan, order: Int64s, seed: int, tell: Callable[[float], None]
    ) -> None:
        self.given, self.tell = plan, tell
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
            if found < self.given.makespan:
                self.tell(found)

    def plan(self) -> Plan:
        """The best plan found."""
        if self.best >= self.given.makespan:
            return self.given
        order, host = self.decisions
        self.passes.trial(order, host, 0, np.inf)
        return replace(self.passes.plan(self.given.scheduler), notes=self.given.notes)
