"""Rows about links in the linear program: where work is placed decides which data must cross them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Bools, Floats
from headrace.planners.bounding.regions import Crossings, Needs, Resource, crossings, needs_of, resources_of
from headrace.planners.bounding.rows import Extra
from headrace.planners.bounding.task_groups import TaskGroups
from headrace.planners.bounding.work_table import WorkTable
from headrace.planners.pipeline.linear import Builder

_MOST_PAIRS = 500
"""Pairs of groups between which data is considered: those with the most bytes."""
_OVERLOADED = 1e-3
"""A resource takes part if its load is larger than the makespan by this share."""
_QUANTILES = (0.0, 0.5, 0.9)
"""Heads and tails that are tried first, by the share of tasks with less."""


class Window(NamedTuple):
    """Transfers that cannot start before `head` and are followed by at least `tail`."""

    head: float
    tail: float


class Fractions(NamedTuple):
    """The columns of the program: the fraction of each group on each class where it may run."""

    group: Numbers
    column: Numbers
    number: Numbers


@dataclass(frozen=True, eq=False)
class FlowRows:
    """Where a resource's rows are in the program."""

    resource: int
    windows: tuple[Window, ...]
    limit: Numbers
    """[windows] rows that limit the bytes."""
    into: Numbers
    out: Numbers
    """[pairs] rows that say how much crosses for each pair of groups; empty for the other direction."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Groups of which one reads from the other."""

    maker: Numbers
    reader: Numbers
    items: Floats
    bytes: Floats
    of_need: Numbers
    """The pair of each need between tasks; -1: not considered."""


class Flows:
    """The links of a platform whose links are limited, and what must cross them.

    Only the resources that a solution overloads take part, with the windows in which it does.
    """

    def __init__(self, table: WorkTable, groups: TaskGroups) -> None:
        self.table = table
        self.groups = groups
        self.resources: list[Resource] = resources_of(table)
        self.needs: Needs = needs_of(table.problem)
        self.crossing: list[Crossings] = [
            crossings(table.problem, self.needs, resource) for resource in self.resources
        ]
        self.windows: dict[int, set[Window]] = {}
        """Of the resources that take part."""
        self.pairs: Pairs = _pairs(self.needs, groups)
        self.head, self.tail = (np.full(len(groups.count), np.inf) for _ in range(2))
        """[groups] the least time until what a task makes exists, and from the arrival of what it reads to the end."""
        made, rest = table.before + table.seconds, table.seconds + table.after
        np.minimum.at(self.head, groups.of_task, made.min(axis=1))
        np.minimum.at(self.tail, groups.of_task, rest.min(axis=1))

    def separate(self, share: Floats, makespan: float, least: float) -> bool:
        """Add the windows in which a solution, [groups, classes] fractions, overloads resources.

        Heads and tails are at most `least`. Returns whether there are any.
        """
        more = False
        for number, (resource, crossing) in enumerate(zip(self.resources, self.crossing, strict=True)):
            found = self._most_loaded(resource, crossing, share, least)
            if all(load <= makespan * (1 + _OVERLOADED) for _, load in found):
                continue
            known = self.windows.get(number)
            if known is None:
                known = self.windows[number] = self._first_windows(crossing)
                more = True
            for window, load in found:
                if load > makespan * (1 + _OVERLOADED) and window not in known:
                    known.add(window)
                    more = True
        return more

    def _most_loaded(
        self, resource: Resource, crossing: Crossings, share: Floats, least: float
    ) -> list[tuple[Window, float]]:
        """The windows with the largest sums of head, tail and load: one by tails, one by heads, and all transfers."""
        inside = share[:, resource.inside].sum(axis=1)
        fetched, returned = (
            (self._of_groups(each) * np.stack((inside, 1.0 - inside), axis=1)).sum(axis=1) / resource.links
            for each in (crossing.fetched, crossing.returned)
        )
        ends = inside[self.pairs.reader] - inside[self.pairs.maker]
        ways = np.maximum(ends, 0.0) * resource.into + np.maximum(-ends, 0.0) * resource.out
        between = ways * resource.seconds(self.pairs.items, self.pairs.bytes) / resource.links
        found = [(Window(0.0, 0.0), float(fetched.sum() + returned.sum() + between.sum()))]
        for alone, of_groups, of_pairs, tails in (
            (fetched, self.tail, self.tail[self.pairs.reader], True),
            (returned, self.head, self.head[self.pairs.maker], False),
        ):
            time, load = np.append(of_groups, of_pairs), np.append(alone, between)
            order = np.argsort(-time, kind="stable")
            time, load = time[order], load[order]
            total = np.where((time <= least) & (load > 0.0), time + np.cumsum(load), 0.0)
            best = int(np.argmax(total))
            window = Window(0.0, float(time[best])) if tails else Window(float(time[best]), 0.0)
            found.append((window, float(total[best])))
        return found

    def add_to(
        self, builder: Builder, makespan: Numbers, parts: Fractions, scale: float, least: float
    ) -> list[FlowRows]:
        """Add the rows of the resources that take part.

        `scale` is the unit of the makespan, `least` a known bound, which heads and tails together may not exceed.
        """
        return [self._add(builder, makespan, parts, scale, least, number) for number in self.windows]

    def _add(
        self,
        builder: Builder,
        makespan: Numbers,
        parts: Fractions,
        scale: float,
        least: float,
        number: int,
    ) -> FlowRows:
        resource, crossing, pairs = self.resources[number], self.crossing[number], self.pairs
        windows = tuple(w for w in sorted(self.windows[number]) if w.head + w.tail <= least)
        unit = resource.links * scale
        limit = builder.add_rows(len(windows), high=[-(w.head + w.tail) / scale for w in windows])
        builder.put(limit, makespan, -1.0)
        inside = resource.inside[parts.column]
        for row, window in zip(limit.tolist(), windows, strict=True):
            amount = self._alone(crossing, window) / unit
            builder.put(row, parts.number, amount[parts.group, np.where(inside, 0, 1)])
        moved = resource.seconds(pairs.items, pairs.bytes) / unit
        ways: list[Numbers] = [np.zeros(0, np.int64)] * 2
        for k, (wanted, sign) in enumerate(((resource.into, 1.0), (resource.out, -1.0))):
            if not wanted or not len(moved):
                continue
            flow = builder.add_columns((len(moved),))
            ways[k] = builder.add_rows(len(flow), high=0.0)
            builder.put(ways[k], flow, -1.0)
            for end, direction in ((pairs.reader, sign), (pairs.maker, -sign)):
                _put_inside(builder, ways[k], end, direction * moved, parts, inside)
            for row, window in zip(limit.tolist(), windows, strict=True):
                builder.put(row, flow[self._between(window)], 1.0)
        return FlowRows(number, windows, limit, ways[0], ways[1])

    def _first_windows(self, crossing: Crossings) -> set[Window]:
        """All transfers; those followed by some time; and those preceded by some."""
        found = {Window(0.0, 0.0)}
        of = self.groups.of_task
        fetching, returning = crossing.fetched.any(axis=1), crossing.returned.any(axis=1)
        if fetching.any():
            tails = np.quantile(self.tail[of][fetching], _QUANTILES, method="lower")
            found |= {Window(0.0, float(tail)) for tail in tails}
        if returning.any():
            heads = np.quantile(self.head[of][returning], _QUANTILES, method="lower")
            found |= {Window(float(head), 0.0) for head in heads}
        return found

    def priced(self, rows: list[FlowRows], dual: Floats) -> Extra:
        """The amounts of single tasks at the prices of a solution."""
        needs, cost = self.needs, np.zeros(self.table.seconds.shape)
        capacity = lost = 0.0
        for row in rows:
            resource, crossing = self.resources[row.resource], self.crossing[row.resource]
            price = np.maximum(dual[row.limit], 0.0)
            capacity += float(price.sum())
            lost += float(sum(p * (w.head + w.tail) for p, w in zip(price, row.windows, strict=True)))
            each = np.zeros((len(cost), 2))
            most = np.zeros(len(self.pairs.bytes))
            for p, window in zip(price.tolist(), row.windows, strict=True):
                each += p * self._each_alone(crossing, window)
                most += p * self._between(window)
            used = resource.seconds(needs.items, needs.bytes)
            for way, sign in ((row.into, 1.0), (row.out, -1.0)):
                if len(way):
                    value = np.append(np.clip(dual[way], 0.0, most), 0.0)[self.pairs.of_need]
                    each[:, 0] += np.bincount(needs.reader, sign * value * used, len(each))
                    each[:, 0] -= np.bincount(needs.maker, sign * value * used, len(each))
            cost += each[:, np.where(resource.inside, 0, 1)] / resource.links
        return Extra(cost, capacity, lost)

    def _between(self, window: Window) -> Bools:
        """[pairs] whether their transfers are in a window."""
        early, late = self.head[self.pairs.maker], self.tail[self.pairs.reader]
        counted: Bools = (early >= window.head) & (late >= window.tail)
        return counted

    def _each_alone(self, crossing: Crossings, window: Window) -> Floats:
        """[tasks, 2] seconds in a window if the task is in the region, and if it is not."""
        of = self.groups.of_task
        fetch = (self.tail >= window.tail)[of] * (window.head == 0.0)
        back = (self.head >= window.head)[of] * (window.tail == 0.0)
        each: Floats = crossing.fetched * fetch[:, None] + crossing.returned * back[:, None]
        return each

    def _alone(self, crossing: Crossings, window: Window) -> Floats:
        """[groups, 2] the same for all tasks of a group."""
        return self._of_groups(self._each_alone(crossing, window))

    def _of_groups(self, each: Floats) -> Floats:
        """[groups, 2] the sums over the tasks of each group."""
        of, count = self.groups.of_task, len(self.groups.count)
        return np.stack([np.bincount(of, each[:, k], count) for k in range(2)], axis=1)


def _pairs(needs: Needs, groups: TaskGroups) -> Pairs:
    """The pairs of different groups with the most bytes between them."""
    count = len(groups.count)
    maker, reader = groups.of_task[needs.maker], groups.of_task[needs.reader]
    key, number = np.unique(maker.astype(np.int64) * count + reader, return_inverse=True)
    total = np.bincount(number, needs.bytes, len(key)).astype(np.float64)
    total[key // count == key % count] = 0.0
    kept = np.sort(np.argsort(-total, kind="stable")[:_MOST_PAIRS])
    kept = kept[total[kept] > 0]
    position = np.full(len(key) + 1, -1)
    position[kept] = np.arange(len(kept))
    items = np.bincount(number, needs.items, len(key)).astype(np.float64)
    return Pairs(key[kept] // count, key[kept] % count, items[kept], total[kept], position[number])


def _put_inside(
    builder: Builder, rows: Numbers, groups: Numbers, amount: Floats, parts: Fractions, inside: Bools
) -> None:
    """Add to each row the fraction of its group inside the region, times an amount."""
    order = np.argsort(parts.group, kind="stable")
    order = order[inside[order]]
    first = np.searchsorted(parts.group[order], groups, side="left")
    count = np.searchsorted(parts.group[order], groups, side="right") - first
    at = np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(int(count.sum()))
    builder.put(np.repeat(rows, count), parts.number[order[at]], np.repeat(amount, count))
