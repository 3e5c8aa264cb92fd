"""The checker's own model of fair contention: links shared max-min fairly as flows start and end."""

from __future__ import annotations

import heapq
import math

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats


def fair_finishes(begin: Floats, size: Floats, owner: Numbers, link: Numbers, bandwidth: Floats) -> Floats:
    """Finish times of flows with these start times, if they share all links max-min fairly.

    Links of infinite bandwidth do not limit flows; an unlimited flow ends as soon as it starts.
    """
    holds = np.isfinite(bandwidth[link])
    routes: list[list[int]] = [[] for _ in begin]
    for flow, used in zip(owner[holds].tolist(), link[holds].tolist(), strict=True):
        routes[flow].append(used)
    flows = [k for k in np.lexsort((np.arange(len(begin)), begin)).tolist() if routes[k] and size[k] > 0]
    fluid = _Fluid(size.tolist(), routes, bandwidth.tolist())
    finish = begin.copy()
    for k, moment in fluid.run([(float(begin[k]), k) for k in flows]):
        finish[k] = moment
    return finish


class _Fluid:
    """Event loop over flows: when one starts or ends, rates of all flows connected to it are recomputed."""

    def __init__(self, left: list[float], routes: list[list[int]], bandwidth: list[float]) -> None:
        self.left = left
        self.routes = routes
        self.bandwidth = bandwidth
        self.rate = [0.0] * len(left)
        self.since = [0.0] * len(left)
        self.on: dict[int, dict[int, None]] = {}
        """The current flows on each link, in order of arrival."""
        self.version = [0] * len(left)
        self.ends: list[tuple[float, int, int]] = []
        """(time, flow, version); stale once the flow has a newer version."""

    def run(self, arrivals: list[tuple[float, int]]) -> list[tuple[int, float]]:
        """(flow, finish time) of each flow, given arrivals sorted by time."""
        done: list[tuple[int, float]] = []
        at = 0
        while at < len(arrivals) or self.ends:
            now = min(arrivals[at][0] if at < len(arrivals) else math.inf, self._next_end())
            touched: dict[int, None] = {}
            while self._next_end() <= now < math.inf:
                flow = heapq.heappop(self.ends)[1]
                done.append((flow, now))
                for link in self.routes[flow]:
                    del self.on[link][flow]
                    touched[link] = None
            while at < len(arrivals) and arrivals[at][0] <= now:
                flow = arrivals[at][1]
                at += 1
                self.since[flow] = now
                for link in self.routes[flow]:
                    self.on.setdefault(link, {})[flow] = None
                    touched[link] = None
            self._share(now, touched)
        return done

    def _next_end(self) -> float:
        while self.ends and self.ends[0][2] != self.version[self.ends[0][1]]:
            heapq.heappop(self.ends)
        return self.ends[0][0] if self.ends else math.inf

    def _share(self, now: float, links: dict[int, None]) -> None:
        """Recompute the rates of all flows connected to these links, directly or through other flows."""
        flows: dict[int, None] = {}
        stack = list(links)
        while stack:
            for flow in self.on[stack.pop()]:
                if flow not in flows:
                    flows[flow] = None
                    fresh = [link for link in self.routes[flow] if link not in links]
                    links.update(dict.fromkeys(fresh))
                    stack.extend(fresh)
        for flow, rate in self._max_min(links).items():
            if rate != self.rate[flow]:
                self.left[flow] -= self.rate[flow] * (now - self.since[flow])
                self.rate[flow], self.since[flow] = rate, now
                self.version[flow] += 1
                end = now + max(0.0, self.left[flow]) / rate
                heapq.heappush(self.ends, (end, flow, self.version[flow]))

    def _max_min(self, links: dict[int, None]) -> dict[int, float]:
        """Progressive filling: the link with the smallest fair share fixes the rate of its flows.

        Fair shares only grow as flows are fixed, so a heap with stale values still finds the smallest.
        """
        room = {link: self.bandwidth[link] for link in links}
        open_flows = {link: len(self.on[link]) for link in links}
        heap = [(room[link] / count, link) for link, count in open_flows.items() if count]
        heapq.heapify(heap)
        rates: dict[int, float] = {}
        while heap:
            old, link = heapq.heappop(heap)
            if not open_flows[link]:
                continue
            share = room[link] / open_flows[link]
            if share > old:
                heapq.heappush(heap, (share, link))
                continue
            for flow in self.on[link]:
                if flow not in rates:
                    rates[flow] = share
                    for other in self.routes[flow]:
                        room[other] -= share
                        open_flows[other] -= 1
        return rates
