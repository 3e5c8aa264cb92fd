"""Plans for the rest of a run that obey its constraints, and what happens when there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from headrace.core.replan_constraints import RunConstraints
from headrace.core.scheduler import Planner, Problem
from headrace.core.view import RunView
from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Graph, Ints
from headrace.model.plan import Plan


@dataclass(frozen=True, eq=False)
class RestOfRun:
    """The part of a run that is to be planned."""

    view: RunView
    kept: int
    """Tasks that stay in each queue."""
    chosen: Bools | None
    """Restricts the tasks; None: all that remain."""
    prepare: Callable[[Problem], Problem]
    """Completes the problem: the seed, and times before which nothing can start."""


def plan_rest(planner: Planner, run: RunConstraints, rest: RestOfRun) -> tuple[Plan, int]:
    """A plan that obeys the constraints in force, and how many tasks stay in each queue under it.

    If there is none with the tasks that should stay in their queues, none stays. If there is none on the hosts that
    are up, hosts that have not joined yet are used as if they were up: their tasks wait. If there is none at all, the
    rules that stand in the way are left out, or the run stops.

    Raises:
        NoPlan: The planner finds no plan, or the run stops.
    """
    failure: NoPlan | None = None
    for kept in dict.fromkeys((rest.kept, 0)):
        for hosts in dict.fromkeys((frozenset[int](), run.awaited)):
            try:
                return _planned(planner, run, replace(rest, kept=kept), run.constraints, hosts), kept
            except NoPlan as error:
                failure = failure or error
    assert failure is not None
    free = replace(rest, kept=0)

    def possible(constraints: Constraints, hosts: frozenset[int]) -> bool:
        with suppress(NoPlan):
            _planned(planner, run, free, constraints, hosts | run.awaited)
            return True
        return False

    if not run.give_way(rest.view, possible, failure.problem):
        raise failure
    return plan_rest(planner, run, rest)


def _planned(
    planner: Planner, run: RunConstraints, rest: RestOfRun, constraints: Constraints, hosts: frozenset[int]
) -> Plan:
    """A plan under constraints on the whole run; `hosts` are used although they are not up."""
    view = rest.view
    problem = rest.prepare(view.problem(rest.kept, rest.chosen, hosts))
    left = run.remaining(view, problem, view.kept(rest.kept), constraints)
    failure: NoPlan | None = None
    for graph in _with_deadlines(view, problem.graph, constraints, whole=not run.dropped):
        try:
            return replace(planner.plan(replace(problem, graph=graph, constraints=left)), graph=problem.graph)
        except NoPlan as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _with_deadlines(view: RunView, graph: Graph, constraints: Constraints, whole: bool) -> list[Graph]:
    """The graph with all its deadlines, and with those of the constraints alone, which must be met."""
    tasks = np.array([view.task_number[name] for name in graph.task_names], np.int32)
    must = replace(graph, deadline=constraints.deadline[tasks] - view.time)
    if np.array_equal(must.deadline, graph.deadline):
        return [graph]
    return [graph, must] if whole else [must]


def assigned_now(view: RunView, plan: Plan, order: Ints) -> Ints:
    """From tasks in order, those whose host is up and that do not depend on a task whose host is not."""
    up = np.array([view.hosts_up[view.host_number[host.name]] for host in plan.platform.hosts])
    if up.all():
        return order
    graph, waits = plan.graph, ~up[plan.host]
    for task in graph.order.tolist():
        makers = graph.producer[graph.reads[graph.read_ptr[task] : graph.read_ptr[task + 1]]]
        waits[task] |= bool(waits[makers[makers >= 0]].any())
    now: Ints = order[~waits[order]]
    return now
