"""A deployment as the arrays that the compiled flow simulation works on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.model.deployment import Deployment, Placement
from headrace.model.errors import BadPlan
from headrace.model.graph import Floats, Ints
from headrace.model.pipeline import MEGABYTE

Table = dict[str, NDArray[Any]]
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

    def arrays(self, amount: float, window: int, *, planned: bool) -> tuple[Ints, Floats, Any]:
        """Two flat arrays, of whole numbers and of amounts, and where each column begins in them."""
        from headrace.simulator.pipeline.event_loop import Columns

        table = self._stations(amount) | self._routers(planned) | self._network()
        streams = max(1, int(np.diff(self.router_ptr).max()))
        table |= _at_rest(table, window, streams)
        ints = {name: column for name, column in table.items() if column.dtype.kind in "ib"}
        reals = {name: column for name, column in table.items() if column.dtype.kind == "f"}
        at = Columns(
            **_begins(ints),
            **_begins(reals),
            streams=streams,
            zones=len(self.network.route_bandwidth),
            readers=self.ranges[self.pipeline.reader.name][1],
            window=window,
        )
        return (
            np.concatenate([c.astype(np.int64) for c in ints.values()]),
            np.concatenate([*reals.values()]),
            at,
        )

    def _reads(self, placement: Placement) -> bool:
        return placement.filter == self.pipeline.reader.name

    def _stations(self, amount: float) -> Table:
        hosts = np.array([self.host[p.host] for p in self.stations])
        copies = [p.copies for p in self.stations]
        return {
            "station_place": self.network.host_place[hosts],
            "rate": np.array([self.core_rate(p) for p in self.stations]) * self._core_shares(),
            "to_read": np.array([amount * p.share if self._reads(p) else 0.0 for p in self.stations]),
            "counts": self._counts(),
            "copy_ptr": _pointers(copies),
            "copy_station": np.repeat(np.arange(len(copies)), copies),
            "router_ptr": self.router_ptr,
        }

    def core_rate(self, placement: Placement) -> float:
        """MB/s of its own input that one core works off."""
        per_read = self.pipeline.inflow(placement.filter) / self.pipeline.reader.volume
        capacity = self.problem.capacity(placement.filter, placement.host)
        return capacity * per_read if per_read > 0 else math.inf

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

    def _counts(self) -> Floats:
        """At filters that take something in and send nothing: MB read for each MB that they take in."""
        last = [
            f.name
            for f in self.pipeline.filters
            if self.pipeline.inflow(f.name) > 0 and not any(ratio > 0 for _, ratio in self.streams[f.name])
        ]
        share = self.pipeline.reader.volume / sum(self.pipeline.inflow(name) for name in last)
        return np.array([share if p.filter in last else 0.0 for p in self.stations])

    def _routers(self, planned: bool) -> Table:
        routers = [(i, *stream) for i, p in enumerate(self.stations) for stream in self.streams[p.filter]]
        ends = [self.ranges[target] for _, target, _ in routers]
        table: Table = {
            "router_station": np.array([station for station, _, _ in routers], np.int64),
            "router_ratio": np.array([ratio for _, _, ratio in routers], np.float64),
            "router_first": np.array([first for first, _ in ends], np.int64),
            "router_targets": np.array([count for _, count in ends], np.int64),
        }
        return table | (self._planned_edges() if planned else _edges(len(routers), [], [], []))

    def _planned_edges(self) -> Table:
        """The planned targets of every router, with their flows."""
        column = {
            (name, target): j
            for name, targets in self.streams.items()
            for j, (target, _) in enumerate(targets)
        }
        router, target, weight = [], [], []
        first = self.router_ptr.tolist()
        for flow in self.deployment.flows:
            if flow.rate > 0:
                station = self.number[flow.source_filter, flow.source]
                router.append(first[station] + column[flow.source_filter, flow.target_filter])
                target.append(self.number[flow.target_filter, flow.target])
                weight.append(flow.rate)
        return _edges(first[-1], router, target, weight)

    def _network(self) -> Table:
        route_ptr, route_links = self._routes()
        return {
            "out_port": self.network.out_port,
            "in_port": self.network.in_port,
            "zone": self.network.zone,
            "route_ptr": route_ptr,
            "route_links": route_links,
            "bandwidth": self.bandwidth,
        }

    def _routes(self) -> tuple[Ints, Ints]:
        """Links between zones; at sites with a segment, the segment as well."""
        ptr, links = self.network.route_ptr, self.network.route_links
        if not self.problem.segments:
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
        return _pointers([len(r) for r in routes]), np.array([r for way in routes for r in way], np.int64)


def _at_rest(table: Table, window: int, streams: int) -> Table:
    """Everything idle, every queue empty."""
    from headrace.simulator.pipeline.event_loop import NONE

    stations, copies, routers = (len(table[k]) for k in ("rate", "copy_station", "router_station"))
    resources, buffers = len(table["bandwidth"]), stations * window
    nowhere = {
        "chosen": routers,
        "next_waiting": routers,
        "first_waiting": stations,
        "last_waiting": stations,
        "first_buffer": stations,
        "last_buffer": stations,
        "resource_first": resources,
        "resource_last": resources,
    }
    zero = {
        "copy_state": copies,
        "left": copies * streams,
        "waiting": routers,
        "may_begin": stations,
        "idlers": stations,
        "may_send": stations,
        "senders": stations,
        "buffer_source": buffers,
        "buffer_target": buffers,
        "buffer_hop": buffers,
        "number": 4,
    }
    nothing = {
        "copy_size": copies,
        "piece": copies * streams,
        "begun": stations,
        "done": stations,
        "buffer_size": buffers,
        "carried": resources,
    }
    return {
        **{name: np.full(length, NONE) for name, length in nowhere.items()},
        **{name: np.zeros(length, np.int64) for name, length in zero.items()},
        **{name: np.zeros(length) for name, length in nothing.items()},
        "turn": np.arange(routers),  # producers do not all begin with the same copy
        "room": np.full(stations, window),
        "buffer_next": np.append(np.arange(1, buffers), NONE),
    }


def _edges(routers: int, router: Sequence[int], target: Sequence[int], weight: Sequence[float]) -> Table:
    """Columns of planned targets, by router and target.

    Moments when they are first due are spread out, so that producers do not all send to the same copy.
    """
    order = np.lexsort((np.array(target, np.int64), np.array(router, np.int64)))
    weights = np.array(weight, np.float64)[order]
    spread = np.modf(np.arange(1, len(order) + 1) * _GOLDEN)[0]
    return {
        "edge_ptr": _pointers(np.bincount(np.array(router, np.int64), minlength=routers).tolist()),
        "edge_target": np.array(target, np.int64)[order],
        "edge_weight": weights,
        "due": spread / weights,
    }


def _pointers(counts: Sequence[int]) -> Ints:
    pointers: Ints = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return pointers


def _begins(columns: Table) -> dict[str, int]:
    ends = np.cumsum([0, *(len(column) for column in columns.values())]).tolist()
    return dict(zip(columns, ends, strict=False))
