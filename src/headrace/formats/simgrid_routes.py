"""The platform that the zones of a SimGrid file form."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from headrace.formats.shapes import shorten
from headrace.formats.simgrid import Route, WireLink, Zone
from headrace.model.errors import BadPlatform
from headrace.model.graph import Floats
from headrace.model.platform import Link, Pairs, Platform, Site

MAX_PAIRED = 3000
"""Hosts of a platform of pairs: it takes 16 bytes for each pair."""
Wires = tuple[WireLink, ...]


def platform_of_zone(top: Zone, name: str) -> Platform:
    """Sites and links if all hosts are in clusters, a network of pairs otherwise; transfers share links fairly."""
    clusters = [top] if top.cluster is not None else list(top.zones.values())
    only_clusters = bool(clusters) and all(zone.cluster is not None for zone in clusters)
    if top.cluster is not None or (only_clusters and not top.hosts and not top.routers):
        return _of_clusters(top, clusters, name)
    hosts = [host for zone in _all_zones(top) for host in zone.hosts.values()]
    if not hosts:
        raise BadPlatform("there is no host", hint="add a <host> or <cluster>")
    if len(hosts) > MAX_PAIRED:
        raise BadPlatform(
            f"{len(hosts)} hosts, more than {MAX_PAIRED}, and not all in clusters", hint="describe clusters"
        )
    bandwidth, latency = _pairs(top, [host.name for host in hosts])
    site = Site(top.id, tuple(hosts))
    return Platform((site,), pairs=Pairs(bandwidth, latency), contention="fair", name=name)


def _of_clusters(top: Zone, clusters: Sequence[Zone], name: str) -> Platform:
    sites = []
    for zone in clusters:
        assert zone.cluster is not None
        private, backbone = zone.cluster.private, zone.cluster.backbone
        inside = [private, private, *([backbone] if backbone is not None else [])]
        sites.append(
            Site(
                zone.id,
                tuple(zone.hosts.values()),
                bandwidth=min(link.bandwidth for link in inside),
                latency=sum(link.latency for link in inside),
            )
        )
    latency = {site.name: site.latency for site in sites}
    links: list[Link] = []
    for (a, b), route in top.routes.items() if top.cluster is None else ():
        both = (b, a) in top.routes and top.routes[b, a].links == route.links[::-1]
        if both and (b, a) in {(link.source, link.target) for link in links}:
            continue
        wires = (*_to_router(top.zones[a]), *route.links, *_to_router(top.zones[b]))
        counted = latency[a] + latency[b]  # of the sites: every transfer between them has it
        links.append(
            Link(
                a,
                b,
                bandwidth=min(wire.bandwidth for wire in route.links or wires),
                latency=max(0.0, sum(wire.latency for wire in wires) - counted),
                shared=both and any(wire.shared for wire in route.links),
                oneway=not both,
            )
        )
    return Platform(tuple(sites), tuple(links), contention="fair", name=name)


def _to_router(zone: Zone) -> Wires:
    assert zone.cluster is not None
    backbone = zone.cluster.backbone
    return (zone.cluster.private, *([backbone] if backbone is not None else []))


def _all_zones(zone: Zone) -> Iterator[Zone]:
    yield zone
    for inner in zone.zones.values():
        yield from _all_zones(inner)


def _pairs(top: Zone, names: Sequence[str]) -> tuple[Floats, Floats]:
    """The least bandwidth and the summed latency of the route between each pair of hosts."""
    inside = _routes_inside(top)
    bandwidth, latency = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i != j:
                wires = inside.get((a, b))
                if wires is None:
                    raise BadPlatform(
                        f"there is no route from {shorten(a)} to {shorten(b)}", hint="add a <route>"
                    )
                if not wires:
                    raise BadPlatform(
                        f"the route from {shorten(a)} to {shorten(b)} has no links", hint="add a <link_ctn>"
                    )
                bandwidth[i, j] = min(wire.bandwidth for wire in wires)
                latency[i, j] = sum(wire.latency for wire in wires)
    return bandwidth, latency


def _routes_inside(zone: Zone) -> dict[tuple[str, str], Wires]:
    """The links between all pairs of hosts and routers of a zone, and of the zones in it."""
    if zone.cluster is not None:
        return _cluster_routes(zone)
    found: dict[tuple[str, str], Wires] = {}
    members: dict[str, list[str]] = {name: [name] for name in (*zone.hosts, *sorted(zone.routers))}
    for name, inner in zone.zones.items():
        found |= _routes_inside(inner)
        members[name] = [end for part in _all_zones(inner) for end in _ends(part)]
    for (a, b), route in _between(zone).items():
        for start in members[a]:
            for end in members[b]:
                first = _part(found, start, route.leaves if a in zone.zones else start)
                last = _part(found, route.enters if b in zone.zones else end, end)
                if first is not None and last is not None and start != end:
                    found[start, end] = (*first, *route.links, *last)
    return found


def _ends(zone: Zone) -> list[str]:
    return [*zone.hosts, *sorted(zone.routers), *([zone.cluster.router] if zone.cluster is not None else [])]


def _part(found: dict[tuple[str, str], Wires], start: str, end: str) -> Wires | None:
    return () if start == end else found.get((start, end))


def _cluster_routes(zone: Zone) -> dict[tuple[str, str], Wires]:
    assert zone.cluster is not None
    private, backbone = zone.cluster.private, zone.cluster.backbone
    middle: Wires = () if backbone is None else (backbone,)
    found: dict[tuple[str, str], Wires] = {}
    for a in zone.hosts:
        found[a, zone.cluster.router] = (private, *middle)
        found[zone.cluster.router, a] = (*middle, private)
        for b in zone.hosts:
            if a != b:
                found[a, b] = (private, *middle, private)
    return found


def _between(zone: Zone) -> dict[tuple[str, str], Route]:
    """Routes between the parts of a zone: those declared, or, with Floyd or Dijkstra, the ones with fewest links.

    Routes through zones, which would need a way between two of their gateways, are not looked for.
    """
    if zone.routing in ("Full", "None"):
        return zone.routes
    after: dict[str, list[tuple[str, Route]]] = {}
    for (a, b), route in zone.routes.items():
        after.setdefault(a, []).append((b, route))
    found: dict[tuple[str, str], Route] = {}
    for start in after:
        for end, route in _fewest_links(start, after, zone):
            found[start, end] = route
    return found


def _fewest_links(
    start: str, after: dict[str, list[tuple[str, Route]]], zone: Zone
) -> Iterator[tuple[str, Route]]:
    """The best route to everything that can be reached: Dijkstra's algorithm, ties by name."""
    waiting: list[tuple[int, str, int, Route]] = [(0, start, 0, Route(()))]
    pushed = 0
    done: set[str] = set()
    while waiting:
        cost, place, _, route = heapq.heappop(waiting)
        if place in done:
            continue
        done.add(place)
        if place != start:
            yield place, route
        if place != start and place in zone.zones:
            continue
        for end, step in after.get(place, ()):
            if end not in done:
                leaves = step.leaves if place == start else route.leaves
                joined = Route((*route.links, *step.links), leaves, step.enters)
                pushed += 1
                heapq.heappush(waiting, (cost + max(1, len(step.links)), end, pushed, joined))
