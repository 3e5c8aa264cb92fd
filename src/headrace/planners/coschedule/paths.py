"""Paths of files over the network: arcs between places, and the best paths between sets of places."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.model.platform import Platform

MOST_PATHS = 8
"""Maximum number of paths kept for a pair of source set and target set."""
_RELAYED = 12
"""Maximum number of places for which relay paths are tried on networks where every route is direct."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """All possible transfers: from `tail` to `head`, over these links."""

    tail: Ints
    head: Ints
    latency: Floats
    bandwidth: Floats
    link_ptr: Ints
    links: Ints
    busy_latency: Floats
    busy_bandwidth: Floats
    """A transfer over the arc keeps each of `links` busy for this latency and its size over this bandwidth. Under
    `fair`, until it has finished, so that it never shares a link."""

    def busy(self, arc: int, size: float) -> list[tuple[int, float]]:
        """The links of an arc, and how long a transfer of this size keeps each of them busy."""
        at = slice(int(self.link_ptr[arc]), int(self.link_ptr[arc + 1]))
        seconds = self.busy_latency[at] + size / self.busy_bandwidth[at]
        return list(zip(self.links[at].tolist(), seconds.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Paths:
    """Loop-free paths by pair of sets: pair s * sets + t has the paths pair_ptr[..] to pair_ptr[.. + 1]."""

    arcs: Arcs
    sets: tuple[tuple[int, ...], ...]
    """Sets of places; set p is the place p alone."""
    pair_ptr: Ints
    path_start: Ints
    path_ptr: Ints
    path_arcs: Ints
    complete: bool
    """Whether all loop-free paths are included."""

    def of(self, source: int, target: int) -> range:
        pair = source * len(self.sets) + target
        return range(int(self.pair_ptr[pair]), int(self.pair_ptr[pair + 1]))

    def arcs_of(self, path: int) -> list[int]:
        found: list[int] = self.path_arcs[self.path_ptr[path] : self.path_ptr[path + 1]].tolist()
        return found


def arcs_of(platform: Platform) -> Arcs:
    """All ordered pairs of places with a route between them: O(places^2 + links of all routes)."""
    network = platform.network
    tails, heads, ptr, links = [], [], [0], list[int]()
    latency, bandwidth = [], []
    for p in range(network.n_places):
        for q in range(network.n_places):
            rate = network.bandwidth(p, q)
            if p == q or rate <= 0:
                continue
            tails.append(p)
            heads.append(q)
            links.extend(network.route(p, q))
            ptr.append(len(links))
            latency.append(network.latency(p, q))
            bandwidth.append(rate)
    arc = np.repeat(np.arange(len(tails)), np.diff(ptr))
    whole = network.store_and_forward or platform.contention == "fair"
    return Arcs(
        tail=_ints(tails),
        head=_ints(heads),
        latency=np.array(latency),
        bandwidth=np.array(bandwidth),
        link_ptr=_ints(ptr),
        links=_ints(links),
        busy_latency=np.array(latency)[arc] if whole else np.zeros(len(links)),
        busy_bandwidth=np.array(bandwidth)[arc] if whole else network.link_bandwidth[_ints(links)],
    )


def find_paths(
    platform: Platform,
    sets: tuple[tuple[int, ...], ...],
    pairs: Iterable[tuple[int, int]],
    typical: float,
) -> Paths:
    """The best paths for a file of typical size, for each pair of (set of sources, set of targets).

    O(pairs * paths * arcs * log): each search visits a node at most `MOST_PATHS` times.
    """
    arcs = arcs_of(platform)
    cost = arcs.latency + typical / arcs.bandwidth
    network = platform.network
    relay = platform.routing == "links" or network.n_places <= _RELAYED
    out: list[list[int]] = [[] for _ in range(network.n_places)]
    for a, tail in enumerate(arcs.tail.tolist()):
        out[tail].append(a)
    can_relay = network.storage[network.site] > 0
    by_pair: dict[int, list[tuple[int, list[int]]]] = {}
    complete = relay
    for s, t in sorted(set(pairs)):
        found, whole = _best_paths(arcs, cost, out, sets[s], sets[t], can_relay & relay)
        by_pair[s * len(sets) + t] = found
        complete = complete and whole
    counts = np.zeros(len(sets) ** 2 + 1, np.int64)
    for pair, found in by_pair.items():
        counts[pair + 1] = len(found)
    paths = [path for pair in sorted(by_pair) for path in by_pair[pair]]
    return Paths(
        arcs,
        sets,
        np.cumsum(counts).astype(np.int32),
        _ints([start for start, _ in paths]),
        _ints(np.cumsum([0, *(len(steps) for _, steps in paths)]).tolist()),
        _ints([a for _, steps in paths for a in steps]),
        complete,
    )


def _best_paths(
    arcs: Arcs,
    cost: Floats,
    out: list[list[int]],
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    relay: Bools,
) -> tuple[list[tuple[int, list[int]]], bool]:
    """Up to `MOST_PATHS` loop-free paths by cost (ties: fewer arcs, then numbers), and whether these are all."""
    there = sorted(set(sources) & set(targets))
    if there:
        return [(there[0], [])], True
    goal = set(targets)
    home = set(sources)
    heads, costs = arcs.head.tolist(), cost.tolist()
    passed = [0] * len(out)
    queue: list[tuple[float, int, list[int], int, int]] = [(0.0, 0, [], p, p) for p in sorted(home)]
    heapq.heapify(queue)
    found: list[tuple[int, list[int]]] = []
    whole = True
    while queue:
        spent, hops, steps, node, start = heapq.heappop(queue)
        if node in goal:
            if len(found) == MOST_PATHS:
                return found, False
            found.append((start, steps))
            continue
        passed[node] += 1
        if passed[node] > MOST_PATHS:
            whole = False
            continue
        if hops and not relay[node]:
            continue
        seen = {start, *(heads[a] for a in steps)}
        for a in out[node]:
            if heads[a] not in seen and heads[a] not in home:
                heapq.heappush(queue, (spent + costs[a], hops + 1, [*steps, a], heads[a], start))
    return found, whole


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int32)
