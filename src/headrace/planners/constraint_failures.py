"""How constraints fail: a dead end of a greedy planner, missed deadlines, and what a finished plan breaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.arrays.problem import ProblemArrays
from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints, Limit
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats, Ints
from headrace.model.needs import show_need
from headrace.model.plan import Plan
from headrace.planners.constraint_state import ConstraintState, constraint_state, take_singles
from headrace.planners.constraint_units import host_sites

ABSOLUTE, RELATIVE = 1e-9, 1e-12
"""Tolerance of times, because they are sums of many durations."""
EXCESS = 1e-9
"""Relative tolerance of sums of run times."""


class DeadEnd(NoPlan):
    """A planner that places tasks one after another has left no host for a task."""

    def __init__(self, problem: Problem, task: int) -> None:
        super().__init__(
            f"no host is left for task {problem.graph.task_names[task]!r}",
            where=f"{problem.graph.name} on {problem.platform.name}",
            hint="use best, which searches",
        )
        self.task = task


def starting_state(problem: Problem, arrays: ProblemArrays) -> ConstraintState:
    """The state of the constraints in which only units with a single allowed host have theirs.

    Raises:
        DeadEnd: Two of these units exclude each other.
    """
    state = constraint_state(problem)
    unit = int(take_singles(state, arrays.tasks, arrays.hosts))
    if unit >= 0:
        raise DeadEnd(problem, int(state.unit_tasks[state.unit_ptr[unit]]))
    return state


def lateness(plan: Plan) -> float:
    """By how many seconds the worst task misses its deadline; at most 0 if every task meets it.

    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.testing import random_platform, random_program
    >>> lateness(Heft().plan(Problem(random_program(1).graph, random_platform(1))))
    -inf
    """
    late = plan.finish - plan.graph.deadline - ABSOLUTE - RELATIVE * np.abs(plan.finish)
    return float(late.max(initial=-np.inf))


def failures(problem: Problem, plan: Plan) -> Iterator[str]:
    """What a plan breaks of the problem's constraints, and of its releases and deadlines: a text for each kind.

    O(tasks log tasks + pairs + limits * tasks).
    """
    constraints, names = problem.constraints, problem.graph.task_names
    assert constraints is not None
    hosts = problem.platform.hosts
    outside = np.flatnonzero(~constraints.allowed[constraints.allowed_class, plan.host])
    for task in outside[:1].tolist():
        yield f"task {names[task]!r} must not run on {hosts[plan.host[task]].name!r}"
    first, second = constraints.before[:, 0], constraints.before[:, 1]
    early = np.flatnonzero(plan.start[second] < plan.finish[first] - _slack(plan.finish[first]))
    for pair in early[:1].tolist():
        yield f"task {names[second[pair]]!r} must wait for {names[first[pair]]!r}"
    yield from _group_failures(problem, constraints, plan)
    for limit in constraints.limits:
        yield from limit_failures(problem, limit, plan)
    yield from _window_failures(problem, plan)


def _group_failures(problem: Problem, constraints: Constraints, plan: Plan) -> Iterator[str]:
    names = problem.graph.task_names
    site = host_sites(problem)[plan.host]
    for group, at, what in (
        (constraints.together, plan.host, "host"),
        (constraints.together_at_site, site, "site"),
    ):
        grouped = np.flatnonzero(group >= 0)
        grouped = grouped[np.argsort(group[grouped], kind="stable")]
        a, b = grouped[:-1], grouped[1:]
        parted = np.flatnonzero((group[a] == group[b]) & (at[a] != at[b]))
        for k in parted[:1].tolist():
            yield f"tasks {names[a[k]]!r} and {names[b[k]]!r} must run on one {what}"
    for members in constraints.apart:
        if len(set(plan.host[members].tolist())) == len(members):
            continue
        _, first = np.unique(plan.host[members], return_index=True)
        again = np.setdiff1d(np.arange(len(members)), first)
        for k in again[:1].tolist():
            same = members[int(np.flatnonzero(plan.host[members] == plan.host[members[k]])[0])]
            yield f"tasks {names[same]!r} and {names[members[k]]!r} must run on different hosts"


def limit_failures(problem: Problem, limit: Limit, plan: Plan) -> Iterator[str]:
    """What a plan breaks of one limit."""
    there = np.flatnonzero(limit.hosts[plan.host])
    counted: Ints = there[limit.tasks[there]].astype(np.int32)
    if len(counted) > limit.count:
        yield f"at most {limit.count:g} tasks {_hosts_of(problem, limit)}, not {len(counted)}"
    used = float((plan.finish[counted] - plan.start[counted]).sum())
    if used > limit.seconds * (1 + EXCESS) + ABSOLUTE:
        yield f"at most {limit.seconds:.6g} s of run time {_hosts_of(problem, limit)}, not {used:.6g} s"
    if not np.isfinite(limit.at_once):
        return
    most = most_at_once(plan, counted, None if limit.amount is None else limit.amount[counted])
    if limit.amount is None and most > limit.at_once:
        yield f"at most {limit.at_once:g} tasks at once {_hosts_of(problem, limit)}, not {most:g}"
    elif most > limit.at_once * (1 + EXCESS):
        has, asked = show_need(limit.need, limit.at_once), show_need(limit.need, most)
        yield f"there is {has} {_hosts_of(problem, limit)}, but tasks that run at once need {asked}"


def _hosts_of(problem: Problem, limit: Limit) -> str:
    listed = [problem.platform.hosts[host].name for host in np.flatnonzero(limit.hosts).tolist()]
    return f"on {', '.join(listed[:3])}{', ...' if len(listed) > 3 else ''}"


def most_at_once(plan: Plan, tasks: Ints, amount: Floats | None = None) -> float:
    """The largest number of these tasks that run at one moment, or of what each takes: O(tasks log tasks)."""
    amount = np.ones(len(tasks)) if amount is None else amount
    start, finish = plan.start[tasks], plan.finish[tasks] - _slack(plan.finish[tasks])
    start, finish, amount = start[finish > start], finish[finish > start], amount[finish > start]
    moment = np.concatenate((finish, start))
    change = np.concatenate((-amount, amount))
    return float(np.cumsum(change[np.argsort(moment, kind="stable")]).max(initial=0.0))


def _window_failures(problem: Problem, plan: Plan) -> Iterator[str]:
    graph = problem.graph
    early = np.flatnonzero(plan.start < graph.release - _slack(graph.release))
    for task in early[:1].tolist():
        yield f"task {graph.task_names[task]!r} must not start before {float(graph.release[task]):.6g} s"
    late = np.flatnonzero(plan.finish > graph.deadline + _slack(plan.finish))
    for task in late[np.argsort(-(plan.finish - graph.deadline)[late], kind="stable")][:1].tolist():
        yield (
            f"task {graph.task_names[task]!r} must finish by {float(graph.deadline[task]):.6g} s, "
            f"not at {float(plan.finish[task]):.6g} s"
        )


def _slack(moment: Floats) -> Floats:
    return ABSOLUTE + RELATIVE * np.abs(moment)
