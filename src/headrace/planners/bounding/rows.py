"""Rows of the programs, each a limit that every plan of at most a given makespan satisfies, and bounds from prices.

A row states that the sum over tasks of an amount, which depends on the class of hosts the task runs on, is at most
capacity * (makespan - lost). Any prices of at least 0 for rows give a bound: the sum of the amounts at these prices,
each task where it costs least, is at most the sum of the capacities at these prices. So a bound is computed from prices
alone and does not depend on the accuracy of the solver that found them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Floats
from headrace.planners.bounding.work_table import WorkTable

_ROUNDING = 1e-11
"""Relative error of sums that is subtracted from every bound."""


@dataclass(frozen=True)
class WorkRow:
    """Tasks that cannot start before `head` on hosts of a class and are followed by `tail` share its cores in between.

    A row can also count tasks. Then they add a dual feasible function of their share of a window of at most `window`
    seconds: a function whose values sum to at most 1 wherever the shares do. With `parts` = k > 0 it is u_k: a core
    runs at most one task longer than half of the window, two longer than a third, ... With `least` > 0, tasks shorter
    than this share add nothing, and tasks that leave no room for one of this share add 1.
    """

    column: int
    """The class of hosts."""
    head: float = 0.0
    tail: float = 0.0
    parts: int = 0
    window: float = 0.0
    least: float = 0.0

    @property
    def counts(self) -> bool:
        return self.parts > 0 or self.least > 0.0

    def amounts(self, seconds: Floats, width: Floats, before: Floats, after: Floats) -> Floats:
        """Of each task, from its values on this class."""
        inside = (before >= self.head) & (after >= self.tail) & np.isfinite(seconds)
        if not self.counts:
            return np.where(inside, seconds, 0.0) * width
        share = np.where(inside, seconds, 0.0) / self.window * (1.0 - 1e-9)  # a tie counts as the smaller
        if self.least:
            lasting = np.where(share > 1.0 - self.least, 1.0, share)
            return np.where(share >= self.least, lasting, 0.0) * width
        return np.floor(share * (self.parts + 1)) / self.parts * width


def priced_bound(
    table: WorkTable,
    rows: Sequence[WorkRow],
    prices: Floats,
    mask: Bools,
    most: float,
    extra: Extra | None = None,
) -> float:
    """The bound of these prices: no plan is shorter. O(tasks * (classes + rows)).

    `mask` are the classes that each task may use in a plan of at most `most` seconds; the bound is at most that.
    """
    cost = np.where(mask, 0.0, np.inf)
    lost, capacity, fixed = 0.0, 0.0, 0.0
    for row, price in zip(rows, prices.tolist(), strict=True):
        if price <= 0.0:
            continue
        c = row.column
        amounts = row.amounts(table.seconds[:, c], table.width, table.before[:, c], table.after[:, c])
        cost[:, c] += price * amounts
        if row.counts:
            fixed += price * float(table.cores[c])
        else:
            lost += price * float(table.cores[c]) * (row.head + row.tail)
            capacity += price * float(table.cores[c])
    if extra is not None:
        cost += extra.cost
        lost, capacity = lost + extra.lost, capacity + extra.capacity
    least = cost.min(axis=1)
    total = float(least[np.isfinite(least)].sum()) + lost - fixed
    if not np.isfinite(least).all():
        return most
    spread = float(np.abs(least).sum()) + lost + fixed
    if capacity <= 0.0:
        return most if total > 1e-7 * spread else 0.0
    return min(most, (total - _ROUNDING * spread) / capacity)


@dataclass(frozen=True, eq=False)
class Extra:
    """Amounts at their prices that are not about one class of hosts alone."""

    cost: Floats
    """[tasks, classes]"""
    capacity: float
    lost: float


def best_thresholds(
    load: Floats, before: Floats, after: Floats, levels: int, most: float
) -> tuple[Floats, Floats, Floats]:
    """For some heads a: the tail b with a + b <= most for which a + b + the load of tasks with these is largest.

    Returns heads, tails and these sums. O(levels * tasks log tasks).
    """
    order = np.argsort(-after, kind="stable")
    load, before, after = load[order], before[order], after[order]
    heads = spaced(before[before <= most], levels)
    tails, sums = np.zeros(len(heads)), np.zeros(len(heads))
    for k, head in enumerate(heads.tolist()):
        inside = before >= head
        total = head + after[inside] + np.cumsum(load[inside])
        total[head + after[inside] > most] = 0.0
        best = int(np.argmax(total))
        tails[k], sums[k] = after[inside][best], total[best]
    return heads, tails, sums


def spaced(values: Floats, count: int) -> Floats:
    """The different values, or an evenly spaced selection if there are many."""
    different: Floats = np.unique(values)
    if len(different) <= count:
        return different
    chosen: Floats = different[np.linspace(0, len(different) - 1, count).astype(int)]
    return chosen
