"""List what a plan breaks of its constraints, in plain Python and without any code of the planners."""

from __future__ import annotations

from headrace.model.constraints import Constraints, Limit
from headrace.model.plan import Plan

TOLERANCE = 1e-9
"""Relative and absolute: times and sums of run times that are closer are equal."""


def check_constraints(constraints: Constraints, plan: Plan) -> list[str]:
    """A sentence for each violation; an empty list means that the plan satisfies all constraints.

    >>> import numpy as np
    >>> from headrace.core.scheduler import Problem
    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.testing import random_platform, random_program
    >>> plan = Heft().plan(Problem(random_program(1).graph, random_platform(1)))
    >>> check_constraints(Constraints.none(plan.graph.n_tasks, 4), plan)
    []
    """
    tasks = range(plan.graph.n_tasks)
    host, start, finish = plan.host.tolist(), plan.start.tolist(), plan.finish.tolist()
    found = []
    for t in tasks:
        if not constraints.allowed[constraints.allowed_class[t]][host[t]]:
            found.append(f"task {t} is on host {host[t]}, which is not allowed")
        if start[t] < constraints.release[t] - _room(constraints.release[t]):
            found.append(f"task {t} starts at {start[t]}, before {constraints.release[t]}")
        if finish[t] > constraints.deadline[t] + _room(finish[t]):
            found.append(f"task {t} finishes at {finish[t]}, after {constraints.deadline[t]}")
    for a, b in constraints.before.tolist():
        if start[b] < finish[a] - _room(finish[a]):
            found.append(f"task {b} starts at {start[b]}, before task {a} finishes at {finish[a]}")
    found += _groups(constraints, plan)
    for limit in constraints.limits:
        found += _limit(limit, plan)
    return found


def _groups(constraints: Constraints, plan: Plan) -> list[str]:
    found = []
    host = plan.host.tolist()
    site = [s for s, each in enumerate(plan.platform.sites) for _ in each.hosts]
    for a in range(len(host)):
        for b in range(a):
            if constraints.together[a] == constraints.together[b] >= 0 and host[a] != host[b]:
                found.append(f"tasks {b} and {a} are not together")
            same_site = site[host[a]] == site[host[b]]
            if constraints.together_at_site[a] == constraints.together_at_site[b] >= 0 and not same_site:
                found.append(f"tasks {b} and {a} are not at one site")
    for group in constraints.apart:
        members = group.tolist()
        found += [
            f"tasks {a} and {b} are not apart"
            for i, a in enumerate(members)
            for b in members[:i]
            if host[a] == host[b]
        ]
    return found


def _limit(limit: Limit, plan: Plan) -> list[str]:
    host, start, finish = plan.host.tolist(), plan.start.tolist(), plan.finish.tolist()
    counted = [t for t in range(len(host)) if limit.tasks[t] and limit.hosts[host[t]]]
    found = []
    if len(counted) > limit.count:
        found.append(f"{len(counted)} tasks, more than {limit.count}")
    seconds = sum(finish[t] - start[t] for t in counted)
    if seconds > limit.seconds + _room(limit.seconds):
        found.append(f"{seconds} s, more than {limit.seconds}")
    for t in counted:  # the most at once is reached when some task starts
        moment = start[t]
        running = [u for u in counted if start[u] <= moment and finish[u] > moment + _room(moment)]
        taken = len(running) if limit.amount is None else sum(limit.amount[u] for u in running)
        if taken > limit.at_once:
            found.append(f"{taken} at {moment}, more than {limit.at_once} at once")
    return found


def _room(value: float) -> float:
    return TOLERANCE * (1.0 + abs(value))
