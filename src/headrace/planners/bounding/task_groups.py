"""Groups of tasks that are alike: the variables of the programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Bools, Floats
from headrace.planners.bounding.work_table import WorkTable

_GRAINS = ((24, 24, 12), (12, 12, 6), (8, 8, 4), (6, 6, 3), (4, 4, 2), (3, 3, 1), (2, 2, 1), (1, 1, 1))
"""Numbers of levels of head, tail and work that are tried, from the finest."""


@dataclass(frozen=True, eq=False)
class TaskGroups:
    """Tasks in groups; [groups, classes] unless stated otherwise."""

    of_task: Numbers
    """[tasks]"""
    count: Floats
    """[groups] number of tasks."""
    exact: bool
    """Whether the tasks of each group are equal in all respects."""
    load: Floats
    """Core-seconds of all tasks of the group; inf where they may not run."""
    before: Floats
    after: Floats
    """The least of its tasks."""


def group_tasks(table: WorkTable, most: int) -> TaskGroups:
    """At most `most` groups, if tasks that run equally fast everywhere allow it: O(tasks * classes log tasks)."""
    same = np.unique(
        np.concatenate((table.seconds, table.before, table.after, table.width[:, None]), axis=1),
        axis=0,
        return_inverse=True,
    )[1].reshape(-1)
    if int(same.max(initial=0)) < most:
        return _grouped(table, same, exact=True)
    head, tail = table.before.min(axis=1), table.after.min(axis=1)
    work = table.seconds.min(axis=1)
    for heads, tails, works in _GRAINS:
        key = table.row.astype(np.int64)
        for value, levels in ((head, heads), (tail, tails), (work, works)):
            key = key * levels + _level(value, levels)
        of_task = np.unique(key, return_inverse=True)[1]
        if int(of_task.max()) < most:
            break
    return _grouped(table, of_task, exact=False)


def _level(value: Floats, levels: int) -> Numbers:
    """The level of each value, of which each holds about equally many of the different values."""
    different = np.unique(value)
    if len(different) <= levels:
        return np.searchsorted(different, value)
    edges = different[np.linspace(0, len(different) - 1, levels + 1).astype(int)[:-1]]
    return np.searchsorted(edges, value, side="right") - 1


def _grouped(table: WorkTable, of_task: Numbers, *, exact: bool) -> TaskGroups:
    count = np.bincount(of_task)
    order = np.argsort(of_task, kind="stable")
    first = np.concatenate(([0], np.cumsum(count)[:-1]))
    load = np.add.reduceat((table.seconds * table.width[:, None])[order], first, axis=0)
    before = np.minimum.reduceat(table.before[order], first, axis=0)
    after = np.minimum.reduceat(table.after[order], first, axis=0)
    return TaskGroups(of_task, count.astype(np.float64), exact, load, before, after)


def possible(groups: TaskGroups, mask: Bools) -> Bools:
    """[groups, classes] whether any task of the group may run there."""
    found = np.zeros(groups.load.shape, np.bool_)
    np.logical_or.at(found, groups.of_task, mask)
    return found
