"""The array form of a platform's network: places, links, routes.

A *place* is where data can be stored: a host, or a whole site whose hosts share a file system, or a site
without hosts. A transfer from place p to place q uses the links of its route: p's outgoing port, the links
between their zones, q's incoming port. A *zone* is a site (in a pairwise network, a host).

How long it takes, and what contention means:
- none: latency + size / (bottleneck bandwidth of the route), regardless of other transfers;
- fifo: the same, and it starts when all links of its route are idle. Each is then busy for size / its own
  bandwidth; where data goes link by link (`store_and_forward`), until the transfer has finished;
- fair: after the latency, concurrent transfers share each link's bandwidth max-min fairly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.errors import BadPlatform
from headrace.model.graph import Bools, Floats, Ints
from headrace.model.hub import sites_at_hub
from headrace.model.trace import LinkTrace

if TYPE_CHECKING:
    from headrace.model.platform import Platform

EVERYWHERE = -1
"""The origin of a platform without one: inputs are available everywhere."""
_SLOW = 0.8
"""A link is slow for a route that can use at least this share of it."""
_REFERENCE_SIZE = 1e6
"""Routes minimise the time of a transfer of this many bytes."""


@dataclass(frozen=True, eq=False)
class Network:
    """Arrays over places (P), zones (Z) and links (L)."""

    place_names: tuple[str, ...]
    host_place: Ints
    """The place that stores each host's data."""
    zone: Ints
    """The zone of each place."""
    site: Ints
    """The site whose storage each place uses."""
    storage: Floats
    """Capacity of each site in bytes."""
    port: Floats
    """Bandwidth of each place's port; inf where there is none."""
    out_port: Ints
    """The link of each place's outgoing port; -1 where there is none."""
    in_port: Ints
    link_bandwidth: Floats
    link_names: tuple[str, ...]
    route_ptr: Ints
    """Links between zones a and b are route_links[route_ptr[a * Z + b] : route_ptr[a * Z + b + 1]]."""
    route_links: Ints
    route_bandwidth: Floats
    """[Z, Z] bottleneck bandwidth of those links: inf for none, 0 where there is no route."""
    route_latency: Floats
    """[Z, Z] latency of the whole route; on the diagonal, inside a zone."""
    origin: int
    """The place of external inputs and of results, or EVERYWHERE."""
    link_trace: Mapping[int, LinkTrace] = field(default_factory=dict)
    """Links whose bandwidth and latency change over time."""
    store_and_forward: bool = False
    """Whether every route is one hop, whose links are busy from the start of a transfer to its finish."""

    @property
    def n_places(self) -> int:
        return len(self.place_names)

    @property
    def n_links(self) -> int:
        return len(self.link_bandwidth)

    def bandwidth(self, source: int, target: int) -> float:
        """Bottleneck bandwidth of the route: inf for the same place, 0 where there is no route."""
        if source == target:
            return math.inf
        between = self.route_bandwidth[self.zone[source], self.zone[target]]
        return float(min(self.port[source], between, self.port[target]))

    def latency(self, source: int, target: int) -> float:
        return 0.0 if source == target else float(self.route_latency[self.zone[source], self.zone[target]])

    def seconds(self, source: int, target: int, size: float) -> float:
        """Duration of a transfer without contention; inf where there is no route."""
        if source == target or size == 0:
            return 0.0
        bandwidth = self.bandwidth(source, target)
        return self.latency(source, target) + size / bandwidth if bandwidth > 0 else math.inf

    def route(self, source: int, target: int) -> list[int]:
        """The links of the route, in order."""
        if source == target:
            return []
        zones = len(self.route_bandwidth)
        at = self.zone[source] * zones + self.zone[target]
        between = self.route_links[self.route_ptr[at] : self.route_ptr[at + 1]].tolist()
        return [link for link in (self.out_port[source], *between, self.in_port[target]) if link >= 0]

    def busy_seconds(self, source: int, target: int, size: float, link: int) -> float:
        """How long a transfer keeps a link of its route busy, from its start on; inf over a link without bandwidth."""
        if self.store_and_forward:
            return self.seconds(source, target, size)
        bandwidth = float(self.link_bandwidth[link])
        return size / bandwidth if bandwidth > 0 else math.inf

    def slow(self, links: Ints, route_bandwidth: Floats) -> Bools:
        """Whether each link is one of the slow ones of a route of this bandwidth: with `fair`, transfers that take
        turns take them there."""
        bandwidth = self.link_bandwidth[links]
        slow: Bools = np.isfinite(bandwidth) & (_SLOW * bandwidth <= route_bandwidth)
        return slow


def build_network(platform: Platform) -> Network:
    """Places, links and all routes: O(Z^2 + Z * links * log Z)."""
    if platform.pairs is not None:
        return _pairwise(platform)
    names: list[str] = []
    site_of: list[int] = []
    port: list[float] = []
    host_place: list[int] = []
    links = _Links()
    out_port: list[int] = []
    in_port: list[int] = []
    place_of: dict[str, int] = {}
    for s, site in enumerate(platform.sites):
        own_data = site.bandwidth is not None and site.hosts
        for name in [h.name for h in site.hosts] if own_data else [site.name]:
            place_of[name] = len(names)
            names.append(name)
            site_of.append(s)
            port.append(math.inf if site.bandwidth is None else site.bandwidth)
            if site.bandwidth is None:
                out_port.append(-1)
                in_port.append(-1)
            else:
                out_port.append(links.add(f"{name} out", site.bandwidth))
                in_port.append(links.add(f"{name} in", site.bandwidth))
        for host in site.hosts:
            host_place.append(place_of[host.name] if own_data else place_of[site.name])
            place_of.setdefault(host.name, host_place[-1])
        if own_data:
            place_of[site.name] = place_of[site.hosts[0].name]
    routes = _routes(platform, links)
    zone = np.array(site_of, np.int32)
    return Network(
        place_names=tuple(names),
        host_place=np.array(host_place, np.int32),
        zone=zone,
        site=zone,
        storage=np.array([s.storage for s in platform.sites]),
        port=np.array(port),
        out_port=np.array(out_port, np.int32),
        in_port=np.array(in_port, np.int32),
        link_bandwidth=np.array(links.bandwidth, np.float64),
        link_names=tuple(links.names),
        route_ptr=routes.ptr,
        route_links=routes.links,
        route_bandwidth=routes.bandwidth,
        route_latency=routes.latency,
        origin=EVERYWHERE if platform.origin is None else place_of[platform.origin],
        link_trace=links.trace,
        store_and_forward=platform.routing == "links",
    )


class _Links:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.bandwidth: list[float] = []
        self.trace: dict[int, LinkTrace] = {}

    def add(self, name: str, bandwidth: float, trace: LinkTrace | None = None) -> int:
        number = len(self.names)
        self.names.append(name)
        self.bandwidth.append(bandwidth)
        if trace is not None:
            self.trace[number] = trace
        return number


@dataclass(frozen=True, eq=False)
class _Routes:
    ptr: Ints
    links: Ints
    bandwidth: Floats
    latency: Floats


def _pairwise(platform: Platform) -> Network:
    assert platform.pairs is not None
    hosts = platform.hosts
    n = len(hosts)
    bandwidth = platform.pairs.bandwidth.astype(np.float64)
    np.fill_diagonal(bandwidth, np.inf)
    latency = np.array(np.broadcast_to(np.asarray(platform.pairs.latency, np.float64), (n, n)))
    np.fill_diagonal(latency, 0.0)
    identity = np.arange(n, dtype=np.int32)
    off = ~np.eye(n, dtype=bool)
    counts = np.zeros(n * n + 1, np.int32)
    counts[1:] = off.ravel()
    site = np.repeat(np.arange(len(platform.sites), dtype=np.int32), [len(s.hosts) for s in platform.sites])
    origin = EVERYWHERE
    if platform.origin is not None:
        by_name = {h.name: i for i, h in enumerate(hosts)}
        first = {s.name: by_name[s.hosts[0].name] for s in platform.sites if s.hosts}
        origin = by_name.get(platform.origin, first.get(platform.origin, EVERYWHERE))
        if origin == EVERYWHERE:
            raise BadPlatform(
                f"origin {platform.origin!r} is not a host",
                where=platform.name,
                hint="in a pairwise network the origin is one of the hosts",
            )
    return Network(
        place_names=tuple(h.name for h in hosts),
        host_place=identity,
        zone=identity,
        site=site,
        storage=np.array([s.storage for s in platform.sites]),
        port=np.full(n, np.inf),
        out_port=np.full(n, -1, np.int32),
        in_port=np.full(n, -1, np.int32),
        link_bandwidth=bandwidth[off],
        link_names=tuple(f"{hosts[i].name} -> {hosts[j].name}" for i, j in np.argwhere(off))
        if n <= 64
        else (),
        route_ptr=np.cumsum(counts, dtype=np.int32),
        route_links=np.arange(n * (n - 1), dtype=np.int32),
        route_bandwidth=bandwidth,
        route_latency=latency,
        origin=origin,
        store_and_forward=platform.routing == "links",
    )


def _routes(platform: Platform, links: _Links) -> _Routes:
    """The quickest route between each pair of sites, through the hub and over links."""
    sites = platform.sites
    n = len(sites)
    hub = n
    index = {s.name: i for i, s in enumerate(sites)}
    edges: list[list[tuple[int, int, float, float]]] = [[] for _ in range(n + 1)]
    at_hub = sites_at_hub(platform)
    for i, site in enumerate(sites):
        if site.uplink is not None:
            link = links.add(f"{site.name} uplink", site.uplink, site.uplink_trace)
            edges[i].append((hub, link, site.uplink, site.uplink_latency))
            edges[hub].append((i, link, site.uplink, site.uplink_latency))
        elif site.name in at_hub:
            edges[i].append((hub, -1, math.inf, 0.0))
            edges[hub].append((i, -1, math.inf, 0.0))
    for spec in platform.links:
        a, b = index[spec.source], index[spec.target]
        there = links.add(f"{spec.source} -> {spec.target}", spec.bandwidth, spec.trace)
        edges[a].append((b, there, spec.bandwidth, spec.latency))
        if not spec.oneway:
            name = f"{spec.target} -> {spec.source}"
            back = there if spec.shared else links.add(name, spec.bandwidth, spec.trace)
            edges[b].append((a, back, spec.bandwidth, spec.latency))
    if not platform.isolated:
        _check_connected(platform, edges)
    direct = platform.routing == "links"
    bandwidth = np.zeros((n, n))
    latency = np.zeros((n, n))
    ptr = np.zeros(n * n + 1, np.int32)
    route_links: list[int] = []
    for a in range(n):
        ways = _joined(edges, a, hub) if direct else _quickest(edges, a)
        for b in range(n):
            if a == b:
                bandwidth[a, a] = math.inf
                latency[a, a] = sites[a].latency
            elif ways[b] is not None:
                hops = ways[b] or []
                route_links.extend(hop[1] for hop in hops if hop[1] >= 0)
                bandwidth[a, b] = min(hop[2] for hop in hops)
                latency[a, b] = sites[a].latency + sum(hop[3] for hop in hops) + sites[b].latency
            ptr[a * n + b + 1] = len(route_links)
    return _Routes(ptr, np.array(route_links, np.int32), bandwidth, latency)


def _quickest(
    edges: list[list[tuple[int, int, float, float]]], source: int
) -> list[list[tuple[int, int, float, float]] | None]:
    """Dijkstra; ties by number of hops, then by site order."""
    best: list[list[tuple[int, int, float, float]] | None] = [None] * len(edges)
    queue: list[tuple[float, int, int, list[tuple[int, int, float, float]]]] = [(0.0, 0, source, [])]
    while queue:
        cost, hops, node, way = heapq.heappop(queue)
        if best[node] is not None:
            continue
        best[node] = way
        for edge in edges[node]:
            if best[edge[0]] is None:
                step = edge[3] + _REFERENCE_SIZE / edge[2]
                heapq.heappush(queue, (cost + step, hops + 1, edge[0], [*way, edge]))
    return best


def _joined(
    edges: list[list[tuple[int, int, float, float]]], source: int, hub: int
) -> list[list[tuple[int, int, float, float]] | None]:
    """Routes to neighbouring sites, over a link or the hub, whichever is quicker; ties: the first."""
    best: list[list[tuple[int, int, float, float]] | None] = [None] * len(edges)
    ways = [[edge] for edge in edges[source] if edge[0] != hub]
    ways += [[up, down] for up in edges[source] if up[0] == hub for down in edges[hub] if down[0] != source]
    ways.sort(key=lambda way: sum(edge[3] + _REFERENCE_SIZE / edge[2] for edge in way))
    for way in reversed(ways):
        best[way[-1][0]] = way
    return best


def _check_connected(platform: Platform, edges: list[list[tuple[int, int, float, float]]]) -> None:
    """Raise an error for sites that are not connected in either direction."""
    n = len(platform.sites)
    near: list[set[int]] = [set() for _ in edges]
    for a, out in enumerate(edges):
        for edge in out:
            near[a].add(edge[0])
            near[edge[0]].add(a)
    seen = {0}
    stack = [0]
    while stack:
        for b in sorted(near[stack.pop()] - seen):
            seen.add(b)
            stack.append(b)
    for i in range(n):
        if i not in seen:
            raise BadPlatform(
                f"there is no route between sites {platform.sites[0].name!r} and {platform.sites[i].name!r}",
                where=platform.name,
                hint="give each site an uplink, connect them with a [[link]], or set isolated = true",
            )
