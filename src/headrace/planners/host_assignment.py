"""Hosts for tasks with constraints that depend on each other, by an exact model (CP-SAT).

Only tight units are in the model: those without an allowed host where they depend on no other unit. All others can
always go to such a host, whatever else is placed. Units that are alike are one variable for each host: how many of them
go there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.constraints import Limit
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.constraint_units import Units, effective_limit, host_sites, sites_of_groups, units_of

MOST_VARIABLES = 1_000_000
SOLVING = 20.0
"""Seconds of work, as CP-SAT counts them, until an assignment must be found,"""
BALANCING = 2.0
"""and seconds of work for balancing the run times of hosts."""
WHOLE = 10**12
"""A limit of seconds in the units of the model."""
LOAD = 10**6
"""The run time of all units in the units of the objective."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """Units that can be exchanged: the first of them stands for all."""

    units: list[int]
    tasks: Ints
    """Tasks of the first unit."""
    hosts: Ints
    """Hosts allowed."""


def assigned_hosts(problem: Problem, task: int = 0, *, with_groups: bool = False) -> Ints:
    """The host of each task that is part of a tight unit, and -1 for all other tasks.

    Args:
        problem: A problem with constraints.
        task: The task for which no host was left, for the error.
        with_groups: Units of several tasks get a host even if they are not tight.

    Raises:
        NoPlan: No assignment exists, or none was found within SOLVING.
    """
    constraints = problem.constraints
    assert constraints is not None
    units = units_of(constraints)
    limits = [effective_limit(limit) for limit in constraints.limits]
    limits = [limit for limit in limits if np.isfinite(limit.count) or np.isfinite(limit.seconds)]
    tight = _tight_units(units, limits)
    if with_groups:
        tight |= np.bincount(units.of_task, minlength=units.count) > 1
    classes = _classes(problem, units, limits, np.flatnonzero(tight).astype(np.int32))
    counts = _solved(problem, units, limits, classes, task)
    host = np.full(units.count, -1, np.int32)
    for group, found in zip(classes, counts, strict=True):
        host[group.units] = np.repeat(group.hosts, found)
    return host[units.of_task]


def _tight_units(units: Units, limits: list[Limit]) -> Bools:
    """Units in groups, and units all of whose allowed hosts have a limit that counts them: O(limits * units)."""
    tight: Bools = units.site_group >= 0
    for members in units.apart:
        tight[members] = True
    escape = np.ones((len(units.allowed_row), units.allowed.shape[1]), np.bool_) if limits else None
    if escape is not None:
        for limit in limits:
            counted = np.zeros(units.count, np.bool_)
            counted[units.of_task[limit.tasks]] = True
            escape[np.ix_(counted, limit.hosts)] = False
        tight |= ~(escape & units.allowed[units.allowed_row]).any(axis=1)
    return tight


def _classes(problem: Problem, units: Units, limits: list[Limit], tight: Ints) -> list[_Alike]:
    """Tight units by what the constraints see of them; units in groups and units of several tasks are unique."""
    graph, (ptr, by_unit) = problem.graph, units.tasks()
    alone = np.ones(units.count, np.bool_)
    for members in units.apart:
        alone[members] = False
    timed = np.zeros(graph.n_tasks, np.bool_)
    for limit in limits:
        timed |= limit.tasks & np.isfinite(limit.seconds)
    member = np.array([limit.tasks for limit in limits], np.bool_).reshape(len(limits), graph.n_tasks)
    found: dict[tuple[Any, ...], _Alike] = {}
    for unit in tight.tolist():
        tasks = by_unit[ptr[unit] : ptr[unit + 1]].astype(np.int32)
        t = int(tasks[0])
        key: tuple[Any, ...] = ("unit", unit)
        if alone[unit] and len(tasks) == 1:
            size = (float(graph.work[t]), int(graph.speed_class[t])) if timed[t] else ()
            key = (int(units.allowed_row[unit]), int(units.site_group[unit]), member[:, t].tobytes(), size)
        if key not in found:
            found[key] = _Alike(
                [], tasks, np.flatnonzero(units.allowed[units.allowed_row[unit]]).astype(np.int32)
            )
        found[key].units.append(unit)
    return list(found.values())


class _Model:
    """The model: how many units of each class go to each of its hosts."""

    def __init__(self, problem: Problem, units: Units, limits: list[Limit], classes: list[_Alike]) -> None:
        from ortools.sat.python import cp_model

        self.problem, self.units, self.classes = problem, units, classes
        self.rate = problem.platform.rates(problem.graph)
        self.cp = cp_model.CpModel()
        self.counts = [
            [self.cp.new_int_var(0, len(group.units), f"n{c}.{h}") for h in group.hosts.tolist()]
            for c, group in enumerate(classes)
        ]
        for group, row in zip(classes, self.counts, strict=True):
            self.cp.add(sum(row) == len(group.units))
        self._add_sites()
        self._add_apart()
        for limit in limits:
            if np.isfinite(limit.count):
                self._add_count(limit)
            if np.isfinite(limit.seconds):
                self._add_seconds(limit)

    def rows(self) -> Iterator[tuple[_Alike, list[tuple[int, Any]]]]:
        """Each class with its hosts and variables."""
        for group, row in zip(self.classes, self.counts, strict=True):
            yield group, list(zip(group.hosts.tolist(), row, strict=True))

    def _add_sites(self) -> None:
        """Each group has one site, and all its units are there."""
        site = host_sites(self.problem)
        possible = sites_of_groups(self.units, site, len(self.problem.platform.sites))
        chosen = [
            [self.cp.new_bool_var(f"s{g}.{s}") if ok else None for s, ok in enumerate(row)]
            for g, row in enumerate(possible.tolist())
        ]
        for sites in chosen:
            self.cp.add_exactly_one([s for s in sites if s is not None])
        for group, row in self.rows():
            g = int(self.units.site_group[group.units[0]])
            for h, n in row if g >= 0 else ():
                here = chosen[g][site[h]]
                self.cp.add(n == 0 if here is None else n <= len(group.units) * here)

    def _add_apart(self) -> None:
        """At most one unit of each group on a host; these units are classes of their own."""
        of_unit = {group.units[0]: row for group, row in self.rows() if len(group.units) == 1}
        for members in self.units.apart:
            on: dict[int, list[Any]] = {}
            for unit in members.tolist():
                for h, n in of_unit[unit]:
                    on.setdefault(h, []).append(n)
            for variables in on.values():
                self.cp.add(sum(variables) <= 1)

    def _add_count(self, limit: Limit) -> None:
        terms = []
        for group, row in self.rows():
            count = int(limit.tasks[group.tasks].sum())
            terms += [count * n for h, n in row if limit.hosts[h] and count]
        self.cp.add(sum(terms) <= int(limit.count))

    def _add_seconds(self, limit: Limit) -> None:
        """Seconds are rounded to the nearest unit, which is off by less than the tolerance of sums of run times."""
        scale = WHOLE / limit.seconds if limit.seconds > 0 else WHOLE
        terms = []
        for group, row in self.rows():
            seconds = self.seconds(group.tasks[limit.tasks[group.tasks]])
            for h, n in row:
                if limit.hosts[h] and seconds[h] > 0:
                    terms.append(max(1, min(round(float(seconds[h]) * scale), 2 * WHOLE)) * n)
        most = WHOLE + sum(len(group.units) for group in self.classes)
        self.cp.add(sum(terms) <= (most if limit.seconds > 0 else 0))

    def seconds(self, tasks: Ints) -> Floats:
        """[hosts] run time of these tasks."""
        graph = self.problem.graph
        total: Floats = (graph.work[tasks, None] / self.rate[graph.speed_class[tasks]]).sum(axis=0)
        return total

    def largest_load(self) -> Any:
        """The largest run time of a host over its cores, in units of the objective."""
        seconds = [self.seconds(group.tasks) for group in self.classes]
        whole = sum(float(s.max()) * len(g.units) for s, g in zip(seconds, self.classes, strict=True)) or 1.0
        terms: dict[int, list[Any]] = {}
        for times, (_, row) in zip(seconds, self.rows(), strict=True):
            for h, n in row:
                load = float(times[h]) / self.problem.platform.hosts[h].cores
                terms.setdefault(h, []).append(round(load * LOAD / whole) * n)
        largest = self.cp.new_int_var(0, 2 * LOAD, "load")
        for h in sorted(terms):
            self.cp.add(sum(terms[h]) <= largest)
        return largest


def _solved(
    problem: Problem, units: Units, limits: list[Limit], classes: list[_Alike], task: int
) -> list[list[int]]:
    """How many units of each class go to each of its hosts: a feasible assignment, then a more balanced one."""
    from ortools.sat.python import cp_model

    if sum(len(group.hosts) for group in classes) > MOST_VARIABLES:
        raise _undecided(problem, task, "the model of the constraints on hosts is too large")
    model = _Model(problem, units, limits, classes)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = SOLVING
    status = solver.solve(model.cp)
    if status == cp_model.INFEASIBLE:
        raise NoPlan(
            f"no assignment of tasks to hosts satisfies the constraints: no host is left for task "
            f"{problem.graph.task_names[task]!r}{_named(limits)}",
            where=f"{problem.graph.name} on {problem.platform.name}",
            hint="leave out one of the constraints",
        )
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise _undecided(problem, task, "no assignment of tasks to hosts was found in time")
    first = [[int(solver.value(n)) for n in row] for row in model.counts]
    for row, values in zip(model.counts, first, strict=True):
        for n, value in zip(row, values, strict=True):
            model.cp.add_hint(n, value)
    model.cp.minimize(model.largest_load())
    solver.parameters.max_deterministic_time = BALANCING
    if solver.solve(model.cp) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return first
    return [[int(solver.value(n)) for n in row] for row in model.counts]


def _named(limits: list[Limit]) -> str:
    rules = sorted({limit.rule for limit in limits if limit.rule})
    return f" (limits: {', '.join(rules[:5])})" if rules else ""


def _undecided(problem: Problem, task: int, why: str) -> NoPlan:
    return NoPlan(
        f"no host is left for task {problem.graph.task_names[task]!r}, and {why}",
        where=f"{problem.graph.name} on {problem.platform.name}",
        hint="leave out one of the constraints",
    )
