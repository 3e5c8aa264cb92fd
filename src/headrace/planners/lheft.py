"""L-HEFT over a known graph: level by level, tasks that need no traffic first and where their data is."""

from __future__ import annotations

import time

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.plan import Plan
from headrace.planners.board import Board
from headrace.planners.booking import booked_plan, with_bound
from headrace.planners.costs import mean_costs
from headrace.planners.locality import rank_ready
from headrace.planners.problem_arrays import choice_of


class LHeft:
    """Localized HEFT (the macro-dataflow paper, sections 4.3 and 4.4), with all levels known in advance.

    A task that some host has all inputs of goes to such a host (if there are several, to the one where it
    finishes first), any other to the host where it finishes first. So the tasks that read from one task only
    all stay with it; moving the tail of a long queue elsewhere is left to the running system.

    O(reads * copies + tasks log tasks) for the ranks, then see `list_schedule`.
    """

    name = "lheft"

    def plan(self, problem: Problem) -> Plan:
        began = time.perf_counter()
        plan = booked_plan(problem, self.name, lambda board: _place_levels(problem, board))
        return with_bound(plan, problem, began)


def _place_levels(problem: Problem, board: Board) -> None:
    graph = problem.graph
    seconds, _, _ = mean_costs(problem)
    choice = choice_of(problem)
    ends = np.cumsum(np.bincount(graph.level, minlength=1))[:-1]
    for ready in np.split(graph.order, ends):  # tasks of one level follow each other in graph.order
        order, stays = rank_ready(board, ready, graph.level[ready], seconds[ready])
        choice.stay[order] = stays
        board.place(order, choice)
