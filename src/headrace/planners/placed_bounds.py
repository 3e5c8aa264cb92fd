"""Least times before and after each task at each place, communication included.

The only assumption about routes is this: data that was not produced at a place took a first hop out of its producer's
place and a last hop into the place, and if it came from another zone, a hop out of that zone and one into this zone,
each at least as long as the fastest available. So the values hold under any contention and for data that is relayed
through other places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.core.scheduler import Problem
from headrace.model.check_case import Numbers
from headrace.model.graph import OUTSIDE, Bools, Floats, Graph, Ints
from headrace.model.network import EVERYWHERE, Network
from headrace.planners.placed_relaxation import HopTimes, PlacedTasks, least_before

MOST_STEPS = 2_000_000
"""Maximum of (tasks + reads) * places for which the tables are computed; beyond it they take longer than planning."""


@dataclass(frozen=True, eq=False)
class Hops:
    """Minimum latency and seconds per byte of a transfer into and out of each place, or each zone."""

    into: tuple[Floats, Floats]
    out: tuple[Floats, Floats]

    def at(self, places: Ints) -> Hops:
        return Hops((self.into[0][places], self.into[1][places]), (self.out[0][places], self.out[1][places]))


def hops_of(network: Network) -> Hops:
    """O(places^2), a row of places at a time."""
    n = network.n_places
    into, out = np.full((2, n), np.inf), np.full((2, n), np.inf)
    for p in range(n):
        others = np.flatnonzero(np.arange(n) != p)
        zone, there = network.zone[p], network.zone[others]
        port = np.minimum(network.port[p], network.port[others])
        for least, bandwidth, latency in (
            (out, network.route_bandwidth[zone, there], network.route_latency[zone, there]),
            (into, network.route_bandwidth[there, zone], network.route_latency[there, zone]),
        ):
            joined = bandwidth > 0
            slowness = 1.0 / np.minimum(bandwidth, port)[joined]
            least[0, p] = latency[joined].min(initial=np.inf)
            least[1, p] = slowness.min(initial=np.inf)
    return Hops((into[0], into[1]), (out[0], out[1]))


def borders_of(network: Network) -> Hops:
    """The same for zones, of transfers from and to other zones; inf if there are none. O(zones^2 + places)."""
    widest = np.zeros(len(network.route_bandwidth))
    np.maximum.at(widest, network.zone, network.port)
    rate = np.minimum(network.route_bandwidth, np.minimum.outer(widest, widest))
    np.fill_diagonal(rate, 0.0)
    joined = rate > 0
    latency = np.where(joined, network.route_latency, np.inf)
    slowness = np.full(rate.shape, np.inf)
    np.divide(1.0, rate, out=slowness, where=joined)
    into, out = ((latency.min(axis=k), slowness.min(axis=k)) for k in (0, 1))
    return Hops(into, out)


def affordable(problem: Problem) -> bool:
    """Whether the tables are small enough to be computed for every plan."""
    graph = problem.graph
    places = len(np.unique(problem.platform.network.host_place))
    return (graph.n_tasks + len(graph.reads)) * places <= MOST_STEPS


def before_and_after(problem: Problem, quick: Floats) -> tuple[Floats, Floats]:
    """Least times before the start and after the finish of each task at each place with hosts.

    `quick` are the least run times there. O((tasks + reads) * places).
    """
    graph, network = problem.graph, problem.platform.network
    places, column = np.unique(network.host_place, return_inverse=True)
    hops, borders = hops_of(network), borders_of(network)
    near, zone = hops.at(places), network.zone[places]
    border = borders.at(zone)
    area, capacity = _areas(problem, column, len(places))
    maker, reader, size = task_edges(graph)
    before = _from_origin(problem, hops, borders, places)
    after = _to_origin(problem, hops, borders, places)
    np.maximum(before, graph.release[:, None], out=before)
    ptr, by_reader = _grouped(reader, graph.n_tasks)
    into, out = HopTimes(*near.into, *border.into), HopTimes(*near.out, *border.out)
    zones = np.unique(zone, return_inverse=True)[1].reshape(-1).astype(np.int64)
    if len(np.unique(network.zone)) == network.n_places:  # every hop crosses a border
        zones[:] = 0
    tasks = PlacedTasks(
        graph.order, ptr, maker[by_reader], size[by_reader], quick, area, capacity, zones, into, out
    )
    least_before(tasks, before)
    ptr, by_maker = _grouped(maker, graph.n_tasks)
    backwards = tasks._replace(
        order=graph.order[::-1].copy(),
        ptr=ptr,
        before=reader[by_maker],
        size=size[by_maker],
        into=out,
        out=into,
    )
    least_before(backwards, after)
    return before, after


def quickest_at_places(problem: Problem) -> Floats:
    """Least run time of each task at each place with hosts: O(tasks * places + classes * hosts)."""
    graph, network = problem.graph, problem.platform.network
    places, column = np.unique(network.host_place, return_inverse=True)
    row, may = may_run(problem)
    pairs, of_task = np.unique(graph.speed_class * np.int64(len(may)) + row, return_inverse=True)
    rates = problem.platform.rates(graph)
    slow = np.where(may[pairs % len(may)], 1.0 / rates[pairs // len(may)], np.inf)
    slowness = np.full((len(places), len(pairs)), np.inf)
    np.minimum.at(slowness, column, slow.T)
    slowest: Floats = slowness.T[of_task]
    somewhere = np.isfinite(slowest)
    quick = np.full(slowest.shape, np.inf)
    np.multiply(graph.work[:, None], slowest, out=quick, where=somewhere)
    return quick


def may_run(problem: Problem) -> tuple[Numbers, Bools]:
    """The row of each task, and [rows, hosts] where tasks of each row may run by their cores and the constraints.

    A task that may run nowhere, for which there is no plan, is taken to be free.
    """
    graph = problem.graph
    cores = np.array([h.cores for h in problem.platform.hosts])
    allowed = np.zeros(graph.n_tasks, np.int64)
    rules = np.ones((1, len(cores)), np.bool_)
    if problem.constraints is not None:
        allowed, rules = problem.constraints.allowed_class.astype(np.int64), problem.constraints.allowed
    base = int(graph.cores.max(initial=0)) + 1
    keys, row = np.unique(allowed * base + graph.cores, return_inverse=True)
    may = rules[keys // base] & (cores[None, :] >= (keys % base)[:, None])
    may[~may.any(axis=1)] = True
    return row, may


def _areas(problem: Problem, column: NDArray[np.intp], places: int) -> tuple[Floats, Floats]:
    """Each task's minimum use of each place, and the capacity of places, in units of nominal speed times seconds."""
    graph, hosts = problem.graph, problem.platform.hosts
    weight = np.array([h.speed * (1.0 - h.load) for h in hosts])
    share = np.full((places, len(graph.class_kind)), np.inf)
    np.minimum.at(share, column, (weight / problem.platform.rates(graph)).T)
    capacity = np.zeros(places)
    np.add.at(capacity, column, weight * np.array([h.cores for h in hosts]))
    used = graph.work * graph.cores
    return used[:, None] * share.T[graph.speed_class], capacity


def task_edges(graph: Graph) -> tuple[Ints, Ints, Floats]:
    """Every pair of tasks of which one reads from the other, once, with the size of the largest item between them."""
    reader = np.repeat(np.arange(graph.n_tasks, dtype=np.int64), np.diff(graph.read_ptr))
    maker = graph.producer[graph.reads].astype(np.int64)
    inner = maker != OUTSIDE
    key = maker[inner] * graph.n_tasks + reader[inner]
    pair, number = np.unique(key, return_inverse=True)
    size = np.zeros(len(pair))
    np.maximum.at(size, number, graph.size[graph.reads[inner]])
    n = max(graph.n_tasks, 1)
    return (pair // n).astype(np.int32), (pair % n).astype(np.int32), size


def _grouped(task: Ints, n: int) -> tuple[Ints, Ints]:
    ptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(task, minlength=n), out=ptr[1:])
    return ptr, np.argsort(task, kind="stable").astype(np.int32)


def _from_origin(problem: Problem, hops: Hops, borders: Hops, places: Ints) -> Floats:
    """Minimum time for a task's inputs from outside to reach each place."""
    graph, network = problem.graph, problem.platform.network
    fetched = fetched_items(problem)
    largest = np.zeros(graph.n_tasks)
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    wanted = fetched[graph.reads]
    np.maximum.at(largest, reader[wanted], graph.size[graph.reads[wanted]])
    return _journey(largest, network, places, (hops.out, hops.into), (borders.out, borders.into))


def _to_origin(problem: Problem, hops: Hops, borders: Hops, places: Ints) -> Floats:
    """Least time for a task's results to return from each place."""
    graph, network = problem.graph, problem.platform.network
    returned = returned_items(problem)
    largest = np.zeros(graph.n_tasks)
    np.maximum.at(largest, graph.producer[returned], graph.size[returned])
    return _journey(largest, network, places, (hops.into, hops.out), (borders.into, borders.out))


_Ways = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
"""Latency and seconds per byte of hops at the origin, and of hops at the other end."""


def _journey(size: Floats, network: Network, places: Ints, hops: _Ways, borders: _Ways) -> Floats:
    """[tasks, places]: the longest of the hops at the origin, at the place, and at the borders of their zones."""
    time = np.zeros((len(size), len(places)))
    moved = np.flatnonzero(size)
    if len(moved):
        origin, large = network.origin, size[moved, None]
        zone, home = network.zone[places], network.zone[origin]

        def longer(ways: _Ways, there: int, here: Ints) -> Floats:
            far, near = ways
            found: Floats = np.maximum(
                far[0][there] + large * far[1][there], near[0][here] + large * near[1][here]
            )
            return found

        inside = longer(hops, origin, places)
        across = np.maximum(inside, longer(borders, home, zone))
        time[moved] = np.where(places == origin, 0.0, np.where(zone == home, inside, across))
    return time


def fetched_items(problem: Problem) -> Bools:
    """Items from outside that are only at the origin."""
    graph = problem.graph
    if problem.platform.network.origin == EVERYWHERE:
        return np.zeros(graph.n_items, np.bool_)
    fetched: Bools = (graph.producer == OUTSIDE) & (graph.size > 0)
    fetched[[item for item, held in problem.holders.items() if held]] = False
    return fetched


def returned_items(problem: Problem) -> Bools:
    """Items produced by a task that must return to the origin."""
    graph = problem.graph
    if problem.platform.network.origin == EVERYWHERE:
        return np.zeros(graph.n_items, np.bool_)
    returned: Bools = graph.result & (graph.producer != OUTSIDE) & (graph.size > 0)
    returned &= np.diff(graph.destinations.ptr) == 0  # those may be nearer than the origin
    return returned
