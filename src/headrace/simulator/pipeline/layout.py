"""A deployment as the arrays that the compiled event loop works on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.heap import NONE
from headrace.arrays.records import Records
from headrace.model.deployment import Deployment, Placement
from headrace.model.errors import BadPlan
from headrace.model.graph import Floats, Ints
from headrace.model.link_graph import link_labels
from headrace.model.pipeline import MEGABYTE
from headrace.simulator.pipeline.state import (
    BUFFER,
    COPY,
    EDGE,
    OUTPUT,
    RESOURCE,
    ROUTER,
    STATION,
    UPCOMING_EVENT,
    PipelineState,
)

_GOLDEN = 0.6180339887498949
_LEAST_CORE = 0.01
"""A filter on a shared host has at least this part of a core, however little the plan has for it to do."""


class Layout:
    """Numbers for stations (placements), routers (their outgoing streams), hosts and resources."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.problem = deployment.problem
        self.pipeline = self.problem.pipeline
        self.network = self.problem.platform.network
        self.rank = {f.name: k for k, f in enumerate(self.pipeline.order)}
        self.host = {h.name: i for i, h in enumerate(self.problem.platform.hosts)}
        self.stations: list[Placement] = sorted(
            (p for p in deployment.placements if p.copies > 0 and (p.share > 0 or not self._reads(p))),
            key=lambda p: (self.rank[p.filter], self.host[p.host]),
        )
        for name in self.rank:
            if all(p.filter != name for p in self.stations):
                raise BadPlan(f"filter {name!r} has no copy", where="deployment", hint="plan it again")
        self.number = {(p.filter, p.host): i for i, p in enumerate(self.stations)}
        self.streams: dict[str, list[tuple[str, float]]] = {f.name: [] for f in self.pipeline.filters}
        for stream, volume in zip(self.pipeline.streams, self.pipeline.volumes, strict=True):
            taken = self.pipeline.inflow(stream.source)
            self.streams[stream.source].append((stream.target, volume / taken if taken > 0 else 0.0))
        self.router_ptr = _pointers([len(self.streams[p.filter]) for p in self.stations])

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The stations of each filter: the first, and how many."""
        ranges: dict[str, tuple[int, int]] = {}
        for number, placement in enumerate(self.stations):
            first, count = ranges.get(placement.filter, (number, 0))
            ranges[placement.filter] = (first, count + 1)
        return ranges

    @property
    def most_hosts(self) -> int:
        return max(count for _, count in self.ranges.values())

    @property
    def growth(self) -> float:
        """MB on the stream that carries most, for each MB read."""
        return max(self.pipeline.volumes) / self.pipeline.reader.volume

    @cached_property
    def bandwidth(self) -> Floats:
        """MB/s of all resources: ports and links, then segments."""
        segments = list(self.problem.segments.values())
        both: Floats = np.concatenate([self.network.link_bandwidth, segments]) / MEGABYTE
        return both

    @cached_property
    def resource_names(self) -> tuple[str, ...]:
        links = self.network.link_names or tuple(f"link {i}" for i in range(self.network.n_links))
        return (*links, *(f"{site} segment" for site in self.problem.segments))

    def initial_state(self, amount: float, portion: float, window: int, *, planned: bool) -> PipelineState:
        """Everything idle and every queue empty, with `amount` MB to read.

        Args:
            amount: MB that the reader reads.
            portion: MB that it reads at a time.
            window: Buffers that a station has room for.
            planned: Whether routers send in the planned proportions; else in turn.
        """
        stations, copies = self._stations(amount, window), self._copies()
        routers, edges = self._routers(planned)
        resources = self._resources()
        streams = max(1, int(np.diff(self.router_ptr).max()))
        route_ptr, route_links = self._routes()
        return PipelineState(
            stations,
            copies,
            np.zeros(len(copies) * streams, OUTPUT),
            routers,
            edges,
            _free_buffers(len(stations) * window),
            resources,
            self.network.out_port,
            self.network.in_port,
            self.network.zone,
            route_ptr,
            route_links,
            np.zeros(len(stations), np.int32),
            np.zeros(len(stations), np.int32),
            np.zeros(len(copies) + len(resources), UPCOMING_EVENT),
            np.zeros(5, np.int64),
            streams,
            len(self.network.route_bandwidth),
            self.ranges[self.pipeline.reader.name][1],
            portion,
            window,
        )

    def _reads(self, placement: Placement) -> bool:
        return placement.filter == self.pipeline.reader.name

    def _stations(self, amount: float, window: int) -> Records:
        hosts = np.array([self.host[p.host] for p in self.stations])
        copy_ptr = _pointers([p.copies for p in self.stations])
        stations = np.zeros(len(self.stations), STATION)
        stations["place"] = self.network.host_place[hosts]
        stations["rate"] = self._rates()
        stations["to_read"] = [amount * p.share if self._reads(p) else 0.0 for p in self.stations]
        stations["input_share"] = self._input_shares()
        stations["room"] = window
        stations["first_copy"], stations["last_copy"] = copy_ptr[:-1], copy_ptr[1:]
        stations["first_router"], stations["last_router"] = self.router_ptr[:-1], self.router_ptr[1:]
        for queue in ("first_waiting", "last_waiting", "first_buffer", "last_buffer"):
            stations[queue] = NONE
        return stations

    def _copies(self) -> Records:
        numbers = [p.copies for p in self.stations]
        copies = np.zeros(sum(numbers), COPY)
        copies["station"] = np.repeat(np.arange(len(numbers)), numbers)
        return copies

    def _resources(self) -> Records:
        resources = np.zeros(len(self.bandwidth), RESOURCE)
        resources["bandwidth"] = self.bandwidth
        resources["first"] = resources["last"] = NONE
        return resources

    def core_rate(self, placement: Placement) -> float:
        """MB/s of its own input that one core works off."""
        per_read = self.pipeline.inflow(placement.filter) / self.pipeline.reader.volume
        capacity = self.problem.capacity(placement.filter, placement.host)
        return capacity * per_read if per_read > 0 else math.inf

    def _rates(self) -> Floats:
        """MB/s of each copy. With W_F readers keep to the plan, or they would use up the power it holds in reserve."""
        rates: Floats = np.array([self.core_rate(p) for p in self.stations]) * self._core_shares()
        if self.problem.knobs.spare > 0:
            planned = [p.rate / p.copies if self._reads(p) else math.inf for p in self.stations]
            rates = np.minimum(rates, planned)
        return rates

    def _core_shares(self) -> Floats:
        """Of a core, for each copy: all of it; filters that share a host have their planned parts of its cores.

        Cores that the plan leaves idle are theirs in the same proportion.
        """
        if not self.problem.several_per_host:
            return np.ones(len(self.stations))
        used = np.array([max(p.busy, _LEAST_CORE) for p in self.stations])
        hosts = np.array([self.host[p.host] for p in self.stations])
        cores = np.array([h.cores for h in self.problem.platform.hosts])
        part = used * (cores / np.maximum(np.bincount(hosts, used, len(cores)), _LEAST_CORE))[hosts]
        shares: Floats = np.minimum(1.0, part / np.array([p.copies for p in self.stations]))
        return shares

    def _input_shares(self) -> Floats:
        """At filters that take something in and send nothing: MB read for each MB that they take in."""
        last = [
            f.name
            for f in self.pipeline.filters
            if self.pipeline.inflow(f.name) > 0 and not any(ratio > 0 for _, ratio in self.streams[f.name])
        ]
        share = self.pipeline.reader.volume / sum(self.pipeline.inflow(name) for name in last)
        return np.array([share if p.filter in last else 0.0 for p in self.stations])

    def _routers(self, planned: bool) -> tuple[Records, Records]:
        """Routers and their planned targets."""
        listed = [(i, *stream) for i, p in enumerate(self.stations) for stream in self.streams[p.filter]]
        ends = [self.ranges[target] for _, target, _ in listed]
        routers = np.zeros(len(listed), ROUTER)
        routers["station"] = [station for station, _, _ in listed]
        routers["ratio"] = [ratio for _, _, ratio in listed]
        routers["first_target"] = [first for first, _ in ends]
        routers["targets"] = [count for _, count in ends]
        routers["chosen"] = routers["next_waiting"] = NONE
        routers["turn"] = np.arange(len(listed))  # producers do not all begin with the same copy
        edge_ptr, edges = _edges(len(listed), *(self._planned_flows() if planned else ((), (), (), ())))
        routers["first_edge"], routers["last_edge"] = edge_ptr[:-1], edge_ptr[1:]
        return routers, edges

    @cached_property
    def ways(self) -> dict[tuple[str, str], list[tuple[int, float]]]:
        """Chosen routes between two sites: number and share of each."""
        ways: dict[tuple[str, str], list[tuple[int, float]]] = {}
        first = len(self.network.route_ptr) - 1
        for number, route in enumerate(self.deployment.routes, first):
            ways.setdefault((route.source, route.target), []).append((number, route.share))
        return ways

    def _planned_flows(self) -> tuple[list[int], list[int], list[float], list[int]]:
        """Router, target station, rate and route of every planned flow."""
        column = {
            (name, target): j
            for name, targets in self.streams.items()
            for j, (target, _) in enumerate(targets)
        }
        router, target, rate, way = [], [], [], []
        first = self.router_ptr.tolist()
        cluster = self.problem.cluster
        for flow in self.deployment.flows:
            if flow.rate > 0:
                station = self.number[flow.source_filter, flow.source]
                ends = cluster[flow.source], cluster[flow.target]
                for number, share in self.ways.get(ends, [(NONE, 1.0)]):
                    router.append(first[station] + column[flow.source_filter, flow.target_filter])
                    target.append(self.number[flow.target_filter, flow.target])
                    rate.append(flow.rate * share)
                    way.append(number)
        return router, target, rate, way

    def _routes(self) -> tuple[NDArray[np.int64], Ints]:
        """Links between zones, then those of chosen routes; at sites with a segment, the segment as well."""
        ptr, links = self.network.route_ptr.astype(np.int64), self.network.route_links
        if not self.problem.segments and not self.deployment.routes:
            return ptr, links
        number = {name: self.network.n_links + i for i, name in enumerate(self.problem.segments)}
        sites = [site.name for site in self.problem.platform.sites]
        ways = zip(self.network.zone.tolist(), self.network.site.tolist(), strict=True)
        medium = {zone: number[sites[site]] for zone, site in ways if sites[site] in number}
        zones = len(self.network.route_bandwidth)
        routes: list[list[int]] = []
        for a in range(zones):
            for b in range(zones):
                at = a * zones + b
                ends = dict.fromkeys(medium[z] for z in (a, b) if z in medium)
                routes.append([*links[ptr[at] : ptr[at + 1]].tolist(), *ends])
        label = {name: link for link, name in enumerate(link_labels(self.network))}
        for route in self.deployment.routes:
            ends = dict.fromkeys(number[site] for site in (route.source, route.target) if site in number)
            routes.append([*(label[name] for name in route.links), *ends])
        return _pointers([len(r) for r in routes]), np.array([r for way in routes for r in way], np.int32)


def _free_buffers(count: int) -> Records:
    """All in the list of free buffers."""
    buffers = np.zeros(count, BUFFER)
    buffers["next"] = np.append(np.arange(1, count), NONE)
    return buffers


def _edges(
    routers: int, router: Sequence[int], target: Sequence[int], weight: Sequence[float], way: Sequence[int]
) -> tuple[NDArray[np.int64], Records]:
    """Planned targets by router and target, and where those of each router begin.

    Moments when they are first due are spread out, so that producers do not all send to the same copy.
    """
    order = np.lexsort((np.array(target, np.int64), np.array(router, np.int64)))
    edges = np.zeros(len(order), EDGE)
    edges["target"] = np.array(target, np.int64)[order]
    edges["weight"] = np.array(weight, np.float64)[order]
    edges["way"] = np.array(way, np.int64)[order]
    edges["due"] = np.modf(np.arange(1, len(order) + 1) * _GOLDEN)[0] / edges["weight"]
    return _pointers(np.bincount(np.array(router, np.int64), minlength=routers).tolist()), edges


def _pointers(counts: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
