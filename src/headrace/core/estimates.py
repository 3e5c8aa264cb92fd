"""Estimates of run times and of the speeds of hosts and links, as schedulers use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.model.behaviour import Behaviour
from headrace.model.errors import UsageError
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Host, Platform
from headrace.predict.history import LEAST_SHARE, kind_rates, sharing_hosts, work_elsewhere
from headrace.predict.outputs import predicted_sizes
from headrace.predict.remaining import left_on_time


class Estimates:
    """The user's figures: run times from the program, speeds and bandwidths from the platform."""

    fixed = True
    """Whether estimates never change, whatever happens."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self.graph = graph
        self.base = platform
        self.work = graph.work
        self._rates = read_only(platform.rates(graph))

    def note(self, ended: Floats, tasks: Ints, hosts: Ints, seconds: Floats) -> None:
        """Record when these tasks finished on these hosts, and the run time of each in seconds."""

    def grown(self, graph: Graph, platform: Platform) -> Estimates:
        """Estimates for the same program on a platform with one more host, the last."""
        return Estimates(graph, platform)

    def change(self, now: float, what: str, number: int, behaviour: Behaviour) -> None:
        """Record that a "host" or "link" behaves differently from now on; only measuring estimates use this."""

    def rates(self, now: float) -> Floats:
        """Believed speed for each speed class of tasks on each host: [classes, hosts].

        In learning estimates this call also updates `work` and `graph.speed_class`, so it comes before reading them.
        """
        return self._rates

    def platform(self, now: float) -> Platform:
        """The platform with estimated speeds and bandwidths, including hosts that are down."""
        return self.base

    def seconds(self, now: float, tasks: Ints, hosts: Ints) -> Floats:
        """Seconds that these tasks are expected to take on these hosts."""
        rates = self.rates(now)  # first: in learning estimates this call also updates the run times
        expected: Floats = self.work[tasks] / rates[self.graph.speed_class[tasks], hosts]
        return expected

    def sizes(self, done: Bools, measured: Floats) -> Floats:
        """Believed bytes of each item, when these tasks have ended and items that exist are as large as measured.

        Sizes that are unknown are predicted by regression over those that tasks of the same kind made.
        """
        if not self.graph.unknown_size.any():
            return self.graph.size
        predicted = predicted_sizes(self.graph, done, measured)
        return np.where(self.graph.unknown_size, predicted, self.graph.size)

    def left(self, now: float, tasks: Ints, hosts: Ints, started: Floats, expected: Floats) -> Floats:
        """Seconds until running tasks finish; an overdue task is expected to need another tenth of its estimate."""
        return left_on_time(started, expected, now)


def read_only(rates: Floats) -> Floats:
    """The same array made read-only, because schedulers see it."""
    rates.flags.writeable = False
    return rates


class HistoryEstimates(Estimates):
    """Equations 1 and 2 of the macro-dataflow paper over what has run so far; at first the user's figures.

    A host that ran a kind of task is believed to take, per input byte, the weighted mean of its own
    executions (alpha for the latest); one that did not, the mean over those that did, scaled by speed. If the user's
    figures depend on the architecture, that mean is over the hosts of the same architecture where any of them ran it.
    In a kind that reads no bytes each execution counts alike.

    Once a kind has history, all of its tasks are in one speed class, whose number is that of the kind.
    """

    fixed = False

    def __init__(self, graph: Graph, platform: Platform, alpha: float = 0.9) -> None:
        if not 0 < alpha <= 1:
            raise UsageError(f"alpha is {alpha}", where="history", hint="use a number above 0 and at most 1")
        super().__init__(graph.with_plain_classes(), platform)
        self.alpha = alpha
        self.unit = _units(graph)
        self._user = kind_rates(graph, platform.rates(graph))
        self._groups = sharing_hosts(graph, platform)
        shape = self._user.shape
        self.total, self.weight = np.zeros(shape), np.zeros(shape)
        self._platform: Platform | None = None
        self.work = graph.work.copy()
        self._changed: set[int] = set()
        self._learned: dict[int, bool] = {}
        """Kinds with history, and whether they take any time."""

    def note(self, ended: Floats, tasks: Ints, hosts: Ints, seconds: Floats) -> None:
        alpha, total, weight = self.alpha, self.total, self.weight
        kinds = self.graph.kind[tasks].tolist()
        per_unit = (seconds / self.unit[tasks]).tolist()
        for kind, host, value in zip(kinds, hosts.tolist(), per_unit, strict=True):
            total[kind, host] = (1 - alpha) * total[kind, host] + alpha * value
            weight[kind, host] = (1 - alpha) * weight[kind, host] + alpha
            self._changed.add(kind)

    def grown(self, graph: Graph, platform: Platform) -> Estimates:
        """The same history; the new host is believed to be as the platform says, until it has run tasks."""
        made = HistoryEstimates(graph, platform, self.alpha)
        made.total[:, :-1], made.weight[:, :-1] = self.total, self.weight
        made._changed = set(np.flatnonzero(self.weight.any(axis=1)).tolist())
        return made

    def rates(self, now: float) -> Floats:
        if self._changed:
            self._rates = self._rates.copy()
            for kind in sorted(self._changed):
                self._learn(kind)
            if len(self._learned) == len(self.graph.kinds) < len(self._rates):
                self.graph = self.graph.with_plain_classes_only()
                self._rates = self._rates[: len(self.graph.kinds)].copy()
            self._rates = read_only(self._rates)
            self._changed.clear()
            self._platform = None
        return self._rates

    def _learn(self, kind: int) -> None:
        """Bring the speeds for a kind, and the work of its tasks, up to date with what was noted."""
        own, user = self.weight[kind] > 0, self._user[kind]
        mean = np.where(own, self.total[kind] / np.where(own, self.weight[kind], 1.0), 0.0)
        per_unit = np.where(own, mean, work_elsewhere(mean * user, own, self._groups[kind]) / user)
        slowest = float(per_unit.max())
        self._rates[kind] = 1.0 / np.maximum(per_unit, LEAST_SHARE * slowest) if slowest > 0 else user
        if self._learned.get(kind) is not (slowest > 0):
            of_kind = self.graph.kind == kind
            self.graph.speed_class[of_kind] = kind
            self.work[of_kind] = self.unit[of_kind] if slowest > 0 else 0.0
            self._learned[kind] = slowest > 0

    def platform(self, now: float) -> Platform:
        rates = self.rates(now)
        if self._platform is None:
            kinds = self.graph.kinds
            net = self.base.speeds(kinds)
            for kind in self._learned:
                net[kind] = rates[kind]
            self._platform = with_speeds(self.base, kinds, net)
        return self._platform


def _units(graph: Graph) -> Floats:
    """What the time of each task is proportional to: the bytes it reads, or else the mean of its kind, or else 1."""
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    size = np.bincount(reader, weights=graph.known_size[graph.reads], minlength=graph.n_tasks)
    by_kind = np.bincount(graph.kind, weights=size, minlength=len(graph.kinds))
    count = np.maximum(np.bincount(graph.kind, minlength=len(graph.kinds)), 1)
    mean = (by_kind / count)[graph.kind]
    return np.where(size > 0, size, np.where(mean > 0, mean, 1.0))


def with_speeds(platform: Platform, kinds: tuple[str, ...], speeds: Floats) -> Platform:
    """The platform with these effective speeds, [kinds, hosts], which already account for load."""
    plain = kinds.index("") if "" in kinds else -1

    def changed(number: int, host: Host) -> Host:
        named = {kind: float(speeds[k, number]) for k, kind in enumerate(kinds) if kind}
        speed = float(speeds[plain, number]) if plain >= 0 else host.speed
        return replace(host, speed=speed, kinds=named, load=0.0, trace=None)

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
