"""Chains of tasks that share hosts: a bound from flows along chains and prices of cores.

The chain bound assumes that a chain has the fastest hosts for itself, the bounds of work that work can be divided at
will. With a price for each chain, as a flow through the program, and one for each core, both hold at once: see
docs/model.md. Any flow and any prices give a bound, so the search for good ones need not be accurate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.graph import Bools, Floats
from headrace.planners.bounding.chain_flows import Chains, Flow, Levels, Means, join_delays, step
from headrace.planners.bounding.work_table import WorkTable
from headrace.planners.placed_bounds import hops_of, task_edges

_STEPS = 500
_EVALUATED = 50
"""Steps after which the best flow so far is evaluated."""
_SLOPES = (50.0, 1000.0)
"""Of chains' flow by their length in units of the bound, at first and at last,"""
_SHARPNESS = (30.0, 200.0)
"""and of choices between classes."""
_PACES = (0.1, 0.02)
_LEAST_GAIN = 0.02
_LEVELS = 64
_MOST_ROOM = 100_000
"""Rows times levels times classes in a step."""
_HOPELESS = ((50, 0.85), (125, 0.95), (250, 0.98))
"""The search ends if after so many steps the bound is below this share of the known one,"""
_SETTLED = 2e-4
"""or, in the second half, if it has risen by less than this in _EVALUATED steps."""
_ROUNDING = 1e-11
"""Relative error of sums that is subtracted from the bound."""


def chain_bounds(table: WorkTable, best: float, most: float, until: float) -> Iterator[float]:
    """Bounds above `best`, found in at most _STEPS steps; `most` is the makespan of a known plan."""
    mask = table.chain <= most * (1.0 + 1e-9) if np.isfinite(most) else np.isfinite(table.chain)
    if not mask.any(axis=1).all() or best <= 0.0:
        return
    search = _Search(chains_of(table, best), best)
    if not search.worthwhile:
        return
    before = 0.0
    for k in range(_STEPS):
        search.step(k)
        if any(k == at and search.highest < part * best for at, part in _HOPELESS):
            return
        over = work_clock() > until
        if not over and k % _EVALUATED < _EVALUATED - 1:
            continue
        if search.highest > best:
            bound = flow_bound(table, search.chains, *search.found, mask, most)
            if bound > best:
                best = bound
                yield best
        if over or best >= most or (k > _STEPS // 2 and search.highest < before * (1.0 + _SETTLED)):
            return
        before = search.highest


class _Search:
    """The steps, and the flow and prices with the largest bound so far."""

    def __init__(self, chains: Chains, best: float) -> None:
        """`best` is a known bound, the unit of lengths of chains."""
        rows, classes = chains.unit.shape
        count = min(_LEVELS, _MOST_ROOM // (rows * classes))
        self.worthwhile = count >= 3 and len(chains.maker) > 0
        self.chains, self.best = chains, best
        self.means, self.flow = _start(chains), _no_flow(chains)
        room = np.zeros((rows, max(count, 3)))
        self.levels = Levels(np.zeros(room.shape[1]), room, room.copy(), np.zeros(classes))
        self.highest = 0.0
        self.found = (self.flow.edge, self.flow.enter, self.means.price)

    def step(self, k: int) -> None:
        done = min(1.0, k / (0.8 * _STEPS))
        slope, sharp, pace = (a * (b / a) ** done for a, b in (_SLOPES, _SHARPNESS, _PACES))
        gain = max(2.0 / (k + 2), _LEAST_GAIN)
        value = step(self.chains, self.means, self.flow, self.levels, slope / self.best, sharp, pace, gain)
        if value > self.highest and np.isfinite(value):
            share = self.means.share[0]
            self.highest = value
            self.found = (share * self.flow.edge, share * self.flow.enter, self.means.price.copy())


def chains_of(table: WorkTable, best: float) -> Chains:
    """O(tasks * classes + edges log edges); `best` is a known bound."""
    graph = table.problem.graph
    n = graph.n_tasks
    maker, reader, size = task_edges(graph)
    by_reader = np.argsort(reader, kind="stable")
    quickest = table.seconds.min(axis=1)
    rows = int(table.row.max()) + 1
    longest = np.zeros(rows, np.int64)
    order = np.argsort(quickest, kind="stable")
    longest[table.row[order]] = order
    with np.errstate(invalid="ignore"):
        unit = table.seconds[longest] / np.maximum(quickest[longest], 1e-300)[:, None]
    unit[np.isnan(unit)] = 1.0
    lost = table.before.min(axis=0) + table.after.min(axis=0)
    return Chains(
        order=graph.order,
        out_ptr=np.searchsorted(maker, np.arange(n + 1)),
        in_ptr=np.searchsorted(reader[by_reader], np.arange(n + 1)),
        in_edge=by_reader,
        maker=maker.astype(np.int64),
        reader=reader.astype(np.int64),
        away=least_away(table.problem, size),
        quickest=quickest,
        head=table.before.min(axis=1),
        tail=table.after.min(axis=1),
        row=table.row.astype(np.int64),
        factor=quickest,
        unit=unit,
        width=table.width[longest],
        cores=table.cores,
        lost=np.where(lost <= best, lost, 0.0),
    )


def least_away(problem: Problem, size: Floats) -> Floats:
    """The least time of data of these sizes to another place; 0 if a place has several cores.

    Those could make all inputs of a task at once.
    """
    network = problem.platform.network
    places, column = np.unique(network.host_place, return_inverse=True)
    cores = np.bincount(column.reshape(-1), [h.cores for h in problem.platform.hosts])
    if len(places) == 1 or cores.max() > 1:
        return np.zeros(len(size))
    near = hops_of(network).at(places)
    least: Floats = np.zeros(len(size))
    for latency, slowness in (near.into, near.out):
        np.maximum(least, np.where(size > 0, latency.min() + size * slowness.min(), 0.0), out=least)
    return least


def flow_bound(
    table: WorkTable, chains: Chains, edge: Floats, enter: Floats, price: Floats, mask: Bools, most: float
) -> float:
    """The bound of any flow along edges and into tasks, and any prices of cores; at most `most`. O(tasks * classes).

    Where more leaves a task than has come, the rest enters there.
    """
    n = len(chains.order)
    came = np.bincount(chains.reader, edge, n)
    went = np.bincount(chains.maker, edge, n)
    enter = np.maximum(enter, went - came)
    flow = came + enter
    leave = np.maximum(flow - went, 0.0)
    delays = join_delays(chains, np.ascontiguousarray(edge), np.zeros(len(edge)))
    with np.errstate(invalid="ignore"):  # 0 * inf where a task may not run
        cost = (flow[:, None] + table.width[:, None] * price[None, :]) * table.seconds
        cost += enter[:, None] * table.before + leave[:, None] * table.after
    cost[~mask] = np.inf
    total = float(cost.min(axis=1).sum()) + delays + float((price * chains.cores * chains.lost).sum())
    capacity = float(enter.sum()) + float((price * chains.cores).sum())
    if not np.isfinite(total) or capacity <= 0.0:
        return 0.0
    return min(most, total * (1.0 - _ROUNDING) / capacity)


def _start(chains: Chains) -> Means:
    """Equal prices of chains and cores, by the mean speed of each class; run times at the mean speed."""
    finite = np.isfinite(chains.unit)
    mean = np.where(finite, chains.unit, 0.0).sum(axis=1) / finite.sum(axis=1)
    speed = np.where(finite, 1.0 / np.maximum(chains.unit, 1e-12), 0.0).mean(axis=0)
    price = speed / max(float((speed * chains.cores).sum()), 1e-300) * 0.5
    return Means(chains.factor * mean[chains.row], np.zeros(len(chains.maker)), price, np.array([0.5]))


def _no_flow(chains: Chains) -> Flow:
    n = len(chains.order)
    return Flow(np.zeros(len(chains.maker)), *(np.zeros(n) for _ in range(4)))
