"""A solution of the search under contention, and trials of others: orders and hosts, judged by list passes."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import ProblemArrays, problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.list.host_choice import HostConstraints, host_constraints
from headrace.planners.list.list_scheduler import new_workspace
from headrace.planners.partial_schedule import (
    LINKS_FULL,
    OK,
    Placement,
    empty_schedule,
    plan_of,
    return_results,
)
from headrace.planners.search.busy_chain import busy_chain
from headrace.planners.search.list_pass import least_tails, list_pass, save_first
from headrace.planners.search.saved_states import room_for_states

_STATES = 32
"""States saved in one pass."""
CALL = 60e-6
"""Counted seconds for calling a pass and for making the move that it judges."""


class Passes:
    """Judges orders and hosts by list passes; keeps a current solution.

    Args:
        problem: The problem to plan, without constraints.
        results_wait: Send results to the origin after all inputs are booked, in the gaps.
    """

    def __init__(self, problem: Problem, *, results_wait: bool = False) -> None:
        self.problem = problem
        self.arrays = problem_arrays(problem)
        self.n = problem.graph.n_tasks
        self.results_wait = results_wait and self.arrays.network.origin >= 0
        self._pass_arrays = _without_results(self.arrays) if self.results_wait else self.arrays
        self._results = _returned(problem)
        self.tail = least_tails(self.arrays)
        self.counted = np.zeros(1)
        self._workspace = new_workspace(self.arrays)
        self.plain = host_constraints(self.arrays)
        self.order: Int64s = problem.graph.order.astype(np.int64)
        self.host: Ints = np.zeros(self.n, np.int32)
        self.makespan = np.inf
        self._valid = 1
        """How many of the saved states are those of the current solution."""
        self._make_room(0)
        self._placed = self.schedule.placement

    def _make_room(self, entries: int) -> None:
        self.schedule = empty_schedule(self.arrays, entries)
        self._states = room_for_states(self.schedule, min(_STATES, max(1, self.n // 4)))
        count = len(self._states.cores.used)
        self.block = -(-self.n // count)
        save_first(self._states, self.schedule)
        self._valid = 1

    @property
    def seconds(self) -> float:
        """Work so far in seconds on a machine of ordinary speed: counted, not measured, for reproducibility."""
        return float(self.counted[0])

    def trial(
        self, order: Int64s, host: Ints, first: int, limit: float, choice: HostConstraints | None = None
    ) -> float:
        """The makespan of this order with these hosts, -1 for any; inf if it is above the limit.

        Args:
            order: Equal to the current order before position `first`, as are the hosts of the tasks there.
            host: The host of each task, or -1.
            first: The first position that differs.
            limit: The longest makespan that is wanted.
            choice: How tasks without a host choose it; by default, by their finish.
        """
        self.counted[0] += CALL
        choice = (self.plain if choice is None else choice)._replace(fixed=host)
        now, kept = self.schedule.placement, self._placed
        now.host[:], now.core[:], now.start[:], now.finish[:] = kept
        wanted = min(first // self.block, len(self._states.cores.used) - 1)
        outcome, _ = list_pass(
            self._pass_arrays, self.schedule, self._states, order, self.block, min(wanted, self._valid - 1), wanted,
            choice, self._workspace, self.tail, limit, self.counted,
        )  # fmt: skip
        self._valid = max(self._valid, wanted + 1)
        if outcome == OK and self.results_wait:
            outcome = self._return_results()
        if outcome == LINKS_FULL:
            self._make_room(2 * len(self.schedule.links.start))
            return self.trial(order, host, 0, limit, choice)
        if outcome != OK:
            return np.inf
        found = self._ends()
        return found if found <= limit else np.inf

    def skip(self) -> None:
        """Count a move that changes nothing."""
        self.counted[0] += CALL

    def _ends(self) -> float:
        moves = self.schedule.transfers.finish[: self.schedule.transfers.used[0]]
        return max(float(self.schedule.placement.finish.max()), float(moves.max(initial=0.0)))

    def _return_results(self) -> int:
        """Send the results of the schedule to the origin, in the order in which they are made; the outcome."""
        finish = self.schedule.placement.finish[self.problem.graph.producer[self._results]]
        items = self._results[np.lexsort((self._results, finish))]
        outcome, _ = return_results(self.arrays, self.schedule, items)
        return int(outcome)

    def accept(self, order: Int64s, first: int, makespan: float) -> None:
        """Make the last trial the current solution."""
        self.order = order
        self.host = self.schedule.placement.host.copy()
        self.makespan = makespan
        self._placed = _copied(self.schedule.placement)
        self._valid = min(self._valid, first // self.block + 1)

    def chain(self) -> Int64s:
        """The tasks on a critical chain of the last trial, and those that wait for transfers on it."""
        return busy_chain(self.arrays, self.schedule)

    def plan(self, name: str) -> Plan:
        """The last trial as a plan."""
        schedule = self.schedule
        kept = schedule._replace(
            placement=_copied(schedule.placement),
            transfers=schedule.transfers._replace(
                item=schedule.transfers.item.copy(),
                source=schedule.transfers.source.copy(),
                target=schedule.transfers.target.copy(),
                start=schedule.transfers.start.copy(),
                finish=schedule.transfers.finish.copy(),
            ),
        )
        return plan_of(self.problem, kept, name)


def _copied(placement: Placement) -> Placement:
    return Placement(
        placement.host.copy(), placement.core.copy(), placement.start.copy(), placement.finish.copy()
    )


def _without_results(arrays: ProblemArrays) -> ProblemArrays:
    return arrays._replace(tasks=arrays.tasks._replace(result=np.zeros_like(arrays.tasks.result)))


def _returned(problem: Problem) -> Int64s:
    graph = problem.graph
    return np.flatnonzero(graph.result & (graph.producer != OUTSIDE) & (graph.size > 0)).astype(np.int64)


def link_use(plan: Plan) -> Floats:
    """[zones, zones] the share of the makespan for which the busiest link between two zones is busy."""
    from headrace.simulator.replay.dependencies import link_uses

    network, uses = plan.platform.network, link_uses(plan)
    busy = np.bincount(uses.link, uses.seconds, minlength=network.n_links) / max(plan.makespan, 1e-300)
    zones = len(network.route_bandwidth)
    use = np.zeros((zones, zones))
    for a in range(zones):
        for b in range(zones):
            between = network.route_links[
                network.route_ptr[a * zones + b] : network.route_ptr[a * zones + b + 1]
            ]
            use[a, b] = busy[between].max(initial=0.0)
    return use
