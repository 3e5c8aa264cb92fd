"""Small problems as a whole: a constraint program improves the known plan and the known bound."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.bound import Bound
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.planners.bounds import lower_bound
from headrace.planners.search.exact_model import (
    Decisions,
    ExactModel,
    Journeys,
    holders_of,
    journeys,
    pools_of,
)
from headrace.simulator.replay.replay import replay

NAME = "exact model"
_MOST_DELAYS, _MOST_SENDS = 60_000, 12_000
"""Maximum number of pairs of pools that edges join, and of transfers that a plan may contain, in the program,"""
_DELAYS, _SENDS = 8_000, 2_000
"""and in each second of time: only to build the program takes a while."""
_PACE = 0.12
"""Units of the solver's deterministic time in a second on a machine of ordinary speed."""
_ALONE = 0.4
"""Share of the time for a single search of the solver."""
_BATCH = 8
"""Parts of the solver's portfolio that run between two exchanges of what they know."""
_CLOSE = 1.0 + 1e-4
"""Plan and bound are this close when the solver has proven the plan optimal, up to rounding."""
_DOWN = 1.0 - 1e-12
"""Rounding of a product."""
_LOOK = 0.05
"""Seconds between two looks at the clock and at whether to stop."""


def can_solve(problem: Problem, seconds: float = np.inf) -> bool:
    """Whether the constraint program covers the problem and is small enough to be of use in this time."""
    graph, places = problem.graph, problem.platform.network.n_places
    begun = problem.free_at or problem.since or problem.link_free_at
    if problem.constraints is not None or begun or graph.n_tasks < 2 or int(graph.cores.max()) > 1:
        return False
    if len(graph.destinations.index):
        return False
    if problem.platform.contention == "none":
        return len(graph.reads) * len(pools_of(problem)) ** 2 <= min(_MOST_DELAYS, _DELAYS * seconds)
    most = min(_MOST_SENDS, _SENDS * seconds)
    return problem.platform.contention == "fifo" and graph.n_items * places**2 <= most


def solved_exactly(
    problem: Problem, plan: Plan, bound: Bound, seconds: float, until: float, stop: Callable[[], bool]
) -> tuple[Plan, Bound]:
    """The best plan and the best bound that a solver finds in this time, from those that are known.

    First by one search, which is the quickest where it succeeds, then by a portfolio of searches that take turns on all
    cores. The time is the solver's own count of its work, so that the same call gives the same answer; the clock ends
    it at `until`. For the same reason the solver starts from the quick bound: others depend on the clock.
    """
    proven = lower_bound(problem)
    for portfolio, share in ((False, _ALONE), (True, 1.0 - _ALONE)):
        if work_clock() < until and not stop() and plan.makespan > max(bound, proven) * _CLOSE:
            plan, proven = _solved(problem, plan, proven, share * seconds, until, stop, portfolio)
    return plan, max(bound, proven)


def _solved(
    problem: Problem,
    plan: Plan,
    bound: Bound,
    seconds: float,
    until: float,
    stop: Callable[[], bool],
    portfolio: bool,
) -> tuple[Plan, Bound]:
    from ortools.sat.python import cp_model

    model = ExactModel(problem, plan, bound)
    solver = cp_model.CpSolver()
    chosen = solver.parameters
    chosen.random_seed = problem.seed % 2**31
    chosen.num_workers = 1
    if portfolio:
        chosen.interleave_search, chosen.interleave_batch_size = True, _BATCH
        chosen.num_workers = min(_BATCH, os.cpu_count() or 1)
    chosen.max_deterministic_time = _PACE * seconds
    status = _run(solver, model.model, until, stop)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        return plan, bound
    bound = max(bound, Bound(float(solver.best_objective_bound) * model.unit * _DOWN, NAME))
    if status == cp_model.UNKNOWN:
        return plan, bound
    found = _carried_out(problem, model, model.decisions(solver))
    better = found.makespan < plan.makespan
    return replace(found, scheduler=plan.scheduler, notes=plan.notes) if better else plan, bound


def _run(solver: Any, model: Any, until: float, stop: Callable[[], bool]) -> int:
    """Solve in another thread, and stop when the time is up or when `stop`, asked from this one, says so."""
    status: list[int] = []
    running = Thread(target=lambda: status.append(int(solver.solve(model))), daemon=True)
    running.start()
    try:
        while running.is_alive():
            running.join(_LOOK)
            if work_clock() > until or stop():
                solver.stop_search()
    finally:
        solver.stop_search()
        running.join()
    return status[0]


def _carried_out(problem: Problem, model: ExactModel, found: Decisions) -> Plan:
    """The plan of these decisions, with the times that follow from them."""
    graph, network = problem.graph, problem.platform.network
    order = _in_order(model, found)
    start = _apart([found.start[t] for t in order], model.unit)[np.argsort(order)]
    host, core = _cores(model, found, order)
    rates = problem.platform.rates(graph)[graph.speed_class, host]
    limited = problem.platform.contention != "none"
    sends = _needed(model, host, found.sends) if limited else _journeys(problem, host)
    moves = np.array(sends, np.int64).reshape(-1, 4)
    begin = _apart(moves[:, 3].tolist(), model.unit)
    seconds = [network.seconds(a, b, float(graph.size[i])) for i, a, b, _ in sends]
    plan = Plan(
        graph=graph,
        platform=problem.platform,
        scheduler=model.plan.scheduler,
        host=host,
        core=core,
        start=start,
        finish=start + graph.work / rates,
        move_item=moves[:, 0].astype(np.int32),
        move_source=moves[:, 1].astype(np.int32),
        move_target=moves[:, 2].astype(np.int32),
        move_start=begin,
        move_finish=begin + np.array(seconds),
    )
    return replay(plan, holders=problem.holders)


def _in_order(model: ExactModel, found: Decisions) -> list[int]:
    """Tasks by start; among equal starts those without a whole unit of run time first, predecessors before others."""
    position = np.argsort(model.graph.order)
    return sorted(
        range(model.graph.n_tasks),
        key=lambda t: (found.start[t], model.run[t][found.pool[t]], position[t]),
    )


def _apart(starts: list[int], unit: float) -> Floats:
    """Starts in seconds; equal ones differ a little, in the order given, so that a replay keeps that order."""
    rank = np.arange(len(starts)) / (1000.0 * (len(starts) + 1))
    seconds: Floats = (np.array(starts, np.float64) + rank) * unit
    return seconds


def _cores(model: ExactModel, found: Decisions, order: list[int]) -> tuple[Ints, Ints]:
    """The host and the core of each task: the first of its pool's that is free at its start."""
    graph, hosts = model.graph, model.problem.platform.hosts
    host, core = np.zeros(graph.n_tasks, np.int32), np.zeros(graph.n_tasks, np.int32)
    slots = [[(h, c) for h in pool.hosts for c in range(hosts[h].cores)] for pool in model.pools]
    free = [[0] * len(of_pool) for of_pool in slots]
    for t in order:
        pool = found.pool[t]
        slot = int(np.argmin(free[pool]))
        free[pool][slot] = max(free[pool][slot], found.start[t] + model.run[t][pool])
        host[t], core[t] = slots[pool][slot]
    return host, core


def _needs(problem: Problem, host: Ints, item: int) -> set[int]:
    """The places that need an item: those of its readers, and the origin for a result."""
    graph, network = problem.graph, problem.platform.network
    places = set(network.host_place[host[graph.readers_of(item)]].tolist())
    if graph.producer[item] != OUTSIDE and graph.result[item] and network.origin != EVERYWHERE:
        places.add(network.origin)
    return places


def _needed(
    model: ExactModel, host: Ints, sends: list[tuple[int, int, int, int]]
) -> list[tuple[int, int, int, int]]:
    """Without the transfers that nobody needs, which cost the solver nothing; in the order of their starts.

    Among equal starts those that take less than a unit are first, then by the position of the makers, and relays last.
    """
    graph, position = model.graph, np.argsort(model.graph.order)
    source_of = {(item, target): source for item, source, target, _ in sends}
    depth: dict[tuple[int, int], int] = {}
    for item in {item for item, *_ in sends}:
        for place in _needs(model.problem, host, item):
            way = [place]
            while (item, way[-1]) in source_of:
                way.append(source_of[item, way[-1]])
            depth |= {(item, target): len(way) - k for k, target in enumerate(way[:-1])}

    def key(send: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        item, source, target, start = send
        units = model.units(model.network.seconds(source, target, float(graph.size[item])))
        maker = int(graph.producer[item])
        return start, units, -1 if maker == OUTSIDE else int(position[maker]), depth[item, target]

    return sorted((send for send in sends if (send[0], send[2]) in depth), key=key)


def _journeys(problem: Problem, host: Ints) -> list[tuple[int, int, int, int]]:
    """Without limited links: the transfers that bring every item to its readers the quickest way."""
    graph, network = problem.graph, problem.platform.network
    sends: list[tuple[int, int, int, int]] = []
    for item in np.flatnonzero(graph.size > 0).tolist():
        maker = int(graph.producer[item])
        sources = holders_of(problem, item) if maker == OUTSIDE else {int(network.host_place[host[maker]])}
        if sources:
            way = journeys(network, sources, float(graph.size[item]))
            sends += [(item, a, b, 0) for a, b in sorted(_hops(way, _needs(problem, host, item)))]
    return sends


def _hops(way: Journeys, targets: set[int]) -> set[tuple[int, int]]:
    """The transfers by which an item reaches these places."""
    hops: set[tuple[int, int]] = set()
    for target in targets:
        while (before := int(way.before[target])) >= 0:
            hops.add((before, target))
            target = before
    return hops
