"""Simulated runs under rules: the scheduler obeys the compiled requirements, and what happened is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.arrays.levels import compiled_order_and_level
from headrace.core.replan import Replan
from headrace.core.scheduler import Problem, Scheduler
from headrace.model.constraints import Constraints, bound_graph
from headrace.model.errors import BadProgram, NoPlan, UsageError
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.online.adapter import obeying
from headrace.planners.clashing import clash_of
from headrace.planners.ruled import Judge, binds, require_kept
from headrace.planners.timed import plan_with_bound

if TYPE_CHECKING:
    from headrace.model.platform import Platform
    from headrace.rules.tree import RuleSet


def run_constraints(rules: RuleSet, graph: Graph, platform: Platform) -> Constraints | None:
    """What a scheduler of a run must obey so that the rules hold; None: nothing."""
    compiled = Judge(Problem(graph, platform), rules).compiled
    for constraints in (compiled.sufficient, compiled.implied):
        try:
            bound_graph(graph, constraints, compiled_order_and_level)
        except BadProgram:  # what is stronger than the rules can be impossible where they are not
            continue
        return constraints if binds(constraints) else None
    raise NoPlan(
        "the rules ask for an order in which tasks wait for each other in a circle", where=rules.source
    )


def under_rules(
    scheduler: Scheduler, problem: Problem, *, plan_first: bool = True, judged: bool = False
) -> tuple[Scheduler, Graph]:
    """A scheduler that obeys the rules of a problem, and the graph to run it on.

    A planner makes a plan that keeps the requirements before the run; plans made during the run, and schedulers that
    decide while it runs, obey the requirements that can be compiled.

    Args:
        scheduler: The scheduler.
        problem: With the rules.
        plan_first: Make the first plan of a planner now.
        judged: What it decides is judged before it is used, so it may try rules that it cannot obey.

    Raises:
        NoPlan: No plan that keeps the requirements is found.
        UsageError: The scheduler does not know constraints, or decides during the run and cannot obey a requirement.
    """
    assert problem.rules is not None
    if not (judged or isinstance(scheduler, Replan)):
        _require_obedient(scheduler, problem)
    constraints = run_constraints(problem.rules, problem.graph, problem.platform)
    graph = (
        problem.graph
        if constraints is None
        else bound_graph(problem.graph, constraints, compiled_order_and_level)
    )
    obeying(scheduler, constraints)
    if plan_first and isinstance(scheduler, Replan):
        scheduler.first = replace(plan_with_bound(scheduler.planner, problem), graph=graph)
    return scheduler, graph


def _require_obedient(scheduler: Scheduler, problem: Problem) -> None:
    """Refuse requirements that cannot be compiled: a scheduler that decides during the run knows no others."""
    others = Judge.of(problem).compiled.names("other")
    if others and problem.rules is not None:
        rule = next(rule for rule in problem.rules.requirements if rule.name == others[0])
        raise UsageError(
            f"{scheduler.name} decides during the run and cannot obey {rule.name} (line {rule.line})",
            where=problem.rules.source,
            hint="use a planner, such as auto or best, or make the rule a preference",
        )


def like_bound(real: Graph, bound: Graph) -> Graph:
    """The graph with real run times and sizes, with the order, releases and deadlines of the bound graph."""
    if real.n_items == bound.n_items:
        return replace(real, release=bound.release, deadline=bound.deadline)
    signals = bound.n_items - real.n_items
    size = np.concatenate((np.where(real.unknown_size, np.nan, real.size), np.zeros(signals)))
    return bound.with_work(real.work).with_size(size.tolist())


def plan_online(problem: Problem, scheduler: Scheduler) -> Plan:
    """The schedule that a scheduler produces when nothing changes, as a plan that keeps the requirements.

    Raises:
        NoPlan: It breaks a requirement.
    """
    from headrace.simulator.events.backend import simulate_scheduler

    assert problem.rules is not None
    try:
        scheduler, graph = under_rules(scheduler, problem, judged=True)
        run = simulate_scheduler(graph, problem.platform, scheduler)
    except NoPlan as error:
        raise clash_of(problem, problem.rules) or error from None
    made = without_signals(run.executed, problem.graph)
    require_kept(Judge.of(problem), made, scheduler.name)
    return made


def without_signals(plan: Plan, graph: Graph) -> Plan:
    """The plan of a bound graph for the graph that it was made from."""
    real = plan.move_item < graph.n_items
    if real.all():
        return replace(plan, graph=graph)
    moves = {name: getattr(plan, name)[np.flatnonzero(real)] for name in _MOVES}
    return replace(plan, graph=graph, **moves)


_MOVES = ("move_item", "move_source", "move_target", "move_start", "move_finish")
