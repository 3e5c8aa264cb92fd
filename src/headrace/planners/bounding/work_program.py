"""The linear program over groups of tasks and classes of hosts: the least time that the work takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.check_case import Numbers
from headrace.model.graph import Bools, Floats
from headrace.planners.bounding.flows import FlowRows, Flows, Fractions
from headrace.planners.bounding.rows import WorkRow, best_thresholds, priced_bound
from headrace.planners.bounding.task_groups import TaskGroups, possible
from headrace.planners.bounding.work_table import WorkTable
from headrace.planners.pipeline.linear import Answer, Builder, Linear, solve

_LEVELS = 12
"""Heads tried for each class when rows are added."""
_VIOLATED = 1e-4
"""A row is added if the solution breaks it by more than this, relative to the makespan."""
_PARTS = (1, 2, 3)
_LEASTS = tuple(k / 40 for k in range(1, 20))
"""The dual feasible functions that are tried: of few classes all, of many only some of the second kind."""
_CLASSES = 16
"""Of twice this number of classes half of them are tried, and so on."""
_COUNTED = 6
"""Thresholds of each class for which they are tried."""
_SLACK = 1e-9
_EXCESS = 100.0
"""Makespans that it costs to break the rows of counted tasks: without such a way out, a program in which no makespan
satisfies them would have no prices, although these prove the largest bound."""


@dataclass
class WorkProgram:
    """Minimise the makespan over fractions of groups on classes, for plans of at most a given makespan."""

    table: WorkTable
    groups: TaskGroups
    flows: Flows | None = None
    rows: list[WorkRow] = field(default_factory=list)
    """Kept for the next makespan."""
    known: set[WorkRow] = field(default_factory=set)

    def __post_init__(self) -> None:
        for c in range(self.table.seconds.shape[1]):
            self.add(WorkRow(c))

    def add(self, row: WorkRow) -> bool:
        if row in self.known:
            return False
        self.known.add(row)
        self.rows.append(row)
        return True

    def start_from(self, head: float, tail: float) -> None:
        """Rows for all classes with these thresholds."""
        for c in range(self.table.seconds.shape[1]):
            self.add(WorkRow(c, head, tail))

    def mask(self, most: float) -> Bools:
        """The classes on which each task can run in a plan of at most this makespan."""
        found: Bools = self.table.chain <= most * (1.0 + _SLACK)
        return found

    def bound(self, least: float, most: float, until: float, rounds: int = 6) -> tuple[float, bool]:
        """A bound of at most `most`, or of inf for all plans, and whether data had a part in it.

        The linear program is solved again with the rows that its solution breaks. A row whose head and tail exceed the
        makespan would be wrong for a class without such tasks, so they are at most `least`, a known bound.
        """
        mask = self.mask(most) if np.isfinite(most) else np.isfinite(self.table.chain)
        if not mask.any(axis=1).all():
            return most, False
        self._forget_counted()
        usable = possible(self.groups, mask)
        best, data = 0.0, False
        for _ in range(rounds):
            rows = [row for row in self.rows if row.counts or row.head + row.tail <= least]
            program, fractions, flow_rows = self._program(rows, usable, least, most)
            answer = solve(program, seconds=max(0.05, until - work_clock()))
            if answer.dual is None or answer.x is None:
                break
            found, with_data = self._evaluated(rows, answer, mask, most, flow_rows)
            if found > best:
                best, data = found, with_data
            if best >= most or work_clock() > until:
                break
            share = np.zeros(usable.shape)
            share[usable] = answer.x[fractions]
            makespan = float(answer.x[0]) * self._scale(most)
            more = self._separate(share, makespan, least, most)
            if not (self.flows is not None and self.flows.separate(share, makespan, least)) and not more:
                break
        return best, data

    def _forget_counted(self) -> None:
        """Rows of counted tasks hold for one makespan only."""
        self.rows = [row for row in self.rows if not row.counts]
        self.known = set(self.rows)

    def _scale(self, most: float) -> float:
        return most if np.isfinite(most) else float(self.table.chain.min(axis=1).max())

    def _program(
        self, rows: Sequence[WorkRow], usable: Bools, least: float, most: float
    ) -> tuple[Linear, Numbers, list[FlowRows] | None]:
        """The program in units of `_scale`, the numbers of its fractions, and its rows about links."""
        groups, cores, scale = self.groups, self.table.cores, self._scale(most)
        builder = Builder()
        makespan = builder.add_columns((1,), cost=-1.0)
        excess = builder.add_columns((1,), cost=-_EXCESS)
        group, column = np.nonzero(usable)
        fractions = builder.add_columns((len(group),))
        for row, number in zip(rows, builder.add_rows(len(rows)).tolist(), strict=True):
            capacity = float(cores[row.column])
            here = np.flatnonzero(column == row.column)
            amounts = self.group_amounts(row)[group[here]]
            unit = capacity if row.counts else capacity * scale
            builder.put(number, fractions[here], amounts / unit)
            builder.put(number, excess if row.counts else makespan, -1.0)
            high = 1.0 if row.counts else -(row.head + row.tail) / scale
            builder.rows[0][1][number] = high
        assign = builder.add_rows(len(groups.count), low=1.0, high=1.0)
        builder.put(assign[group], fractions, 1.0)
        flow_rows = None
        if self.flows is not None:
            parts = Fractions(group, column, fractions)
            flow_rows = self.flows.add_to(builder, makespan, parts, scale, least)
        return builder.build(), fractions, flow_rows

    def group_amounts(self, row: WorkRow) -> Floats:
        """What each group adds to a row if all its tasks are on the class."""
        groups, table, c = self.groups, self.table, row.column
        if not row.counts:
            inside = (groups.before[:, c] >= row.head) & (groups.after[:, c] >= row.tail)
            return np.where(inside & np.isfinite(groups.load[:, c]), groups.load[:, c], 0.0)
        each = row.amounts(table.seconds[:, c], table.width, table.before[:, c], table.after[:, c])
        return np.bincount(groups.of_task, each, len(groups.count)).astype(np.float64)

    def _evaluated(
        self,
        rows: Sequence[WorkRow],
        answer: Answer,
        mask: Bools,
        most: float,
        flow_rows: list[FlowRows] | None,
    ) -> tuple[float, bool]:
        """The bound of the solution's prices for single tasks, in place of groups."""
        assert answer.dual is not None
        scale, cores = self._scale(most), self.table.cores
        dual = np.maximum(answer.dual[: len(rows)], 0.0)
        unit = np.array([cores[r.column] * (1.0 if r.counts else scale) for r in rows])
        extra = None
        if self.flows is not None and flow_rows is not None:
            extra = self.flows.priced(flow_rows, answer.dual)
        # The objective is in units of `scale`: prices of counted rows are too.
        prices = dual / unit * scale
        found = priced_bound(self.table, rows, prices, mask, most, extra)
        return found, extra is not None and extra.capacity > 1e-6 * float((prices * unit).sum())

    def _separate(self, share: Floats, makespan: float, least: float, most: float) -> bool:
        """Add the rows that a solution breaks most, a few for each class; returns whether there are any."""
        groups, more = self.groups, False
        for c in range(share.shape[1]):
            used = np.flatnonzero(share[:, c] > 1e-9)
            if not len(used):
                continue
            load = share[used, c] * groups.load[used, c] / self.table.cores[c]
            heads, tails, sums = best_thresholds(
                load, groups.before[used, c], groups.after[used, c], _LEVELS, least
            )
            for k in np.argsort(-sums, kind="stable")[:2].tolist():
                if sums[k] > makespan * (1 + _VIOLATED):
                    more |= self.add(WorkRow(c, float(heads[k]), float(tails[k])))
            if np.isfinite(most):
                more |= self._count(c, share, most)
        return more

    def _count(self, c: int, share: Floats, most: float) -> bool:
        """Add the rows of counted tasks that a solution breaks."""
        more = False
        thresholds = [(r.head, r.tail) for r in self.rows if r.column == c and not r.counts]
        leasts = _LEASTS[:: 1 + share.shape[1] // _CLASSES]
        for head, tail in thresholds[:_COUNTED]:
            window = most - head - tail
            if window <= 0:
                continue
            row = WorkRow(c, head, tail, window=window)
            rows = [replace(row, parts=parts) for parts in _PARTS]
            for counted in [*rows, *(replace(row, least=least) for least in leasts)]:
                total = float((share[:, c] * self.group_amounts(counted)).sum())
                if total > float(self.table.cores[c]) * (1 + _VIOLATED):
                    more |= self.add(counted)
        return more
