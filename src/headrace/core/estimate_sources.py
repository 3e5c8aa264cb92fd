"""Estimates from information about hosts and links: perfect, with a bounded error, sampled or forecast."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from headrace.core.estimates import Estimates, HistoryEstimates, read_only, with_hosts
from headrace.model.behaviour import Behaviour
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Host, Pairs, Platform
from headrace.model.trace import LinkTrace, Trace
from headrace.predict.information import INTERVAL, Information, Quality, told_sizes, told_work
from headrace.predict.outputs import predicted_sizes
from headrace.predict.remaining import OVERDUE_SHARE, left_by_load, work_had

_LEAST = 1e-3
"""Lower limit of an estimated availability: a host or link that appears to be stopped may recover."""


class ServiceEstimates(Estimates):
    """What an information service tells about traces; figures are renewed every ten seconds.

    With perfect and bounded information run times of tasks and sizes of items are the real ones (with the error); else
    the user's. Hosts and links without a trace are as the platform says.
    """

    fixed = False

    def __init__(
        self,
        graph: Graph,
        platform: Platform,
        real: Graph | None = None,
        quality: Quality = "perfect",
        *,
        error: float = 0.0,
        seed: int = 0,
    ) -> None:
        real = real or graph
        if quality in ("perfect", "bounded"):
            told = real.with_size(told_sizes(real.size, error=error, seed=seed))
        else:
            told = graph.moving_as(real)
        super().__init__(told, platform)
        self.work = told_work(graph.work, real.work, quality, error=error, seed=seed)
        self.quality = quality
        self._sizes_differ = told.unknown_size.any() or not np.array_equal(told.size, real.size)
        shares = [host.trace or Trace.constant(1.0 - host.load) for host in platform.hosts]
        self._measured = [[(0.0, share)] for share in shares]
        """Measured availability of each host, each value with the time from which it holds."""
        self._hosts = Information(shares, quality, error=error, seed=seed)
        self._full = self._rates / np.array([1.0 - host.load for host in platform.hosts])
        self._links = list(platform.network.link_bandwidth.tolist())
        network = platform.network
        self._uplink = {name: k for k, name in enumerate(network.link_names)}
        bandwidths = [Trace.constant(b) for b in self._links]
        for number, trace in network.link_trace.items():
            bandwidths[number] = trace.bandwidth
        self._bandwidth = Information(bandwidths, quality, error=error, seed=seed + 1)
        self._moment = -1
        self._share, self._link_bandwidth = np.ones(len(shares)), network.link_bandwidth
        self._platform: Platform | None = None

    def change(self, now: float, what: str, number: int, behaviour: Behaviour) -> None:
        if what == "host" and isinstance(behaviour, Trace):
            self._hosts.change(number, behaviour, now)
            self._measured[number].append((now, behaviour))
        elif isinstance(behaviour, LinkTrace):
            self._bandwidth.change(number, behaviour.bandwidth, now)
        self._moment = -1

    def rates(self, now: float) -> Floats:
        self._renew(now)
        return self._rates

    def platform(self, now: float) -> Platform:
        self._renew(now)
        if self._platform is None:
            self._platform = self._as_told(self.base)
        return self._platform

    def sizes(self, done: Bools, measured: Floats) -> Floats:
        """Measured where the maker has ended. With perfect and bounded information the rest is as told, else what is
        still to be made is predicted by regression over what was measured."""
        if self.quality in ("perfect", "bounded"):
            made = (self.graph.producer >= 0) & done[self.graph.producer]
            return np.where(made, measured, self.graph.size)
        if not self._sizes_differ:
            return self.graph.size
        return predicted_sizes(self.graph, done, measured)

    def left(self, now: float, tasks: Ints, hosts: Ints, started: Floats, expected: Floats) -> Floats:
        """Uses the load measured since each task started, and the load known or predicted for the future."""
        left = np.zeros(len(tasks))
        for k, (task, host) in enumerate(zip(tasks.tolist(), hosts.tolist(), strict=True)):
            needs = float(self.work[task]) / float(self._full[self.graph.speed_class[task], host])
            had = work_had(float(started[k]), now, self._measured[host])
            overdue = OVERDUE_SHARE * float(expected[k])
            left[k] = left_by_load(needs, had, partial(self._takes, now, host), overdue)
        return left

    def _takes(self, now: float, host: int, amount: float) -> float:
        """Seconds that an amount of work takes on a host from now on; a stopped host is assumed to recover."""
        return min(self._hosts.seconds(now, host, amount), amount / _LEAST)

    def _renew(self, now: float) -> None:
        moment = math.floor(now / INTERVAL)
        if moment == self._moment:
            return
        self._moment = moment
        self._share = np.maximum(self._hosts.at(now), _LEAST)
        self._link_bandwidth = np.maximum(self._bandwidth.at(now), _LEAST * np.array(self._links))
        self._rates = read_only(self._full * self._share)
        self._platform = None

    def _as_told(self, platform: Platform) -> Platform:
        """A platform with the loads and bandwidths of now."""
        share, bandwidth = self._share, self._link_bandwidth

        def seen(number: int, host: Host) -> Host:
            load = min(max(0.0, 1.0 - float(share[number])), 1.0 - _LEAST)
            return replace(host, load=load, trace=None)

        platform = with_hosts(platform, seen)
        sites = tuple(
            site
            if site.uplink is None
            else replace(
                site, uplink=float(bandwidth[self._uplink[f"{site.name} uplink"]]), uplink_trace=None
            )
            for site in platform.sites
        )
        links = tuple(
            replace(
                link, bandwidth=float(bandwidth[self._uplink[f"{link.source} -> {link.target}"]]), trace=None
            )
            for link in platform.links
        )
        return replace(platform, sites=sites, links=links, pairs=self._pairs(bandwidth))

    def _pairs(self, bandwidth: Floats) -> Pairs | None:
        """Links between pairs of hosts with these bandwidths."""
        pairs = self.base.pairs
        if pairs is None:
            return None
        between = np.array(pairs.bandwidth, np.float64)
        between[~np.eye(len(between), dtype=np.bool_)] = bandwidth
        return replace(pairs, bandwidth=between)


class LearningEstimates(ServiceEstimates):
    """Run times from history, speeds and bandwidths from an information service that samples or forecasts.

    What is learned are seconds of a whole core: how much of its host's cores was there for each task was measured.
    """

    def __init__(
        self, graph: Graph, platform: Platform, real: Graph | None = None, quality: Quality = "forecast"
    ) -> None:
        super().__init__(graph, platform, real, quality)
        whole = with_hosts(platform, lambda _, host: replace(host, load=0.0, trace=None))
        self.history = HistoryEstimates(self.graph, whole)
        self._learn()

    def note(self, ended: Floats, tasks: Ints, hosts: Ints, seconds: Floats) -> None:
        rows = zip(ended.tolist(), hosts.tolist(), seconds.tolist(), strict=True)
        had = [work_had(end - took, end, self._measured[host]) for end, host, took in rows]
        self.history.note(ended, tasks, hosts, np.array(had))
        self._learn()

    def _learn(self) -> None:
        """Take over what history knows now."""
        self._full = self.history.rates(0.0)
        self.graph, self.work = self.history.graph, self.history.work
        self._rates = read_only(self._full * self._share)
        self._platform = None

    def platform(self, now: float) -> Platform:
        self._renew(now)
        if self._platform is None:
            self._platform = self._as_told(self.history.platform(now))
        return self._platform
