"""A problem as the compiled loops read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.planners.kernels.arrays import Choice, Machines, Tasks


@dataclass(frozen=True, eq=False)
class Arrays:
    """A problem as the kernels read it."""

    tasks: Tasks
    machines: Machines


def arrays_of(problem: Problem) -> Arrays:
    """O(tasks + items + reads + hosts * kinds)."""
    graph, platform, network = problem.graph, problem.platform, problem.platform.network
    everywhere, held_ptr, held = _where_inputs_lie(problem)
    tasks = Tasks(
        work=graph.work,
        kind=graph.kind,
        size=graph.size,
        everywhere=everywhere,
        read_ptr=graph.read_ptr,
        reads=graph.reads,
        write_ptr=graph.write_ptr,
        writes=graph.writes,
        result=graph.result,
        held_ptr=held_ptr,
        held=held.astype(np.int64),
    )
    free_at = np.zeros(len(platform.hosts))
    for host, since in problem.free_at.items():
        free_at[host] = since
    cores = np.array([h.cores for h in platform.hosts])
    machines = Machines(
        rate=platform.rates(graph.kinds),
        free_at=free_at,
        core_ptr=np.concatenate(([0], np.cumsum(cores))),
        host_place=network.host_place.astype(np.int64),
        zone=network.zone.astype(np.int64),
        port=network.port,
        out_port=network.out_port.astype(np.int64),
        in_port=network.in_port.astype(np.int64),
        route_ptr=network.route_ptr,
        route_links=network.route_links,
        route_bandwidth=network.route_bandwidth,
        route_latency=network.route_latency,
        origin=network.origin,
        booked=platform.contention != "none",
    )
    return Arrays(tasks, machines)


def choice_of(
    problem: Problem,
    *,
    hosts: Ints | None = None,
    forced: Ints | None = None,
    stay: Bools | None = None,
    extra: Floats | None = None,
    by_start: bool = False,
) -> Choice:
    """Where tasks may go, and which place is best; without arguments: earliest finish on any host.

    `hosts` are the only ones allowed, `forced` gives tasks one host each (-1: any), `stay` marks tasks that
    go where all their inputs are, `extra` ([tasks, places]) is added to the goal. O(tasks + hosts).
    """
    n, network = problem.graph.n_tasks, problem.platform.network
    if hosts is None:
        hosts = np.arange(len(problem.platform.hosts), dtype=np.int32)
    return Choice(
        hosts=np.sort(hosts).astype(np.int64),
        places=np.unique(network.host_place[hosts]).astype(np.int64),
        forced=np.full(n, -1, np.int32) if forced is None else forced.astype(np.int32),
        stay=np.zeros(n, np.bool_) if stay is None else stay,
        extra=np.zeros((1, network.n_places)) if extra is None else extra,
        by_start=by_start,
    )


def _where_inputs_lie(problem: Problem) -> tuple[Bools, Ints, Ints]:
    """Which items are everywhere, and the CSR of places that hold the others from the start.

    The origin comes last: of copies that are as near, the last is taken.
    """
    graph, origin = problem.graph, problem.platform.network.origin
    outside = graph.producer == OUTSIDE
    stated = np.zeros(graph.n_items, np.bool_)
    stated[[i for i, places in problem.holders.items() if places]] = True
    everywhere = outside & ~stated if origin == EVERYWHERE else np.zeros(graph.n_items, np.bool_)
    counts = np.zeros(graph.n_items, np.int32)
    if origin != EVERYWHERE:
        counts[outside] = 1
    for item, places in problem.holders.items():
        if places:
            counts[item] = len(places)
    held_ptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    held = np.full(int(held_ptr[-1]), origin, np.int32)
    for item, places in problem.holders.items():
        held[held_ptr[item] : held_ptr[item] + len(places)] = sorted(places, key=lambda p: p == origin)
    return everywhere, held_ptr, held
