"""Groups of hosts that the mixed-integer program treats alike: classes, or hosts whose filter is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of equal units, for one source option. A unit is a host, or a block: several hosts of a zone that run the
    same filter or none of them does."""

    zone: Numbers
    size: Numbers
    """Units in each group."""
    per: Numbers
    """Hosts in each unit."""
    limit: Floats
    """[filters, groups] maximum processing rate of a unit; 0 where a filter cannot run there."""
    power: Floats
    """[filters, groups] the same without the limits of ports, which W_MIN refers to."""
    reserve: Floats
    """[filters, groups] power that counts for W_F."""
    cost: Floats
    """[filters, groups] cost of a unit that runs a filter."""
    share: Floats
    """Share of the input that each unit reads; such units run no other filter."""

    @property
    def n(self) -> int:
        return len(self.zone)

    @property
    def reading(self) -> Numbers:
        return np.flatnonzero(self.share > 0)


@dataclass(frozen=True, eq=False)
class Partition:
    """Which hosts of each class are decided."""

    fixed: Numbers
    """[filters, classes] hosts that run a filter, as part of the block of their zone and filter."""
    free: Numbers
    """[classes] hosts that may run any filter."""


def class_groups(rates: Rates, classes: Classes, weights: Weights) -> Groups:
    """A group for each class; `rates` have one source option."""
    with np.errstate(invalid="ignore"):
        reserve = np.minimum(classes.core * classes.cores, (1 + weights.spare) * rates.most)
    return Groups(
        zone=classes.zone,
        size=classes.size,
        per=np.ones(classes.n, np.int64),
        limit=classes.limit,
        power=classes.power,
        reserve=reserve,
        cost=weights.host_cost + classes.extra_cost,
        share=classes.share[0],
    )


def partition_groups(whole: Groups, part: Partition) -> tuple[Groups, Numbers, Numbers]:
    """Groups of a partition: readers by zone, blocks by zone and filter, then free hosts by class.

    Hosts limited by their cores and those limited by their ports are in different blocks. Returns the groups, the block
    of each class for each filter [filters, classes] (-1: none), and the classes of the free hosts. The number of blocks
    does not depend on the number of hosts that are decided: O(filters * classes).
    """
    n_filters = len(whole.limit)
    free = np.flatnonzero((part.free > 0) & (whole.share == 0))
    by_port = whole.limit < whole.power * (1 - 1e-12)
    key = (np.arange(n_filters)[:, None] * (int(whole.zone.max()) + 1) + whole.zone) * 2 + by_port
    used = (part.fixed > 0) & (np.arange(n_filters)[:, None] > 0)
    keys, inverse = np.unique(key[used], return_inverse=True)
    block_of = np.full(used.shape, -1, np.int64)
    block_of[used] = inverse.ravel()
    read_zones = np.unique(whole.zone[whole.reading])
    n_readers, n_blocks = len(read_zones), len(keys)
    n = n_readers + n_blocks + len(free)
    zone, per = np.zeros(n, np.int64), np.ones(n, np.int64)
    tables = np.zeros((4, n_filters, n))
    share = np.zeros(n)
    for j, z in enumerate(read_zones.tolist()):
        here = whole.reading[whole.zone[whole.reading] == z]
        zone[j], per[j] = z, int((whole.size * whole.per)[here].sum())
        share[j] = float((whole.share * whole.size)[here].sum())
    at, g = np.nonzero(used)
    block, number = n_readers + block_of[at, g], part.fixed[at, g]
    zone[block] = whole.zone[g]
    per[n_readers : n_readers + n_blocks] = np.bincount(inverse.ravel(), number, n_blocks).astype(np.int64)
    for table, values in zip(tables, (whole.limit, whole.power, whole.reserve, whole.cost), strict=True):
        np.add.at(table, (at, block), values[at, g] * number)
    last = slice(n_readers + n_blocks, n)
    zone[last] = whole.zone[free]
    for table, values in zip(tables, (whole.limit, whole.power, whole.reserve, whole.cost), strict=True):
        table[:, last] = values[:, free]
    size = np.ones(n, np.int64)
    size[last] = part.free[free]
    groups = Groups(zone, size, per, tables[0], tables[1], tables[2], tables[3], share)
    return groups, block_of, free
