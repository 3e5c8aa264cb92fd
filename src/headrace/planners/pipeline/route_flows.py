"""From flows on arcs to flows between pairs of zones, and the routes they take.

A solution has flows on arcs only. They are taken apart into paths from zone to zone. If all of them fit on the quickest
routes, these are taken. Otherwise the flows are first routed again, so that what each zone sends and receives remains
and as little as possible takes longer ways.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.arcs import Arcs
from headrace.planners.pipeline.compact import NetColumns
from headrace.planners.pipeline.linear import Builder, solve
from headrace.planners.pipeline.rates import Rates

DUST = 1e-9
"""Flows below this part of all flow are rounding errors."""
FITS = 1e-9
REROUTE_SECONDS = 3.0

Way = tuple[int, int, tuple[int, ...], float]
"""Two zones, the links between them, and the part of their flows that takes this way."""
Path = tuple[int, int, tuple[int, ...], float]
"""Two zones, arcs, and a rate."""


def route_flows(rates: Rates, net: NetColumns) -> tuple[Floats, tuple[Way, ...]]:
    """[streams, zones, zones] flows, and the ways between those zones whose flows do not take the quickest route."""
    arcs = rates.arcs
    n_zones = len(rates.weight)
    flow = np.zeros((len(rates.stream_rate), n_zones, n_zones))
    zones = np.arange(n_zones)
    if arcs.fixed:
        flow[net.streams[:, None], zones, zones] += net.inside
        for j, e in enumerate(net.streams.tolist()):
            np.add.at(flow[e], (arcs.tail, arcs.head - n_zones), net.arc[j, 0])
        return flow, ()
    net = _without_returns(net)
    paths = _all_paths(arcs, net)
    if not _quickest_fit(rates, net, paths):
        net = _rerouted(rates, net)
        paths = _all_paths(arcs, net)
    flow[net.streams[:, None], zones, zones] += net.inside
    for j, found in enumerate(paths):
        for a, b, _, rate in found:
            flow[net.streams[j], a, b] += rate
    return flow, () if _quickest_fit(rates, net, paths) else _ways(rates, paths)


def _without_returns(net: NetColumns) -> NetColumns:
    """What a zone both sends and receives on a stream stays inside, where origins are not told apart."""
    if net.received.shape[1] > 1:
        return net
    both = np.minimum(net.sent, net.received[:, 0])
    return replace(net, inside=net.inside + both, sent=net.sent - both, received=net.received - both[:, None])


def _all_paths(arcs: Arcs, net: NetColumns) -> list[list[Path]]:
    """The paths of each stream."""
    return [list(_paths_of(arcs, net, j)) for j in range(len(net.streams))]


def _paths_of(arcs: Arcs, net: NetColumns, j: int) -> Iterator[Path]:
    zones = range(net.sent.shape[1])
    for g in range(net.received.shape[1]):
        left = net.arc[j, g].copy()
        wanted = net.received[j, g].copy()
        dust = DUST * max(float(net.sent[j].sum()), 1e-300)
        for a in zones if not arcs.by_origin else (g,):
            remaining = float(net.sent[j, a])
            while remaining > dust:
                found = _shortest(arcs, left > dust, a, wanted > dust)
                if found is None:
                    break
                b, path = found
                rate = min(remaining, float(wanted[b]), float(left[path].min(initial=np.inf)))
                left[path] -= rate
                wanted[b] -= rate
                remaining -= rate
                yield a, b, tuple(path), rate


def _shortest(arcs: Arcs, usable: Floats, a: int, wanted: Floats) -> tuple[int, list[int]] | None:
    """The quickest path on usable arcs from a zone to one that wants something; ties: fewer arcs, then the first."""
    out: dict[int, list[int]] = {}
    for arc in np.flatnonzero(usable).tolist():
        out.setdefault(int(arcs.tail[arc]), []).append(arc)
    ends = {int(arcs.receive[z]): z for z in np.flatnonzero(wanted).tolist() if z != a}
    queue: list[tuple[float, int, int, list[int]]] = [(0.0, 0, int(arcs.send[a]), [])]
    seen: set[int] = set()
    while queue:
        cost, hops, node, path = heapq.heappop(queue)
        if node in ends:
            return ends[node], path
        if node in seen:
            continue
        seen.add(node)
        for arc in out.get(node, ()):
            head = int(arcs.head[arc])
            if head not in seen:
                heapq.heappush(queue, (cost + float(arcs.seconds[arc]), hops + 1, head, [*path, arc]))
    return None


def _quickest_fit(rates: Rates, net: NetColumns, paths: list[list[Path]]) -> bool:
    """Whether the network can carry these flows on the quickest routes."""
    total = np.diag(net.inside.sum(axis=0))
    for found in paths:
        for a, b, _, rate in found:
            total[a, b] += rate
    if np.any(total[rates.routed == 0] > 0):
        return False
    way = rates.quickest
    load = np.bincount(way.row, total[way.source, way.target], len(rates.capacity))
    return bool(np.all(load <= rates.capacity * (1 + FITS)))


def _rerouted(rates: Rates, net: NetColumns) -> NetColumns:
    """The same amounts sent and received, on the quickest ways that have room."""
    arcs = rates.arcs
    b = Builder()
    n, g = net.received.shape[:2]
    arc = b.add_columns((n, g, len(arcs.tail)), cost=np.broadcast_to(-arcs.seconds - 1e-9, net.arc.shape))
    nodes = _amounts(arcs, net)
    rows = b.add_rows(nodes.size, low=-nodes.ravel(), high=-nodes.ravel()).reshape(nodes.shape)
    b.put(rows[:, :, arcs.tail], arc, -1.0)
    b.put(rows[:, :, arcs.head], arc, 1.0)
    room = rates.capacity.copy()
    used = np.zeros(len(room))
    np.add.at(used, arcs.arc_rows[0], net.arc.sum(axis=(0, 1))[arcs.arc_rows[1]])
    links = b.add_rows(len(room), high=np.maximum(room, used))
    b.put(links[arcs.arc_rows[0]], arc[:, :, arcs.arc_rows[1]], 1.0)
    answer = solve(b.build(), whole=False, seconds=REROUTE_SECONDS)
    return net if answer.x is None else replace(net, arc=np.maximum(answer.x[arc], 0.0))


def _amounts(arcs: Arcs, net: NetColumns) -> Floats:
    """[streams, commodities, nodes] what enters the network at each node, less what leaves it.

    As the flows on arcs have it, so that rounding errors do not make the program infeasible.
    """
    nodes = np.zeros((*net.received.shape[:2], arcs.n_nodes))
    for j in range(len(nodes)):
        for g in range(nodes.shape[1]):
            nodes[j, g] = np.bincount(arcs.tail, net.arc[j, g], arcs.n_nodes)
            nodes[j, g] -= np.bincount(arcs.head, net.arc[j, g], arcs.n_nodes)
    return nodes


def _ways(rates: Rates, paths: list[list[Path]]) -> tuple[Way, ...]:
    """The ways between zones, of all streams together, where they are not just the quickest route."""
    arcs, quickest = rates.arcs, rates.quickest
    total: dict[tuple[int, int], dict[tuple[int, ...], float]] = {}
    row_of = np.full(len(arcs.tail), -1)
    row_of[arcs.arc_rows[1]] = arcs.arc_rows[0]
    usual: dict[tuple[int, int], list[int]] = {}
    for row, a, b in zip(*(part.tolist() for part in quickest), strict=True):
        usual.setdefault((a, b), []).append(row)
    n_links = len(rates.capacity) - len(arcs.end_rows[0])
    for found in paths:
        for a, b, path, rate in found:
            on = total.setdefault((a, b), {})
            on[path] = on.get(path, 0.0) + rate
    ways: list[Way] = []
    for (a, b), on in sorted(total.items()):
        same = [row for row in usual.get((a, b), []) if row < n_links]
        if len(on) == 1 and [r for r in row_of[list(next(iter(on)))].tolist() if r >= 0] == same:
            continue
        whole = sum(on.values())
        ways += [(a, b, _links(arcs, path), rate / whole) for path, rate in sorted(on.items())]
    return tuple(ways)


def _links(arcs: Arcs, path: tuple[int, ...]) -> tuple[int, ...]:
    links: Numbers = arcs.link[list(path)]
    return tuple(link for link in links.tolist() if link >= 0)
