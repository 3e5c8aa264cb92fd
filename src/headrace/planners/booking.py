"""From a problem and decisions about order and hosts to a plan, by the compiled list scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.board import Board, CalendarFull
from headrace.planners.bounds import lower_bound
from headrace.planners.kernels.arrays import Choice
from headrace.planners.problem_arrays import Arrays, arrays_of, choice_of
from headrace.simulator.replay.replay import replay


def list_plan(
    problem: Problem,
    order: Ints,
    name: str,
    forced: Ints | None = None,
    began: float | None = None,
    *,
    choice: Choice | None = None,
) -> Plan:
    """The plan that places tasks in `order`, each on its forced host or where it finishes first.

    `choice` says more about hosts and goals (see `choice_of`), in place of `forced`.
    """
    began = time.perf_counter() if began is None else began
    chosen = choice_of(problem, forced=forced) if choice is None else choice
    plan = booked_plan(problem, name, lambda board: board.place(order, chosen))
    return with_bound(plan, problem, began)


def booked_plan(
    problem: Problem, name: str, place_all: Callable[[Board], None], arrays: Arrays | None = None
) -> Plan:
    """The plan that `place_all` makes on an empty board, as it is carried out; without bound.

    `place_all` runs again on a larger board when there was too little room for bookings.
    """
    arrays = arrays_of(problem) if arrays is None else arrays
    room = 1
    while True:
        board = Board(problem, arrays, room)
        try:
            place_all(board)
        except CalendarFull:
            room *= 2
        else:
            return carried_out(board.plan(name), problem)


def finished_plan(plan: Plan, problem: Problem, began: float) -> Plan:
    """The plan as it is carried out, with its bound and planning time."""
    return with_bound(carried_out(plan, problem), problem, began)


def carried_out(plan: Plan, problem: Problem) -> Plan:
    """Where links are shared fairly, the times are those of carrying the decisions out: only then do they
    follow the platform's own rule.
    """
    if problem.platform.contention != "fair":
        return plan
    return replay(
        plan, holders=problem.holders, prefetch_depth=problem.ahead, not_before=_not_before(plan, problem)
    )


def _not_before(plan: Plan, problem: Problem) -> Floats:
    """When each task can start at the soonest: its host is free, and inputs that are on their way have arrived."""
    graph = plan.graph
    soonest = np.zeros(graph.n_tasks)
    for host, free in problem.free_at.items():
        soonest[plan.host == host] = free
    place = problem.platform.network.host_place[plan.host]
    for (item, target), arrival in problem.since.items():
        readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]]
        there = readers[place[readers] == target]
        soonest[there] = np.maximum(soonest[there], arrival)
    return soonest


def with_bound(plan: Plan, problem: Problem, began: float) -> Plan:
    """The plan with its bound, if the problem asks for one, and planning time."""
    bound = lower_bound(problem) if problem.bounded else 0.0
    return replace(plan, bound=bound, seconds=time.perf_counter() - began)
