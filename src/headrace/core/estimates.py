"""Estimates of run times and of the speeds of hosts and links, as schedulers use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.model.behaviour import Behaviour
from headrace.model.errors import UsageError
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Host, Platform
from headrace.predict.remaining import left_on_time

_LEAST_SHARE = 1e-9
"""Minimum time on a host, as a share of the slowest host's, so that a zero run time gives no infinite speed."""


class Estimates:
    """The user's figures: run times from the program, speeds and bandwidths from the platform."""

    fixed = True
    """Whether estimates never change, whatever happens."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self.graph = graph
        self.base = platform
        self.work = graph.work
        self._rates = read_only(platform.rates(graph.kinds))

    def note(self, now: float, tasks: Ints, hosts: Ints, seconds: Floats) -> None:
        """Record that these tasks finished on these hosts, and the run time of each in seconds."""

    def change(self, now: float, what: str, number: int, behaviour: Behaviour) -> None:
        """Record that a "host" or "link" behaves differently from now on; only measuring estimates use this."""

    def rates(self, now: float) -> Floats:
        """Estimated speed for each kind of task on each host: [kinds, hosts]."""
        return self._rates

    def platform(self, now: float) -> Platform:
        """The platform with estimated speeds and bandwidths, including hosts that are down."""
        return self.base

    def seconds(self, now: float, tasks: Ints, hosts: Ints) -> Floats:
        """Seconds that these tasks are expected to take on these hosts."""
        rates = self.rates(now)  # first: in learning estimates this call also updates the run times
        expected: Floats = self.work[tasks] / rates[self.graph.kind[tasks], hosts]
        return expected

    def sizes(self, done: Bools) -> Floats:
        """Estimated bytes of each item, given the tasks that are done."""
        return self.graph.size

    def left(self, now: float, tasks: Ints, hosts: Ints, started: Floats, expected: Floats) -> Floats:
        """Seconds until running tasks finish; an overdue task is expected to need another tenth of its estimate."""
        return left_on_time(started, expected, now)


def read_only(rates: Floats) -> Floats:
    """The same array made read-only, because schedulers see it."""
    rates.flags.writeable = False
    return rates


class HistoryEstimates(Estimates):
    """Run times learned from past executions (equations 1 and 2 of the macro-dataflow paper); initially the user's.

    For a host that has executed a kind of task, the time per input byte is the weighted mean of its own executions,
    where the latest has weight alpha. For a host that has not, it is the mean over the hosts that have, scaled by
    speed. For kinds without input bytes, the time per execution is used.
    """

    fixed = False

    def __init__(self, graph: Graph, platform: Platform, alpha: float = 0.9) -> None:
        super().__init__(graph, platform)
        if not 0 < alpha <= 1:
            raise UsageError(f"alpha is {alpha}", where="history", hint="use a number above 0 and at most 1")
        self.alpha = alpha
        reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
        size = np.bincount(reader, weights=graph.size[graph.reads], minlength=graph.n_tasks)
        by_kind = np.bincount(graph.kind, weights=size, minlength=len(graph.kinds))
        count = np.maximum(np.bincount(graph.kind, minlength=len(graph.kinds)), 1)
        mean = (by_kind / count)[graph.kind]
        self.unit = np.where(size > 0, size, np.where(mean > 0, mean, 1.0))
        shape = self._rates.shape
        self.total, self.weight = np.zeros(shape), np.zeros(shape)
        self._user = self._rates
        self._platform: Platform | None = None
        self.work = graph.work.copy()
        self._changed: set[int] = set()

    def note(self, now: float, tasks: Ints, hosts: Ints, seconds: Floats) -> None:
        alpha, total, weight = self.alpha, self.total, self.weight
        kinds = self.graph.kind[tasks].tolist()
        per_unit = (seconds / self.unit[tasks]).tolist()
        for kind, host, value in zip(kinds, hosts.tolist(), per_unit, strict=True):
            total[kind, host] = (1 - alpha) * total[kind, host] + alpha * value
            weight[kind, host] = (1 - alpha) * weight[kind, host] + alpha
            self._changed.add(kind)

    def rates(self, now: float) -> Floats:
        if self._changed:
            self._rates = self._rates.copy()
            for kind in sorted(self._changed):
                own = self.weight[kind] > 0
                mean = np.where(own, self.total[kind] / np.where(own, self.weight[kind], 1.0), 0.0)
                at_speed_one = float((mean[own] * self._user[kind][own]).mean())
                per_unit = np.where(own, mean, at_speed_one / self._user[kind])
                of_kind = self.graph.kind == kind
                if per_unit.max() > 0:
                    self._rates[kind] = 1.0 / np.maximum(per_unit, _LEAST_SHARE * per_unit.max())
                    self.work[of_kind] = self.unit[of_kind]
                else:
                    self._rates[kind] = self._user[kind]
                    self.work[of_kind] = 0.0
            self._rates = read_only(self._rates)
            self._changed.clear()
            self._platform = None
        return self._rates

    def platform(self, now: float) -> Platform:
        rates = self.rates(now)
        if self._platform is None:
            self._platform = with_rates(self.base, self.graph.kinds, rates)
        return self._platform


def with_rates(platform: Platform, kinds: tuple[str, ...], rates: Floats) -> Platform:
    """The platform with these effective speeds, [kinds, hosts], which already account for load."""
    plain = kinds.index("") if "" in kinds else -1

    def changed(number: int, host: Host) -> Host:
        speeds = {kind: float(rates[k, number]) for k, kind in enumerate(kinds) if kind}
        speed = float(rates[plain, number]) if plain >= 0 else host.speed
        return replace(host, speed=speed, kinds=speeds, load=0.0, trace=None)

    return with_hosts(platform, changed)


def with_hosts(platform: Platform, changed: Callable[[int, Host], Host]) -> Platform:
    """The platform with every host replaced by `changed(number, host)`; numbers stay the same."""
    number = 0
    sites = []
    for site in platform.sites:
        hosts = tuple(changed(number + k, host) for k, host in enumerate(site.hosts))
        number += len(hosts)
        sites.append(replace(site, hosts=hosts))
    return replace(platform, sites=tuple(sites))
