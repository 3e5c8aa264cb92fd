"""From a problem and an order of tasks to a plan: builds the arrays, runs the compiled list scheduler."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.planners.bounds import lower_bound
from headrace.planners.kernels.calendar import new_calendar
from headrace.planners.kernels.listing import (
    NO_ROUTE,
    OK,
    Copies,
    Log,
    Machines,
    Moves,
    Scratch,
    Tasks,
    list_schedule,
)
from headrace.simulator.replay import replay

MANY_READERS = 16
"""Items with at least this many readers get a dense row over places."""


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
        held=held,
    )
    free_at = np.zeros(len(platform.hosts))
    for host, since in problem.free_at.items():
        free_at[host] = since
    cores = np.array([h.cores for h in platform.hosts])
    machines = Machines(
        rate=platform.rates(graph.kinds),
        free_at=free_at,
        core_ptr=np.concatenate(([0], np.cumsum(cores))),
        host_place=network.host_place,
        zone=network.zone,
        port=network.port,
        out_port=network.out_port,
        in_port=network.in_port,
        route_ptr=network.route_ptr,
        route_links=network.route_links,
        route_bandwidth=network.route_bandwidth,
        route_latency=network.route_latency,
        origin=network.origin,
        booked=platform.contention != "none",
    )
    return Arrays(tasks, machines)


def list_plan(
    problem: Problem, order: Ints, name: str, forced: Ints | None = None, began: float | None = None
) -> Plan:
    """The plan that places tasks in `order`, each on its forced host or where it finishes first."""
    began = time.perf_counter() if began is None else began
    graph, platform = problem.graph, problem.platform
    arrays = arrays_of(problem)
    tasks, machines = arrays.tasks, arrays.machines
    n = graph.n_tasks
    forced = np.full(n, -1, np.int32) if forced is None else forced
    host, core = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start, finish = np.zeros(n), np.zeros(n)
    deliveries = len(graph.reads) + int(graph.result.sum())
    moves = _room_for_moves(deliveries)
    longest = int(np.diff(machines.route_ptr).max(initial=0)) + 2
    most_inputs = int(np.diff(graph.read_ptr).max(initial=0))
    scratch = _room_for_scratch(problem, most_inputs, longest)
    n_cores, n_links = int(machines.core_ptr[-1]), platform.network.n_links
    room = 4 * (n + n_cores) + 64
    link_room = 4 * (deliveries * longest + min(n_links, deliveries * longest)) + 64
    while True:
        outcome, at = list_schedule(
            order,
            forced,
            tasks,
            machines,
            new_calendar(n_cores, room),
            new_calendar(n_links, link_room if machines.booked else 1),
            _room_for_copies(problem, len(tasks.held) + graph.n_items + deliveries),
            moves,
            _room_for_log(most_inputs * longest),
            scratch,
            host,
            core,
            start,
            finish,
        )
        if outcome in (OK, NO_ROUTE):
            break
        room, link_room, moves = 2 * room, 2 * link_room, _room_for_moves(deliveries)
    if outcome == NO_ROUTE:
        raise NoPlan(
            f"task {graph.task_names[at]!r} cannot get its inputs at any host, or its results cannot return",
            where=platform.name,
            hint="add a [[link]] or uplink so that a route exists",
        )
    used = int(moves.count[0])
    plan = Plan(
        graph,
        platform,
        name,
        host,
        core,
        start,
        finish,
        moves.item[:used],
        moves.source[:used],
        moves.target[:used],
        moves.start[:used],
        moves.finish[:used],
        notes=_notes(problem),
    )
    return finished_plan(plan, problem, began)


def finished_plan(plan: Plan, problem: Problem, began: float) -> Plan:
    """The plan with its bound and planning time.

    Where links are shared fairly, the times are those of carrying the decisions out: only then do
    they follow the platform's own rule.
    """
    if problem.platform.contention == "fair":
        plan = replay(plan, holders=problem.holders)
    return replace(plan, bound=lower_bound(problem), seconds=time.perf_counter() - began)


def _where_inputs_lie(problem: Problem) -> tuple[Bools, Ints, Ints]:
    """Which items are everywhere, and the CSR of places that hold the others from the start."""
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
        held[held_ptr[item] : held_ptr[item] + len(places)] = places
    return everywhere, held_ptr, held


def _notes(problem: Problem) -> tuple[str, ...]:
    graph, platform = problem.graph, problem.platform
    outside = (graph.producer == OUTSIDE) & (graph.size > 0)
    if platform.origin is None and not problem.holders and outside.any():
        return (
            f"{platform.name} has no origin: {int(outside.sum())} inputs from outside are taken to be on "
            "every host, and results stay where they are made",
        )
    return ()


def _room_for_moves(count: int) -> Moves:
    def ints() -> Ints:
        return np.zeros(count, np.int32)

    return Moves(ints(), ints(), ints(), np.zeros(count), np.zeros(count), np.zeros(1, np.int64))


def _room_for_scratch(problem: Problem, inputs: int, links: int) -> Scratch:
    places = problem.platform.network.n_places
    return Scratch(
        arrival=np.empty(places),
        since=np.empty(places),
        back=np.empty(places),
        promise=np.empty(len(problem.platform.hosts)),
        inputs=np.empty(inputs, np.int64),
        times=np.empty(inputs),
        links=np.empty(links, np.int64),
    )


def _room_for_log(count: int) -> Log:
    return Log(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count),
        np.zeros(1, np.int64),
    )


def _room_for_copies(problem: Problem, count: int) -> Copies:
    graph, places = problem.graph, problem.platform.network.n_places
    popular = np.diff(graph.reader_ptr) >= MANY_READERS
    row = np.full(graph.n_items, -1, np.int32)
    row[popular] = np.arange(int(popular.sum()), dtype=np.int32)
    rows = int(popular.sum())
    return Copies(
        head=np.full(graph.n_items, -1, np.int32),
        next=np.full(count, -1, np.int32),
        place=np.zeros(count, np.int32),
        time=np.zeros(count),
        count=np.zeros(1, np.int64),
        row=row,
        arrival=np.full((rows, places), np.inf),
        node=np.full((rows, places), -1, np.int32),
    )


def mean_costs(problem: Problem) -> tuple[Floats, float, float]:
    """Mean run time of each task over hosts; mean latency and mean seconds per byte over pairs of hosts.

    O(tasks + places^2). Pairs without a route do not count.
    """
    graph, network = problem.graph, problem.platform.network
    cost = graph.work * (1.0 / problem.platform.rates(graph.kinds)).mean(axis=1)[graph.kind]
    weight = np.bincount(network.host_place, minlength=network.n_places).astype(np.float64)
    used = np.flatnonzero(weight)
    zone, slowness, weight = network.zone[used], 1.0 / network.port[used], weight[used]
    latency = seconds = pairs = 0.0
    for i in range(len(used)):
        bandwidth = network.route_bandwidth[zone[i], zone]
        count = weight[i] * np.where(bandwidth > 0, weight, 0.0)
        pairs += count.sum() - weight[i]
        count[i] = 0.0
        with np.errstate(divide="ignore"):
            slowest = np.maximum(np.maximum(slowness[i], slowness), 1.0 / bandwidth)
        latency += float((count * network.route_latency[zone[i], zone]).sum())
        seconds += float((count[count > 0] * slowest[count > 0]).sum())
    return (cost, latency / pairs, seconds / pairs) if pairs > 0 else (cost, 0.0, 0.0)
