"""Files that several jobs read: each place where one of them runs receives the file once.

In the relaxation, the bytes of a file are divided among its readers, because a link near the source may carry it once
for all of them. The links into a place carry it whole, however few of its readers run there: the flows into the place
are at least the files of one reader each, plus every shared file with the largest share that any of its readers has
there. If the flows over paths are less, the rest is added to a link into the place.

In the bound, a byte that enters a place has a price of at most the price of any link into it, which paths are then
spared; the readers of a file share its price at each place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.instance import NONE, Instance

if TYPE_CHECKING:
    from headrace.planners.coschedule.lp import Groups, Rows

MOST_ENTRIES = 200_000
"""Shared files of groups of jobs times places above which these constraints are left out."""


@dataclass(frozen=True, eq=False)
class Inflows:
    """Prices of bytes that enter places, and what the readers of shared files pay there."""

    per_byte: Floats
    """[places]"""
    single: Floats
    """[jobs, places] bytes of inputs that no other job reads."""
    job: Ints
    item: Ints
    place: Ints
    paid: Floats
    """What each reader of a shared file pays at each place."""

    def scaled(self, factor: float) -> Inflows:
        return replace(self, per_byte=self.per_byte * factor, paid=self.paid * factor)

    def costs(self, instance: Instance, most: Floats) -> tuple[Floats, Floats]:
        """Prices per byte that exceed nowhere the prices of links (`most`), and the costs [jobs, places].

        O(jobs * places + entries log entries).
        """
        per_byte = np.clip(self.per_byte, 0.0, most)
        key = self.item.astype(np.int64) * instance.places + self.place
        _, which = np.unique(key, return_inverse=True)
        paid = np.maximum(0.0, self.paid)
        allowed = per_byte[self.place] * instance.size[self.item]
        sum_paid = np.bincount(which, paid, minlength=1)[which]
        paid = paid * np.minimum(1.0, allowed / np.maximum(sum_paid, 1e-300))
        cost = self.single * per_byte
        np.add.at(cost, (self.job, self.place), paid)
        return per_byte, cost


class InflowRows:
    """The constraints on inflows in the linear program of a relaxation."""

    def __init__(self, instance: Instance, rows: Rows, groups: Groups, scale: float) -> None:
        self._instance, self._rows, self._groups, self._scale = instance, rows, groups, scale
        self._entries = _Readers(instance, groups)
        self._unit = float(instance.size.max(initial=0.0)) or 1.0
        self._places = np.unique(instance.host_place)
        self._row_of_place: Ints = np.zeros(0, np.int32)
        self._reader_rows: list[int] = []
        self._group: list[int] = []
        self._item: list[int] = []
        self._place: list[int] = []

    @property
    def worthwhile(self) -> bool:
        """Whether some file has several readers, and not too many."""
        return 0 < len(self._entries.item) * len(self._places) <= MOST_ENTRIES

    def add(
        self,
        columns: Mapping[int, tuple[Ints, Ints]],
        flows: Mapping[int, list[tuple[int, float]]],
        loads: list[list[tuple[int, float]]],
    ) -> None:
        """Add a constraint for each place.

        `columns` are the groups and the columns of their shares by place; `flows` the columns of flows over paths that
        enter a place, with how many bytes each is; `loads` the rows of links with seconds per byte, by arc.
        """
        rows, arcs = self._rows, self._instance.paths.arcs
        numbers = []
        for p in self._places.tolist():
            row = rows.row(0.0, np.inf)
            numbers.append(row)
            for arc in np.flatnonzero(arcs.head == p).tolist():
                column = rows.columns(1)
                uses = [(r, seconds * self._unit) for r, seconds in loads[arc]]
                rows.put(
                    np.array([row, *(r for r, _ in uses)]),
                    np.full(1 + len(uses), column),
                    np.array([1.0, *(s for _, s in uses)]),
                )
            entering = flows.get(p, [])
            rows.put(
                np.full(len(entering), row),
                np.array([c for c, _ in entering], np.int64),
                np.array([size / self._unit for _, size in entering]),
            )
            group, share = columns.get(p, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
            rows.put(np.full(len(share), row), share, -self._entries.single[group, p] / self._unit)
            self._add_readers(p, row, group, share)
        self._row_of_place = np.array(numbers, np.int32)

    def _add_readers(self, place: int, row: int, group: Ints, share: Ints) -> None:
        """A column for each shared file at a place, as large as the share of each of its readers there."""
        rows, entries, size = self._rows, self._entries, self._instance.size
        shares: dict[int, list[int]] = {}
        for g, column in zip(group.tolist(), share.tolist(), strict=True):
            shares.setdefault(g, []).append(column)
        copies: dict[int, int] = {}
        for g, item in zip(entries.group.tolist(), entries.item.tolist(), strict=True):
            if g not in shares or entries.is_at(item, place):
                continue
            if item not in copies:
                copies[item] = rows.columns(1)
                rows.put(np.array([row]), np.array([copies[item]]), np.array([-size[item] / self._unit]))
            reader = rows.row(0.0, np.inf)
            own = shares[g]
            rows.put(
                np.full(1 + len(own), reader),
                np.array([copies[item], *own]),
                np.array([1.0, *[-1.0 / self._groups.count[g]] * len(own)]),
            )
            self._reader_rows.append(reader)
            self._group.append(g)
            self._item.append(item)
            self._place.append(place)

    def prices(self, duals: Floats) -> Inflows:
        """The prices in a solution: O(jobs * places + readers * places)."""
        instance, groups = self._instance, self._groups
        per_byte = np.zeros(instance.places)
        per_byte[self._places] = np.maximum(0.0, duals[self._row_of_place]) * (self._scale / self._unit)
        group = np.array(self._group, np.int64)
        paid = np.maximum(0.0, duals[np.array(self._reader_rows, np.int64)]) * self._scale
        paid = paid / np.maximum(1, groups.count[group])
        jobs = np.argsort(groups.of_job, kind="stable")
        first = np.searchsorted(groups.of_job[jobs], group)
        count = groups.count[group]
        entry = np.repeat(np.arange(len(group)), count)
        step = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        return Inflows(
            per_byte,
            self._entries.single[groups.of_job],
            jobs[first[entry] + step].astype(np.int32),
            np.array(self._item, np.int32)[entry],
            np.array(self._place, np.int32)[entry],
            paid[entry],
        )


class _Readers:
    """Which groups read shared files from outside, and how many other bytes each brings to each place."""

    def __init__(self, instance: Instance, groups: Groups) -> None:
        self._instance = instance
        first = np.zeros(len(groups.count), np.int64)
        first[groups.of_job[::-1]] = np.arange(instance.n)[::-1]
        readers = np.bincount(instance.reads, minlength=len(instance.size))
        self._at = np.ones((len(instance.paths.sets) + 1, instance.places))
        for s, places in enumerate(instance.paths.sets):
            self._at[s, list(places)] = 0.0
        self.single = np.zeros((len(first), instance.places))
        """[groups, places] bytes of inputs that no other job reads and that are elsewhere."""
        group, item = [], []
        for g, job in enumerate(first.tolist()):
            for i in instance.inputs(job):
                if instance.source[i] == NONE:
                    continue
                if readers[i] > 1:
                    group.append(g)
                    item.append(int(i))
                else:
                    self.single[g] += instance.size[i] * self._at[instance.source[i]]
        self.group, self.item = np.array(group, np.int32), np.array(item, np.int32)

    def is_at(self, item: int, place: int) -> bool:
        """Whether a file is at a place from the beginning."""
        return bool(self._at[self._instance.source[item], place] == 0.0)


def shared_sets(instance: Instance) -> Ints:
    """[jobs] a number for the set of files from outside that a job shares with others; 0 if it is empty."""
    readers = np.bincount(instance.reads, minlength=len(instance.size))
    numbers: dict[tuple[int, ...], int] = {(): 0}
    found = np.zeros(instance.n, np.int32)
    for job in range(instance.n):
        shared = tuple(
            sorted(int(i) for i in instance.inputs(job) if readers[i] > 1 and instance.source[i] != NONE)
        )
        found[job] = numbers.setdefault(shared, len(numbers))
    return found
