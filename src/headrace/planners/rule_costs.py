"""What each rule costs: the makespan with all rules, and without that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Planner, Problem
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan

BUDGET = 60.0
"""Seconds for the costs of all rules together."""


@dataclass(frozen=True, slots=True)
class RuleCost:
    """The price of one rule."""

    without: float | None
    """Makespan of the same scheduler's plan without the rule; None: not known."""
    reason: str = ""
    """Why it is not known."""


def rule_costs(
    planner: Planner,
    problem: Problem,
    plan: Plan,
    *,
    budget: float = BUDGET,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, RuleCost]:
    """Plan again without each rule in turn, by the same planner.

    Each such plan takes about as long as the plan itself. A rule whose turn comes when there is not that much left of
    the budget has no cost. Planners that only obey constraints make the same plan without a preference.

    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.planners.timed import plan_with_bound
    >>> from headrace.rules.parser import parse_rules
    >>> from headrace.testing import random_platform, random_program
    >>> rules = parse_rules('slow: assert relationship requirement ((select task-assigned-proc-id from task) = 3)')
    >>> problem = Problem(random_program(1).graph, random_platform(1), rules=rules)
    >>> plan = plan_with_bound(Heft(), problem)
    >>> rule_costs(Heft(), problem, plan)["slow"].without < plan.makespan
    True
    """
    assert problem.rules is not None
    judges = getattr(planner, "takes_rules", False)
    until = work_clock() + budget
    costs: dict[str, RuleCost] = {}
    for rule in problem.rules.rules:
        if rule.importance == "preference" and not judges:
            costs[rule.name] = RuleCost(plan.makespan)
        elif work_clock() + plan.seconds > until:
            costs[rule.name] = RuleCost(None, f"skipped after {budget:g} s")
        else:
            tell(f"planning without {rule.name}")
            costs[rule.name] = _without(planner, problem, rule.name, plan if judges else None)
    return costs


def _without(planner: Planner, problem: Problem, name: str, known: Plan | None) -> RuleCost:
    """Plan without a rule. A known plan that is better by the other rules is what a perfect search would find."""
    from headrace.planners.ruled import Judge, better
    from headrace.planners.timed import plan_with_bound

    assert problem.rules is not None
    left = problem.rules.without(name)
    try:
        plan = plan_with_bound(planner, replace(problem, rules=left if len(left) else None))
    except NoPlan:
        return RuleCost(None, "no plan without it")
    judge = Judge(problem, left)
    if known is not None and better(judge.key(known), judge.key(plan)):
        return RuleCost(known.makespan)
    return RuleCost(plan.makespan)
