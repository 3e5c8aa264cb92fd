"""Plans of planners that do not know what tasks need besides cores: the same hosts and order, at times with room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.needs import fit_classes
from headrace.model.plan import Plan
from headrace.planners.constraint_failures import limit_failures


def with_room(problem: Problem, plan: Plan) -> Plan:
    """The plan, if tasks have the memory and resources that they need; else one with its hosts and its order.

    A list pass then finds the times, and other hosts for tasks that do not fit on theirs.
    """
    limits = () if problem.constraints is None else problem.constraints.limits
    broken = (next(limit_failures(problem, limit, plan), None) for limit in limits if limit.need)
    if not problem.graph.needs.names or not (any(broken) or _misplaced(problem, plan)):
        return plan
    from headrace.arrays.problem import problem_arrays
    from headrace.planners.list.host_choice import host_constraints
    from headrace.planners.list.list_scheduler import list_plan
    from headrace.planners.search.annealing_search import order_of

    arrays = problem_arrays(problem)
    fixed = host_constraints(arrays, fixed=plan.host.astype(np.int32))
    made = list_plan(problem, order_of(plan), plan.scheduler, fixed, arrays)
    return replace(made, bound=plan.bound, notes=plan.notes)


def _misplaced(problem: Problem, plan: Plan) -> bool:
    of_task, fits = fit_classes(problem.graph, problem.platform)
    return not bool(fits[of_task, plan.host].all())
