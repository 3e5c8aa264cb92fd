"""Whether a plan keeps every restriction of a problem, also of one that begins in the middle of a run."""

from __future__ import annotations

from dataclasses import replace

from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.plan import Plan
from headrace.model.sited import SiteLists
from headrace.planners.fair_times import as_executed

_REPEATS = 3
"""Number of times that a plan is carried out again to find times that are kept."""


def is_valid(plan: Plan, problem: Problem) -> bool:
    """Whether `check` accepts the plan, with each item from outside where the problem has it: O(plan log plan)."""
    graph = problem.graph
    if problem.holders:
        names = problem.platform.network.place_names
        at = {
            item: [names[p] for p in places]
            for item, places in problem.holders.items()
            if places and graph.producer[item] < 0
        }
        graph = replace(graph, initial_locations=SiteLists.of_items(at, graph.n_items))
    return not check(graph, plan.platform, replace(plan, graph=graph, bound=0.0), limit=1)


def with_executed_times(plan: Plan, problem: Problem) -> Plan:
    """The plan with the times of its execution if links are shared fairly and transfers start as early as possible.

    If these times would violate a constraint, or would not be kept when they are carried out in turn because disks
    are then taken up in another order, they are unchanged, and transfers take turns on each link.
    """
    eager = as_executed(plan, problem)
    for _ in range(_REPEATS):
        if eager is plan:
            return plan
        again = as_executed(eager, problem)
        if again.makespan <= eager.makespan * (1 + 1e-9) and is_valid(eager, problem):
            return eager
        eager = again
    return replace(plan, in_turn=True)
