"""The state of a grid under a script of changes (presence and rates), computed without the simulator."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace.model.behaviour import Change
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.trace import LinkTrace, Trace


class Transition(NamedTuple):
    """A change that takes effect on a host, link or shared storage, given by number."""

    time: float
    what: str
    """host-down, host-up, link-down, link-up, host-trace, link-trace, storage-down or storage-up."""
    number: int


class Pieces:
    """A rate that follows a sequence of traces: (start, scale, trace or None for constant)."""

    def __init__(self, scale: float, trace: Trace | None) -> None:
        self.since = [0.0]
        self.parts: list[tuple[float, Trace | None]] = [(scale, trace)]

    def change(self, moment: float, scale: float, trace: Trace) -> None:
        self.since.append(moment)
        self.parts.append((scale, trace))

    def at(self, moment: float) -> float:
        """The rate at a time."""
        scale, trace = self.parts[bisect_right(self.since, moment) - 1]
        return scale if trace is None else scale * trace.at(moment)

    def next_step(self, moment: float) -> float:
        """The next time after this one at which the rate may change."""
        at = bisect_right(self.since, moment)
        coming = self.since[at] if at < len(self.since) else math.inf
        trace = self.parts[at - 1][1]
        return coming if trace is None else min(coming, trace.next_step(moment))

    def done(self, start: float, end: float) -> float:
        """The integral from start to end: O(changes), exact."""
        total = 0.0
        for k, (scale, trace) in enumerate(self.parts):
            a = max(start, self.since[k])
            b = min(end, self.since[k + 1]) if k + 1 < len(self.since) else end
            if b > a:
                total += scale * (b - a if trace is None else trace.work_between(a, b))
        return total


class GridTruth:
    """The grid over time, from platform and script alone."""

    def __init__(self, graph: Graph, platform: Platform, changes: Sequence[Change]) -> None:
        self.platform = platform
        self.network = platform.network
        self.host_number = {host.name: h for h, host in enumerate(platform.hosts)}
        self.links_of = _links_by_name(platform)
        self.static_delay = _static_delays(platform)
        self._set_up_speeds(graph)
        self.up = [True] * len(platform.hosts)
        self.storage_up = [True] * self.network.n_places
        self.transitions: list[Transition] = []
        ordered = sorted(changes, key=lambda change: change.time)
        for change in _first_joins(ordered):
            self._note(change)
        self.joins_later = len(self.transitions)
        """How many transitions are implicit: resources that join later are absent at the start."""
        for change in ordered:
            self._note(change)

    def _set_up_speeds(self, graph: Graph) -> None:
        believed = self.platform.rates(graph)
        whole = believed.copy()
        for h, host in enumerate(self.platform.hosts):
            whole[:, h] /= 1.0 - host.load
        self.whole_speed = whole
        self.speed = [
            [
                Pieces(float(believed[k, h]), None)
                if host.trace is None
                else Pieces(float(whole[k, h]), host.trace)
                for h, host in enumerate(self.platform.hosts)
            ]
            for k in range(len(graph.class_kind))
        ]
        self.bandwidth = [Pieces(float(b), None) for b in self.network.link_bandwidth]
        self.delay = [Pieces(delay, None) for delay in self.static_delay]
        for link, trace in self.network.link_trace.items():
            self.bandwidth[link] = Pieces(1.0, trace.bandwidth)
            self.delay[link] = Pieces(1.0, trace.latency)

    def _note(self, change: Change) -> None:
        if change.what.startswith("host"):
            self._note_host(change, self.host_number[change.name])
            return
        for link in self.links_of.get(change.name, ()):
            if change.what != "link-trace":
                self._happens(change, change.what, link)
            if change.what != "link-down" and isinstance(change.behaviour, LinkTrace):
                self.bandwidth[link].change(change.time, 1.0, change.behaviour.bandwidth)
                self.delay[link].change(change.time, 1.0, change.behaviour.latency)
                self._happens(change, "link-trace", link)
        if change.what != "link-trace":
            self._note_storage(change)

    def _note_host(self, change: Change, host: int) -> None:
        if change.what != "host-down" and isinstance(change.behaviour, Trace):
            for k, row in enumerate(self.speed):
                row[host].change(change.time, float(self.whole_speed[k, host]), change.behaviour)
            self._happens(change, "host-trace", host)
        if change.what == "host-down" and self.up[host]:
            self.up[host] = False
            self._happens(change, "host-down", host)
        elif change.what == "host-up" and not self.up[host]:
            self.up[host] = True
            self._happens(change, "host-up", host)
            self.storage_up[int(self.network.host_place[host])] = True

    def _note_storage(self, change: Change) -> None:
        """A site's shared storage leaves with its link if none of its hosts is present, and returns with it."""
        place = self.common_place(change.name)
        if place < 0 or place == self.network.origin:
            return
        hosts = [h for h, p in enumerate(self.network.host_place.tolist()) if p == place]
        if change.what == "link-down" and self.storage_up[place] and not any(self.up[h] for h in hosts):
            self.storage_up[place] = False
            self._happens(change, "storage-down", place)
        elif change.what == "link-up" and not self.storage_up[place]:
            self.storage_up[place] = True
            self._happens(change, "storage-up", place)

    def _happens(self, change: Change, what: str, number: int) -> None:
        self.transitions.append(Transition(max(0.0, change.time), what, number))

    def common_place(self, name: str) -> int:
        """The place of a site that is the shared storage of its hosts or only holds data; otherwise -1."""
        site = next((s for s in self.platform.sites if s.name == name), None)
        if site is None or self.platform.pairs is not None or (site.bandwidth is not None and site.hosts):
            return -1
        return self.network.place_names.index(name)

    def own_place(self, host: int) -> bool:
        """Whether a host has its own storage, which is lost with it."""
        place = int(self.network.host_place[host])
        return self.network.place_names[place] == self.platform.hosts[host].name

    def latency(self, source: int, target: int, moment: float) -> float:
        """Latency of a route at a time."""
        total = self.network.latency(source, target)
        for link in self.network.route(source, target):
            total += self.delay[link].at(moment) - self.static_delay[link]
        return max(0.0, total)

    def sent(self, source: int, target: int, start: float, end: float) -> float:
        """Bytes that a transfer without contention sends: the integral of its bottleneck bandwidth."""
        route = self.network.route(source, target)
        total, now = 0.0, start
        while now < end:
            after = min([end, *(self.bandwidth[link].next_step(now) for link in route)])
            total += min((self.bandwidth[link].at(now) for link in route), default=math.inf) * (after - now)
            now = after
        return total


def _first_joins(changes: Sequence[Change]) -> list[Change]:
    """Hosts and links whose first change is to join are absent from the start until then."""
    first: dict[str, Change] = {}
    for change in changes:
        if not change.what.endswith("trace"):
            first.setdefault(change.name, change)
    return [
        Change(0.0, "host-down" if change.what == "host-up" else "link-down", change.name)
        for change in first.values()
        if change.what.endswith("up")
    ]


def _links_by_name(platform: Platform) -> dict[str, tuple[int, ...]]:
    names = platform.network.link_names
    links: dict[str, tuple[int, ...]] = {name: (k,) for k, name in enumerate(names)}
    for site in platform.sites:
        if f"{site.name} uplink" in links:
            links[site.name] = links[f"{site.name} uplink"]
    return links


def _static_delays(platform: Platform) -> list[float]:
    """The part of a route's latency due to each link; ports have none."""
    network = platform.network
    if platform.pairs is not None:
        return [float(delay) for delay in network.route_latency[~np.eye(network.n_places, dtype=bool)]]
    own = {f"{site.name} uplink": site.uplink_latency for site in platform.sites}
    for link in platform.links:
        own[f"{link.source} -> {link.target}"] = link.latency
        if not link.oneway:
            own[f"{link.target} -> {link.source}"] = link.latency
    return [own.get(name, 0.0) for name in network.link_names]
