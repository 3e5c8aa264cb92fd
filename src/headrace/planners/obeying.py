"""Planners under constraints: the one place that decides how a planner obeys, and what happens if it cannot.

- Order, releases and deadlines go into the graph. Every planner obeys the order. Planners that place tasks one after
  another obey releases; if a deadline is missed, list planners try again by latest start.
- Constraints on hosts are obeyed while tasks are placed (`constraint_state`). If a planner ends up with no host for a
  task, an exact model chooses hosts for all tasks that can get into such a corner (`host_assignment`), and the planner
  is called again with these. So it fails for the hosts of tasks only if no assignment exists.
- Memory and resources that tasks need are limits on what runs at once. A plan of a planner that does not know these is
  made again with its hosts and its order (`need_room`).
- Every plan is verified. A planner that does not obey a constraint, or misses a deadline, raises NoPlan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.arrays.levels import compiled_order_and_level
from headrace.core.scheduler import Problem, undecorated
from headrace.model.constraints import Constraints, bound_graph, placement_only, with_order
from headrace.model.errors import BadProgram, NoPlan
from headrace.model.graph import Bools, Ints
from headrace.model.needs import require_fitting
from headrace.model.plan import Plan
from headrace.model.turns import turns_of
from headrace.planners.constraint_failures import DeadEnd, failures
from headrace.planners.constraint_units import units_of
from headrace.planners.need_room import with_room

_OTHERS = ("cpop", "peft", "locality", "single-host")
"""Planners besides HEFT whose plans can decide on groups and limits,"""
_MOST_TRIED = 2e6
"""for so many tasks times hosts."""


def plan_obeying(plan: Callable[[Problem], Plan], problem: Problem, name: str) -> Plan:
    """Call a function that plans, so that its plan satisfies the problem's constraints.

    Args:
        plan: Called with the problem whose graph has the order, releases and deadlines of the constraints; a second
            time, with hosts chosen for some tasks, if it raises DeadEnd.
        problem: A problem with constraints.
        name: The planner's name, for errors.

    Returns:
        The plan, for the graph of `problem`.

    Raises:
        NoPlan: No plan can satisfy the constraints, or this planner does not find one; the error says which.
    """
    bound, plan = bound_problem(problem), undecorated(plan)
    try:
        made = plan(bound)
    except DeadEnd as corner:
        from headrace.planners.host_assignment import assigned_hosts

        try:
            made = plan(narrowed(bound, assigned_hosts(bound, corner.task)))
        except DeadEnd as error:
            raise _refused(bound, name, error.problem) from error
    made = with_room(bound, made)
    for failure in failures(bound, made):
        raise _refused(bound, name, failure)
    return replace(made, graph=problem.graph)


def bound_problem(problem: Problem) -> Problem:
    """The problem with order, releases and deadlines in its graph, and only constraints on hosts left.

    Raises:
        NoPlan: Tasks would wait for each other in a circle, a task has no allowed host, or tasks that must be together
            must be apart.
    """
    constraints, graph, platform = problem.constraints, problem.graph, problem.platform
    assert constraints is not None
    try:
        bound = bound_graph(graph, constraints, compiled_order_and_level)
    except BadProgram as circle:
        raise NoPlan(
            circle.problem,
            where=f"{graph.name} on {platform.name}",
            hint="leave out one of the constraints on their order",
        ) from circle
    left = placement_only(constraints)
    _require_hosts(problem, left)
    return replace(problem, graph=bound, constraints=left)


def _require_hosts(problem: Problem, constraints: Constraints) -> None:
    names = problem.graph.task_names
    where = f"{problem.graph.name} on {problem.platform.name}"
    hint = "leave out one of the constraints on it"
    units = units_of(constraints)
    somewhere: Bools = np.logical_or.reduce(units.allowed, axis=1)
    nowhere = np.flatnonzero(~somewhere[units.allowed_row][units.of_task])
    if len(nowhere):
        require_fitting(problem.graph, problem.platform)
        raise NoPlan(f"task {names[nowhere[0]]!r} may run on no host", where=where, hint=hint)
    for members, tasks in zip(units.apart, constraints.apart, strict=True):
        if len(set(members.tolist())) < len(members):
            _, first = np.unique(members, return_index=True)
            again = int(np.setdiff1d(np.arange(len(members)), first)[0])
            other = int(np.flatnonzero(members == members[again])[0])
            raise NoPlan(
                f"tasks {names[tasks[other]]!r} and {names[tasks[again]]!r} must run on one host and on different ones",
                where=where,
                hint=hint,
            )


def narrowed(problem: Problem, host: Ints) -> Problem:
    """The problem in which some tasks may run on one host only: `host` of each task, or -1 to leave it as it is."""
    constraints = problem.constraints
    assert constraints is not None
    count = len(problem.platform.hosts)
    rows = np.concatenate((constraints.allowed, np.eye(count, dtype=np.bool_)))
    number = np.where(host >= 0, len(constraints.allowed) + host, constraints.allowed_class)
    return replace(
        problem, constraints=replace(constraints, allowed=rows, allowed_class=number.astype(np.int32))
    )


def with_groups_placed(problem: Problem) -> Problem:
    """The problem in which each task has its own allowed hosts and depends on no other task for them.

    Groups and limits are replaced by the decisions of a list plan: tasks of groups, and tasks that a limit counts, stay
    on their hosts, other tasks keep off the hosts of the limits, and tasks of a limit on tasks at once run in the turns
    of that plan. For planners that know allowed hosts and order only.

    Raises:
        NoPlan: No list plan satisfies the constraints.
    """
    constraints = problem.constraints
    assert constraints is not None
    grouped = (constraints.together >= 0) | (constraints.together_at_site >= 0)
    for members in constraints.apart:
        grouped[members] = True
    asked = [limit for limit in constraints.limits if not limit.need]
    if not grouped.any() and not asked:
        return problem
    plan = _shortest_list_plan(problem)
    host = plan.host
    allowed = constraints.allowed[constraints.allowed_class]
    for limit in asked:
        grouped |= limit.tasks & limit.hosts[host]
        allowed[np.ix_(limit.tasks, limit.hosts)] = False
    allowed[grouped] = np.arange(allowed.shape[1]) == host[grouped, None]
    rows, number = np.unique(allowed, axis=0, return_inverse=True)
    none = Constraints.none(problem.graph.n_tasks, allowed.shape[1])
    own = replace(none, allowed=rows, allowed_class=number.reshape(-1).astype(np.int32))
    turns = [turns_of(limit, plan) for limit in asked if np.isfinite(limit.at_once)]
    graph = with_order(problem.graph, np.concatenate([none.before, *turns]), compiled_order_and_level)
    return replace(problem, graph=graph, constraints=own)


def _shortest_list_plan(problem: Problem) -> Plan:
    """The shortest plan of some list planners, without regard to deadlines; of HEFT alone for large problems."""
    from headrace.planners.list.heft import Heft
    from headrace.planners.registry import make

    graph = problem.graph.with_fields(deadline=np.full(problem.graph.n_tasks, np.inf))
    free = replace(problem, graph=graph)
    best = Heft().plan(free)
    for name in _OTHERS if graph.n_tasks * len(problem.platform.hosts) <= _MOST_TRIED else ():
        try:
            other = make(name).plan(free)
        except NoPlan:
            continue
        best = other if other.makespan < best.makespan * (1 - 1e-12) else best
    return best


def _refused(problem: Problem, name: str, what: str) -> NoPlan:
    return NoPlan(
        f"{name} found no plan that satisfies the constraints: {what}",
        where=f"{problem.graph.name} on {problem.platform.name}",
        hint="use best or heft" if name not in ("best", "heft", "auto") else "relax one of the constraints",
    )
