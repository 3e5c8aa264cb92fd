"""Planning time and proven lower bound, added to the plan of any planner."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Planner, Problem
from headrace.model.bound import Effort
from headrace.model.plan import Plan
from headrace.model.user_code import is_users, user_code
from headrace.planners.bounds import bound_of
from headrace.planners.obeying import plan_obeying


def plan_with_bound(planner: Planner, problem: Problem, effort: Effort = "quick") -> Plan:
    """Plan, and add the planning time and a proven lower bound.

    A bound that the planner itself proves, as `coschedule` does, is kept, unless this one is better. The plan
    satisfies the problem's constraints and keeps the requirements of its rules, whatever planner it is, or NoPlan is
    raised.

    Args:
        planner: Any planner.
        problem: The problem to plan.
        effort: Of the bound, `quick` or `full`.

    Returns:
        The planner's plan with `bound` and `seconds` set.

    Raises:
        UsageError: There is no such effort.

    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.testing import random_platform, random_program
    >>> plan = plan_with_bound(Heft(), Problem(random_program(1).graph, random_platform(1)))
    >>> 0 < plan.bound <= plan.makespan and plan.seconds > 0
    True
    """
    ruled = problem.rules is not None and len(problem.rules) > 0
    if ruled:  # loading code is not planning
        from headrace.planners.list import constrained_schedule  # noqa: F401
        from headrace.planners.ruled import plan_with_rules
    began = work_clock()
    with user_code(f"the planner {planner.name!r}") if is_users(planner) else nullcontext():
        if ruled:
            plan = plan_with_rules(planner, problem)
        elif problem.constraints is not None:
            plan = plan_obeying(planner.plan, problem, planner.name)
        else:
            plan = planner.plan(problem)
        if not isinstance(plan, Plan):
            raise TypeError(f"plan() returned {plan!r:.80}, not a Plan")
    seconds = work_clock() - began
    bound = plan.bound
    if bound < plan.makespan:
        bound = max(bound, bound_of(problem, effort, plan.makespan))
    return replace(plan, bound=bound, seconds=seconds)
