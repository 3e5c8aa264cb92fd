"""Whole tasks in place of fractions: an integer program over groups of equal tasks and classes of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools
from headrace.planners.bounding.rows import WorkRow
from headrace.planners.bounding.task_groups import TaskGroups, possible
from headrace.planners.bounding.work_table import WorkTable
from headrace.planners.pipeline.linear import Builder, Linear, solve

_MOST_WHOLE = 600
"""Whole numbers in the program: those of the longest tasks; of the others, fractions are allowed."""
_SHORT = 0.01
"""Tasks shorter than this share of the makespan may always be divided: whole ones would change little."""
_PARTS = (1, 2, 3)
_TOLERANCE = 1e-6
"""Relative accuracy of the solver's bound, subtracted from it."""
_CLOSE = 1e-3


class WholeTasks:
    """How many tasks of each group run on each class, in a plan of at most a given makespan."""

    def __init__(self, table: WorkTable, groups: TaskGroups, rows: Sequence[WorkRow]) -> None:
        self.table = table
        self.groups = groups
        self.rows = [row for row in rows if not row.counts]

    def bounds(self, best: float, most: float, until: float) -> Iterator[float]:
        """Better bounds, each the largest makespan so far for which there is no solution."""
        low, high = best, most if np.isfinite(most) else 1.5 * best
        while high > low * (1.0 + _CLOSE) and work_clock() < until:
            tried = 0.5 * (low + high)
            value = self.bound(low, tried, max(0.05, 0.4 * (until - work_clock())))
            if value > low:
                yield value
            if value >= tried:
                low = tried
            else:
                low, high = max(low, value), tried

    def bound(self, least: float, most: float, seconds: float) -> float:
        """At most `most`, given that `least` is a bound; O(groups * classes) columns."""
        mask = self.table.chain <= most * (1.0 + 1e-9)
        if not mask.any(axis=1).all():
            return most
        try:
            answer = solve(self._program(mask, least, most), seconds=seconds, gap=1e-4)
        except NoPlan:  # the solver gave up
            return 0.0
        if answer.status == "infeasible":
            return most
        return min(most, -answer.bound * most * (1.0 - _TOLERANCE)) if np.isfinite(answer.bound) else 0.0

    def _program(self, mask: Bools, least: float, most: float) -> Linear:
        """Minimise the makespan, in units of `most` and at most that."""
        groups, table = self.groups, self.table
        usable = possible(groups, mask)
        builder = Builder()
        makespan = builder.add_columns((1,), cost=-1.0, high=1.0)
        group, column = np.nonzero(usable)
        number = np.zeros(len(group), np.int64)
        whole = self._whole(most)[group]
        for wanted in (True, False):
            here = np.flatnonzero(whole == wanted)
            number[here] = builder.add_columns((len(here),), high=groups.count[group[here]], whole=wanted)
        each = np.where(usable, groups.load, 0.0) / groups.count[:, None]
        for row in self._rows(least, most):
            at = np.flatnonzero(column == row.column)
            inside = (groups.before[:, row.column] >= row.head) & (groups.after[:, row.column] >= row.tail)
            unit = float(table.cores[row.column])
            amounts = np.where(inside, each[:, row.column], 0.0) / most
            if row.counts:
                first = np.unique(groups.of_task, return_index=True)[1]
                c = row.column
                amounts = row.amounts(
                    table.seconds[first, c], table.width[first], table.before[first, c], table.after[first, c]
                )
            if not amounts[group[at]].any():
                continue
            limit = builder.add_rows(1, high=1.0 if row.counts else -(row.head + row.tail) / most)
            builder.put(limit, number[at], amounts[group[at]] / unit)
            builder.put(limit, makespan, 0.0 if row.counts else -1.0)
        assign = builder.add_rows(len(groups.count), low=groups.count, high=groups.count)
        builder.put(assign[group], number, 1.0)
        return builder.build()

    def _rows(self, least: float, most: float) -> list[WorkRow]:
        """The rows of work, and those of counted tasks for windows of this makespan."""
        counted = [
            WorkRow(row.column, row.head, row.tail, parts, most - row.head - row.tail)
            for row in self.rows
            for parts in _PARTS
            if most > row.head + row.tail
        ]
        return [row for row in self.rows if row.head + row.tail <= least] + counted

    def _whole(self, most: float) -> Bools:
        """[groups] whether only whole tasks are allowed."""
        seconds = np.full(len(self.groups.count), -np.inf)
        np.maximum.at(seconds, self.groups.of_task, self.table.seconds.min(axis=1))
        classes = self.table.seconds.shape[1]
        longest = np.argsort(-seconds, kind="stable")[: max(1, _MOST_WHOLE // classes)]
        whole = np.zeros(len(seconds), np.bool_)
        whole[longest] = seconds[longest] > _SHORT * most
        return whole
