"""Regions of the network, and the bytes that must cross the links around each of them.

A region is a site, or the places of a class of hosts with ports. Data that is needed inside and made outside crosses
one of the links by which routes enter it, whatever it passes on its way; likewise for data that leaves. No link carries
more bytes than its bandwidth allows. With `fifo` and `routing = "links"` it is also busy for the latency of each
transfer, and for as long as the slowest link of the route needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE, Network
from headrace.planners.bounding.work_table import WorkTable


@dataclass(frozen=True, eq=False)
class Resource:
    """Links around a region that share their load: for one direction, or for both."""

    places: frozenset[int]
    inside: Bools
    """[classes] those in the region."""
    links: float
    """Seconds of transfers that fit into one second."""
    latency: float
    seconds_per_byte: float
    """Least seconds for which an item occupies one of the links, besides `latency`."""
    into: bool
    out: bool

    def seconds(self, items: Floats, size: Floats) -> Floats:
        """Least use of the links by so many items of this size in all."""
        used: Floats = items * self.latency + size * self.seconds_per_byte
        return used


@dataclass(frozen=True, eq=False)
class Needs:
    """Which data is needed where. An item that several tasks or the origin need counts in equal parts for each."""

    maker: Ints
    reader: Ints
    items: Floats
    bytes: Floats
    """Between two tasks, each pair once."""
    outside_reader: Ints
    outside_item: Ints
    part: Floats
    """[items] 1 / number of needs."""
    results: Floats
    result_bytes: Floats
    """[tasks] to the origin."""


def resources_of(table: WorkTable) -> list[Resource]:
    """Those of sites and of classes of hosts with ports: O(places + zones^2 + hosts)."""
    network = table.problem.platform.network
    found: list[Resource] = []
    zones = np.unique(network.zone)
    for zone in zones.tolist() if len(zones) > 1 else []:
        places = frozenset(np.flatnonzero(network.zone == zone).tolist())
        found += _around(table, places, *_zone_links(network, zone, zones))
    for c in range(len(table.cores)):
        at = np.unique(network.host_place[table.class_of_host == c])
        ports = frozenset(at.tolist()), network.in_port[at], network.out_port[at]
        if (ports[1] >= 0).all() and len(at) < network.n_places:
            found += _around(table, ports[0], set(ports[1].tolist()), set(ports[2].tolist()))
    return found


def _around(
    table: WorkTable, places: frozenset[int], into: set[int] | None, out: set[int] | None
) -> list[Resource]:
    """The resources of a region, given its links; None: there is a route without any."""
    network = table.problem.platform.network
    here = np.isin(network.host_place, sorted(places))
    inside = np.zeros(len(table.cores), np.bool_)
    inside[table.class_of_host[here]] = True
    if inside[table.class_of_host[~here]].any():
        return []
    if into is not None and out is not None and into & out:
        return [_resource(table, places, inside, into | out, True, True)]
    made = []
    if into:
        made.append(_resource(table, places, inside, into, True, False))
    if out:
        made.append(_resource(table, places, inside, out, False, True))
    return made


def _resource(
    table: WorkTable, places: frozenset[int], inside: Bools, links: set[int], into: bool, out: bool
) -> Resource:
    """By bytes; where links are busy until transfers finish and that is no weaker, by the time for which they are."""
    platform = table.problem.platform
    bandwidth = float(platform.network.link_bandwidth[sorted(links)].sum())
    latency, fastest = _quickest_route(platform.network, places, into, out)
    whole = platform.contention == "fifo" and platform.network.store_and_forward
    if whole and len(links) * fastest <= bandwidth * (1 + 1e-12):
        return Resource(places, inside, len(links), latency, 1.0 / fastest, into, out)
    return Resource(places, inside, 1.0, 0.0, 1.0 / bandwidth, into, out)


def _quickest_route(network: Network, places: frozenset[int], into: bool, out: bool) -> tuple[float, float]:
    """The least latency and the largest bandwidth of all routes into and out of a region."""
    inner = np.array(sorted(places))
    outer = np.setdiff1d(np.arange(network.n_places), inner)
    ends = [(inner, outer)] * out + [(outer, inner)] * into
    latency, bandwidth = np.inf, 0.0
    for source, target in ends:
        zones = network.zone[source][:, None], network.zone[target][None, :]
        rate = np.minimum(network.route_bandwidth[zones], network.port[target][None, :])
        rate = np.minimum(rate, network.port[source][:, None])
        joined = rate > 0
        latency = min(latency, float(network.route_latency[zones][joined].min(initial=np.inf)))
        bandwidth = max(bandwidth, float(rate.max(initial=0.0)))
    return latency, bandwidth


def _zone_links(network: Network, zone: int, zones: Ints) -> tuple[set[int] | None, set[int] | None]:
    """The last links of routes into a zone, and the first of routes out of it."""
    count = len(network.route_bandwidth)
    found: list[set[int] | None] = [set(), set()]
    for other in zones.tolist():
        for k, (a, b) in enumerate(((other, zone), (zone, other))):
            if other == zone or network.route_bandwidth[a, b] <= 0:
                continue
            first, last = network.route_ptr[a * count + b], network.route_ptr[a * count + b + 1]
            known = found[k]
            if known is not None and last > first:
                known.add(int(network.route_links[last - 1 if k == 0 else first]))
            else:
                found[k] = None
    return found[0], found[1]


def needs_of(problem: Problem) -> Needs:
    """O(reads + items)."""
    graph = problem.graph
    origin = problem.platform.network.origin
    returned = graph.result & (graph.producer != OUTSIDE) & (np.diff(graph.destinations.ptr) == 0)
    returned &= origin != EVERYWHERE
    part = (graph.size > 0) / np.maximum(np.diff(graph.reader_ptr) + returned, 1)
    reader = np.repeat(np.arange(graph.n_tasks, dtype=np.int32), np.diff(graph.read_ptr))
    maker, items = graph.producer[graph.reads], graph.reads
    inner = (maker != OUTSIDE) & (graph.size[items] > 0)
    key, number = np.unique(
        maker[inner].astype(np.int64) * graph.n_tasks + reader[inner], return_inverse=True
    )
    somewhere = np.full(graph.n_items, origin != EVERYWHERE)
    somewhere[[item for item, held in problem.holders.items() if held]] = True
    outer = (maker == OUTSIDE) & (graph.size[items] > 0) & somewhere[items]
    n = max(graph.n_tasks, 1)
    back = graph.producer[returned]
    return Needs(
        maker=(key // n).astype(np.int32),
        reader=(key % n).astype(np.int32),
        items=_sum(number, part[items[inner]], len(key)),
        bytes=_sum(number, (part * graph.size)[items[inner]], len(key)),
        outside_reader=reader[outer],
        outside_item=items[outer],
        part=part,
        results=_sum(back, part[returned], graph.n_tasks),
        result_bytes=_sum(back, (part * graph.size)[returned], graph.n_tasks),
    )


def _sum(number: Ints | NDArray[np.intp], values: Floats, count: int) -> Floats:
    return np.bincount(number, values, count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Crossings:
    """[tasks, 2] seconds of a resource that depend on one task alone: if it is in the region, and if it is not."""

    fetched: Floats
    """Inputs that are only on the other side."""
    returned: Floats
    """Results."""


def crossings(problem: Problem, needs: Needs, resource: Resource) -> Crossings:
    """O(tasks + inputs of tasks)."""
    graph, home = problem.graph, problem.platform.network.origin in resource.places
    nowhere, only = np.full(graph.n_items, not home), np.full(graph.n_items, home)
    for item, held in problem.holders.items():
        if held:
            at = [place in resource.places for place in held]
            nowhere[item], only[item] = not any(at), all(at)
    reader, read = needs.outside_reader, needs.outside_item
    used = resource.seconds(needs.part[read], needs.part[read] * graph.size[read])
    back = resource.seconds(needs.results, needs.result_bytes)
    fetched, returned = np.zeros((2, graph.n_tasks, 2))
    if resource.into:
        fetched[:, 0] = _sum(reader, used * nowhere[read], graph.n_tasks)
        returned[:, 1] = back * home
    if resource.out:
        fetched[:, 1] = _sum(reader, used * only[read], graph.n_tasks)
        returned[:, 0] = back * (not home)
    return Crossings(fetched, returned)
