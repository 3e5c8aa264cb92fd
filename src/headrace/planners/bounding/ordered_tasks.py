"""Whole tasks in their order on classes of hosts: a constraint program without links.

The cores of a class are a pool. A task that reads from another starts after it, and later by the least time that the
data takes if they run on different classes. Times are rounded down to whole units, so the solver's bound is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.graph import OUTSIDE, Bools, Floats
from headrace.model.network import Network
from headrace.planners.bounding.work_table import WorkTable

_UNITS = 200_000
"""Units of time in a makespan."""
_MOST_CHOICES = 6_000
"""Maximum of tasks times classes,"""
_MOST_DELAYS = 150_000
"""and of pairs of tasks and classes with a delay: beyond it the model alone takes seconds."""
_LEAST_SECONDS = 0.05


def can_order(table: WorkTable) -> bool:
    """Whether the program is small enough."""
    return table.seconds.size <= _MOST_CHOICES and table.problem.graph.n_tasks > 1


def ordered_bounds(table: WorkTable, best: float, most: float, until: float) -> Iterator[float]:
    """The bound that the solver proves in the time left; `most` is the makespan of a known plan."""
    if until - work_clock() < _LEAST_SECONDS or best <= 0:
        return
    from ortools.sat.python import cp_model

    unit = (most if np.isfinite(most) else 1.5 * best) / _UNITS
    model = cp_model.CpModel()
    _build(model, table, unit, best, most)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(_LEAST_SECONDS, until - work_clock())
    solver.parameters.num_workers = min(4, os.cpu_count() or 1)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:  # no plan is shorter than the known one
        yield most
    elif status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        yield float(solver.best_objective_bound) * unit


def _build(model: Any, table: WorkTable, unit: float, best: float, most: float) -> None:
    """Tasks as intervals that are present on one class each."""
    mask = table.chain <= most * (1.0 + 1e-9) if np.isfinite(most) else np.isfinite(table.chain)
    tasks, classes = range(len(mask)), range(mask.shape[1])
    run, before, after = (_units(v, unit) for v in (table.seconds, table.before, table.after))
    horizon = _horizon(table, unit, mask) if not np.isfinite(most) else int(np.ceil(most / unit)) + 1
    makespan = model.new_int_var(int(np.floor(best / unit)), horizon, "makespan")
    on = [{c: model.new_bool_var("") for c in classes if mask[t, c]} for t in tasks]
    start = [model.new_int_var(0, horizon, "") for _ in tasks]
    end = [model.new_int_var(0, horizon, "") for _ in tasks]
    pools: list[list[tuple[Any, int]]] = [[] for _ in classes]
    for t in tasks:
        model.add_exactly_one(on[t].values())
        model.add(end[t] == start[t] + sum(int(run[t, c]) * here for c, here in on[t].items()))
        model.add(start[t] >= sum(int(before[t, c]) * here for c, here in on[t].items()))
        model.add(makespan >= end[t] + sum(int(after[t, c]) * here for c, here in on[t].items()))
        for c, here in on[t].items():
            interval = model.new_optional_fixed_size_interval_var(start[t], int(run[t, c]), here, "")
            pools[c].append((interval, int(table.width[t])))
    for c in classes:
        if pools[c]:
            model.add_cumulative([i for i, _ in pools[c]], [w for _, w in pools[c]], int(table.cores[c]))
    _order(model, table, unit, start, end, on)
    model.minimize(makespan)


def _order(model: Any, table: WorkTable, unit: float, start: list[Any], end: list[Any], on: Any) -> None:
    """A reader starts after the maker, and later if its data takes time between their classes."""
    graph = table.problem.graph
    largest: dict[tuple[int, int], float] = {}
    for task in range(graph.n_tasks):
        for item in graph.reads_of(task).tolist():
            maker = int(graph.producer[item])
            if maker != OUTSIDE:
                largest[maker, task] = max(largest.get((maker, task), 0.0), float(graph.size[item]))
    for maker, task in largest:
        model.add(start[task] >= end[maker])
    latency, slowness = class_distances(table)
    if len(largest) * len(latency) ** 2 > _MOST_DELAYS:
        return
    for (maker, task), size in largest.items():
        if size <= 0:
            continue
        delay = np.floor((latency + size * slowness) / unit)
        for a, here in on[maker].items():
            for b, there in on[task].items():
                if not np.isfinite(delay[a, b]):
                    model.add_bool_or([here.negated(), there.negated()])
                elif delay[a, b] > 0:
                    later = model.add(start[task] >= end[maker] + int(delay[a, b]))
                    later.only_enforce_if([here, there])


def class_distances(table: WorkTable) -> tuple[Floats, Floats]:
    """[classes, classes] least latency and least seconds per byte of any way between their hosts; 0 within a class."""
    network = table.problem.platform.network
    classes = len(table.cores)
    at = [np.unique(network.host_place[table.class_of_host == c]) for c in range(classes)]
    found = []
    for direct in _direct(network):
        for k in range(network.n_places):
            np.minimum(direct, direct[:, k : k + 1] + direct[k : k + 1, :], out=direct)
        least = np.array(
            [[direct[np.ix_(at[a], at[b])].min() for b in range(classes)] for a in range(classes)]
        )
        np.fill_diagonal(least, 0.0)
        found.append(least)
    return found[0], found[1]


def _direct(network: Network) -> tuple[Floats, Floats]:
    zone = network.zone
    rate = np.minimum(network.route_bandwidth[np.ix_(zone, zone)], network.port[None, :])
    rate = np.minimum(rate, network.port[:, None])
    joined = rate > 0
    latency = np.where(joined, network.route_latency[np.ix_(zone, zone)], np.inf)
    slowness = np.where(joined, 1.0 / np.where(joined, rate, 1.0), np.inf)
    for distance in (latency, slowness):
        np.fill_diagonal(distance, 0.0)
    return latency, slowness


def _units(seconds: Floats, unit: float) -> Floats:
    finite = np.where(np.isfinite(seconds), seconds, 0.0)
    return np.floor(finite / unit * (1.0 - 1e-12))


def _horizon(table: WorkTable, unit: float, mask: Bools) -> int:
    """An upper bound on the makespan of some best solution: all tasks one after another, with their delays."""
    longest = np.where(mask, table.chain, 0.0).max(axis=1)
    latency, slowness = class_distances(table)
    far = float(np.where(np.isfinite(latency), latency, 0.0).max(initial=0.0))
    slow = float(np.where(np.isfinite(slowness), slowness, 0.0).max(initial=0.0))
    data = far * table.problem.graph.n_items + slow * float(table.problem.graph.size.sum())
    return int(np.ceil((float(longest.sum()) + data) / unit)) + len(mask) + 1
