"""Comparators of the co-scheduling paper: one site, equal loads, jobs pulled by idle cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import NoPlan, UsageError
from headrace.model.plan import Plan
from headrace.planners.coschedule.improving import (
    able_sites,
    equal_hosts,
    hosts_within,
    in_given_order,
    pulled,
)
from headrace.planners.coschedule.instance import Instance, instance_of
from headrace.planners.coschedule.judge import with_executed_times
from headrace.planners.coschedule.list_scheduler import Decisions, ListScheduler
from headrace.planners.coschedule.planner import (
    empty_plan,
    no_room,
    notes_of,
    too_late,
)
from headrace.planners.coschedule.relaxation import quick_bound
from headrace.planners.coschedule.schedule_jobs import FAILED


class Local:
    """All jobs at one site, in the given order: the named site, or the one with the smallest makespan.

    >>> Local().name
    'local'
    """

    name = "local"

    def __init__(self, site: str | None = None) -> None:
        self.site = site

    @obeys
    def plan(self, problem: Problem) -> Plan:
        if not problem.graph.n_tasks:
            return empty_plan(problem, self.name)
        instance = instance_of(problem)
        tried = [in_given_order(instance, hosts_within(instance, s)) for s in self._sites(instance)]
        if not tried:
            raise NoPlan(
                "no site can run all jobs",
                where=problem.platform.name,
                hint="use a scheduler for several sites",
            )
        return _best(instance, tried, self.name)

    def _sites(self, instance: Instance) -> list[int]:
        """Sites whose hosts can run every job."""
        platform = instance.problem.platform
        if self.site is not None and self.site not in [s.name for s in platform.sites]:
            raise UsageError(
                f"there is no site {self.site!r}",
                hint=f"use one of {', '.join(s.name for s in platform.sites)}",
            )
        return [s for s in able_sites(instance) if self.site in (None, platform.sites[s].name)]


class EqualLoad:
    """Jobs, in the given order, go to the host with the least work per core; inputs arrive before a job starts."""

    name = "equal-load"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        if not problem.graph.n_tasks:
            return empty_plan(problem, self.name)
        instance = instance_of(problem)
        return _best(instance, [in_given_order(instance, equal_hosts(instance))], self.name)


class Pull:
    """Each idle core takes the next job, in the given order, and is occupied while it waits for the job's inputs."""

    name = "pull"

    @obeys
    def plan(self, problem: Problem) -> Plan:
        if not problem.graph.n_tasks:
            return empty_plan(problem, self.name)
        instance = instance_of(problem)
        return _best(instance, [pulled(instance)], self.name)


def _best(instance: Instance, tried: list[Decisions], name: str) -> Plan:
    """The plan of the decisions with the smallest makespan; ties: the first."""
    scheduler = ListScheduler(instance)
    values = [scheduler.value(decisions) for decisions in tried]
    best = int(np.argmin(values))
    if values[best] >= FAILED:
        scheduler.value(tried[best])
        raise no_room(instance, int(scheduler.schedule.state[1]))
    plan = scheduler.plan(tried[best], name)
    if values[best] > plan.makespan * (1 + 1e-9) + 1e-6:
        raise too_late(instance, plan)
    plan = with_executed_times(plan, instance.problem)
    return replace(plan, bound=quick_bound(instance), notes=notes_of(instance.problem))
