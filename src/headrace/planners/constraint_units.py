"""Units: tasks that must run together, with the constraints on the host of each unit."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from headrace.arrays import Int64s
from headrace.core.scheduler import Problem
from headrace.model.constraints import Constraints, Limit
from headrace.model.graph import Bools, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """The units of a problem, before they are arrays for compiled code."""

    of_task: Ints
    count: int
    allowed_row: Ints
    allowed: Bools
    """[rows, hosts]"""
    site_group: Ints
    apart: tuple[Ints, ...]
    """Groups of units; a unit that is in a group twice cannot be placed."""

    def tasks(self) -> tuple[Int64s, Int64s]:
        """Offsets and tasks, by unit."""
        order = np.argsort(self.of_task, kind="stable").astype(np.int64)
        return offsets(self.of_task, self.count), order


_known: WeakKeyDictionary[Constraints, Units] = WeakKeyDictionary()


def units_of(constraints: Constraints) -> Units:
    """Group tasks that run together: O(tasks + grouped tasks * (log + groups) + groups * hosts), once."""
    if constraints not in _known:
        _known[constraints] = _units_of(constraints)
    return _known[constraints]


def _units_of(constraints: Constraints) -> Units:
    n = len(constraints.together)
    # Each task follows the first of its group, so that the order does not depend on the numbers of groups.
    leader = np.arange(n)
    grouped = np.flatnonzero(constraints.together >= 0)
    _, first, inverse = np.unique(constraints.together[grouped], return_index=True, return_inverse=True)
    leader[grouped] = grouped[first][inverse.reshape(-1)]
    leads = leader == np.arange(n)
    of_task = (np.cumsum(leads) - 1)[leader].astype(np.int32)
    count = int(leads.sum())
    row = np.zeros(count, np.int32)
    row[of_task] = constraints.allowed_class
    site_group = np.full(count, -1, np.int32)
    rows = list(constraints.allowed)
    merged = np.flatnonzero(np.bincount(of_task[grouped]) > 1)
    number = _joined_site_groups(constraints.together_at_site, of_task)
    site_group[of_task] = np.where(number >= 0, number, site_group[of_task])
    for unit in merged.tolist():
        classes = np.unique(constraints.allowed_class[grouped[of_task[grouped] == unit]])
        if len(classes) > 1:
            rows.append(constraints.allowed[classes].all(axis=0))
            row[unit] = len(rows) - 1
    apart = tuple(of_task[group] for group in constraints.apart)
    return Units(of_task, count, row, np.array(rows, np.bool_), site_group, apart)


def _joined_site_groups(group: Ints, of_task: Ints) -> Ints:
    """Groups at one site, with groups that share a unit joined into one; -1 for tasks without a group."""
    if group.max(initial=-1) < 0:
        return group
    parent = {g: g for g in np.unique(group[group >= 0]).tolist()}

    def root(g: int) -> int:
        while parent[g] != g:
            g = parent[g]
        return g

    of_unit: dict[int, int] = {}
    for task in np.flatnonzero(group >= 0).tolist():
        unit, g = int(of_task[task]), root(int(group[task]))
        other = root(of_unit.setdefault(unit, g))
        parent[max(g, other)] = min(g, other)
    number = {g: k for k, g in enumerate(sorted({root(g) for g in parent}))}
    joined = np.full(len(group), -1, np.int32)
    for task in np.flatnonzero(group >= 0).tolist():
        joined[task] = number[root(int(group[task]))]
    in_unit = np.full(int(of_task.max(initial=-1)) + 1, -1, np.int32)
    in_unit[of_task[joined >= 0]] = joined[joined >= 0]
    spread: Ints = in_unit[of_task] if len(of_task) else joined
    return spread


def host_sites(problem: Problem) -> Int64s:
    """The site of each host."""
    counts = [len(site.hosts) for site in problem.platform.sites]
    return np.repeat(np.arange(len(counts)), counts)


def effective_limit(limit: Limit) -> Limit:
    """The same limit with whole numbers of tasks; none at once is none at all."""
    if limit.amount is not None:
        return limit
    at_once = float(np.floor(limit.at_once))
    count = 0.0 if at_once < 1 else float(np.floor(limit.count))
    return Limit(
        limit.tasks, limit.hosts, count, limit.seconds, np.inf if at_once < 1 else at_once, limit.rule
    )


def sites_of_groups(units: Units, site: Int64s, sites: int) -> Bools:
    """[groups, sites] where each unit of a group has an allowed host."""
    groups = int(units.site_group.max(initial=-1)) + 1
    possible = np.ones((groups, sites), np.bool_)
    rows = np.zeros((len(units.allowed), sites), np.bool_)
    for s in range(sites):
        rows[:, s] = units.allowed[:, site == s].any(axis=1)
    for unit in np.flatnonzero(units.site_group >= 0).tolist():
        possible[units.site_group[unit]] &= rows[units.allowed_row[unit]]
    return possible


def offsets(owner: Ints | Int64s, count: int) -> Int64s:
    """Where the entries of each owner begin, once they are grouped by owner."""
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count)))).astype(np.int64)
