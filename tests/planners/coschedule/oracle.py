"""The optimum of small problems with whole numbers, proven: a model over time slots, apart from the planner's.

For each file, arc and moment a 0-1 variable says that a transfer starts then; likewise for jobs, hosts and moments.
For each file, place and moment another says whether a copy lies there. Everything else is sums over these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from headrace.model.platform import Platform
from headrace.model.program import Program


def least_makespan(program: Program, platform: Platform, horizon: int) -> int | None:
    """The least makespan up to the horizon; None if there is none. All times must be whole numbers."""
    graph, network = program.graph, platform.network
    model: Any = cp_model.CpModel()
    slots, places = range(horizon), range(network.n_places)
    arcs = [(p, q) for p in places for q in places if p != q and network.bandwidth(p, q) > 0]
    items = [i for i in range(graph.n_items) if graph.size[i] > 0]
    initial_locations = graph.initial_locations.places_by_item(graph, platform)
    destinations = graph.destinations.places_by_item(graph, platform)
    rates = platform.rates(graph)
    makespan = model.new_int_var(0, horizon, "makespan")
    run: dict[tuple[int, int, int], Any] = {}
    for j in range(graph.n_tasks):
        for h in range(len(platform.hosts)):
            for t in slots:
                if t >= graph.release[j] and t + _took(graph, rates, j, h) <= min(horizon, graph.deadline[j]):
                    run[j, h, t] = model.new_bool_var("")
                    model.add(makespan >= t + _took(graph, rates, j, h)).only_enforce_if(run[j, h, t])
        model.add_exactly_one(v for (k, _, _), v in run.items() if k == j)
    move: dict[tuple[int, int, int, int], Any] = {}
    for i in items:
        for p, q in arcs:
            seconds = _whole(network.seconds(p, q, float(graph.size[i])))
            for t in range(horizon - seconds + 1):
                move[i, p, q, t] = model.new_bool_var("")
                model.add(makespan >= t + seconds).only_enforce_if(move[i, p, q, t])
        for q in places:
            model.add(
                sum(v for (k, _, b, _), v in move.items() if k == i and b == q)
                <= (0 if q in initial_locations.get(i, ()) else 1)
            )

    def ready(i: int, p: int, by: int) -> Any:
        """1 if the item is at the place by then."""
        if p in initial_locations.get(i, ()):
            return 1
        come = [
            v for (k, a, b, t), v in move.items()
            if k == i and b == p and t + _whole(network.seconds(a, b, float(graph.size[i]))) <= by
        ]  # fmt: skip
        made = [
            v for (j, h, t), v in run.items()
            if j == graph.producer[i] and network.host_place[h] == p and t + _took(graph, rates, j, h) <= by
        ]  # fmt: skip
        return sum(come) + sum(made)

    for (i, p, _, t), v in move.items():
        model.add(ready(i, p, t) >= 1).only_enforce_if(v)
    for (j, h, t), v in run.items():
        for i in graph.reads_of(j).tolist():
            if graph.size[i] > 0:
                model.add(ready(i, int(network.host_place[h]), t) >= 1).only_enforce_if(v)
    for i, at in destinations.items():
        model.add(sum(ready(i, p, horizon) for p in at) >= 1)
        for p in places:
            made_there = [
                v for (j, h, _), v in run.items() if j == graph.producer[i] and network.host_place[h] == p
            ]
            come = [v for (k, _, b, _), v in move.items() if k == i and b == p]
            model.add(sum(made_there) + sum(come) <= 1)
    for t in slots:
        for h, host in enumerate(platform.hosts):
            busy = [
                int(graph.cores[j]) * v
                for (j, g, s), v in run.items()
                if g == h and s <= t < s + _took(graph, rates, j, g)
            ]
            model.add(sum(busy) <= host.cores)
        for link in range(network.n_links):
            carried = [
                v for (i, p, q, s), v in move.items()
                if link in network.route(p, q) and s <= t < s + _whole(network.seconds(p, q, float(graph.size[i])))
            ]  # fmt: skip
            model.add(sum(carried) <= 1)
    if np.isfinite(network.storage).any():
        _add_storage(model, program, platform, horizon, run, move, initial_locations, destinations)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 120
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), "the oracle proved nothing"
    return int(solver.value(makespan)) if status == cp_model.OPTIMAL else None


def _add_storage(
    model: Any,
    program: Program,
    platform: Platform,
    horizon: int,
    run: Any,
    move: Any,
    initial_locations: Any,
    destinations: Any,
) -> None:
    """A copy takes room from when it is begun until it was last used, or to the end where it must be."""
    graph, network = program.graph, platform.network
    rates = platform.rates(graph)
    for site in np.flatnonzero(np.isfinite(network.storage)).tolist():
        lies: dict[int, list[Any]] = {t: [] for t in range(horizon)}
        for p in np.flatnonzero(network.site == site).tolist():
            for i in (i for i in range(graph.n_items) if graph.size[i] > 0):
                here = [model.new_bool_var("") for _ in range(horizon)]
                begun: list[tuple[Any, int]] = [(1, 0)] if p in initial_locations.get(i, ()) else []
                begun += [(v, t) for (k, _, b, t), v in move.items() if k == i and b == p]
                begun += [
                    (v, t)
                    for (j, h, t), v in run.items()
                    if j == graph.producer[i] and network.host_place[h] == p
                ]
                used = [
                    (v, t + _whole(network.seconds(a, b, float(graph.size[i]))))
                    for (k, a, b, t), v in move.items() if k == i and p in (a, b)
                ]  # fmt: skip
                used += [
                    (v, t + _took(graph, rates, j, h))
                    for (j, h, t), v in run.items()
                    if network.host_place[h] == p and (i in graph.reads_of(j) or graph.producer[i] == j)
                ]
                for t in range(horizon):
                    started = sum(v for v, s in begun if s <= t)
                    needed = [v for v, end in used if end > t]
                    for v in needed:  # begun and still to be used: it lies here
                        model.add(here[t] >= started + v - 1)
                    if p in destinations.get(i, ()):
                        model.add(here[t] >= started)
                    lies[t].append(_whole(float(graph.size[i])) * here[t])
        for t in range(horizon):
            model.add(sum(lies[t]) <= int(network.storage[site]))


def _took(graph: Any, rates: Any, job: int, host: int) -> int:
    return _whole(float(graph.work[job] / rates[graph.speed_class[job], host]))


def _whole(value: float) -> int:
    assert abs(value - round(value)) < 1e-9, f"{value} is not whole"
    return round(value)
