"""Seeded fault scripts: eight profiles, after each of which at least one host is alive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.core.scheduler import Command, Scheduler, WakeConditions
from headrace.core.view import RunView
from headrace.model.behaviour import Change
from headrace.model.events import Event
from headrace.model.platform import Platform
from headrace.model.trace import LinkTrace, Trace

Profile: TypeAlias = Literal[
    "crash", "slow-down", "join", "cluster-loss", "link-loss", "double-fault", "flapping", "slow-planning"
]
PROFILES: tuple[Profile, ...] = get_args(Profile)
Rng: TypeAlias = np.random.Generator


def faults(platform: Platform, profile: Profile, seed: int, horizon: float) -> list[Change]:
    """Changes to a grid within about `horizon` seconds: O(hosts + links).

    `crash`: hosts leave permanently. `slow-down`: hosts and links follow traces, some only later.
    `join`: some hosts join later. `cluster-loss`: a site leaves with its hosts and its link, and usually
    returns. `link-loss`: links go down and come up again. `double-fault`: two hosts leave simultaneously or
    in quick succession, one returns and leaves again. `flapping`: hosts leave and return many times.
    `slow-planning`: a mix of these, for a slow scheduler; see `Slow`.

    At the end, at least one host is alive and every link is up.

    >>> lab = Platform.pairwise([1.0, 2.0], 1e6)
    >>> [c.what for c in faults(lab, "crash", seed=1, horizon=10.0)]
    ['host-down']
    """
    rng = np.random.default_rng([seed, PROFILES.index(profile), 4])
    changes = _MAKERS[profile](platform, rng, max(horizon, 1e-3))
    return sorted(changes, key=lambda change: change.time)


def _moment(rng: Rng, horizon: float) -> float:
    """Usually a random time, sometimes a round one, at which other changes may happen too."""
    moment = float(rng.uniform(0.02, 0.9) * horizon)
    return moment if rng.random() < 0.8 else float(round(moment))


def _some_hosts(platform: Platform, rng: Rng, at_most: int) -> list[str]:
    names = [host.name for host in platform.hosts]
    count = min(len(names) - 1, int(rng.integers(1, at_most + 1)))
    return [names[k] for k in rng.permutation(len(names))[:count]]


def _crash(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    lost = _some_hosts(platform, rng, max(1, len(platform.hosts) // 2))
    return [Change(_moment(rng, horizon), "host-down", name) for name in lost]


def _slow_down(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    changes = [
        Change(_moment(rng, horizon), "host-trace", host.name, availability(rng, horizon))
        for host in platform.hosts
        for _ in range(int(rng.integers(0, 3)))
    ]
    network = platform.network
    for link in rng.permutation(network.n_links)[:6].tolist():
        trace = link_behaviour(rng, horizon, float(network.link_bandwidth[link]))
        changes.append(Change(_moment(rng, horizon), "link-trace", network.link_names[link], trace))
    return changes


def availability(rng: Rng, horizon: float) -> Trace:
    """A random step series with intervals of 0, repeating or not; never 0 forever."""
    steps = int(rng.integers(1, 6))
    value = rng.uniform(0.05, 1.0, steps)
    value[rng.random(steps) < 0.2] = 0.0
    if value.max() == 0.0 or value[-1] == 0.0:
        value[-1] = 0.5
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(0.02, 0.3, steps - 1)))) * horizon
    length = math.inf if rng.random() < 0.3 else float(time[-1] + rng.uniform(0.02, 0.3) * horizon)
    return Trace(time, value, length, float(rng.uniform(0.0, 0.5) * horizon))


def link_behaviour(rng: Rng, horizon: float, bandwidth: float) -> LinkTrace:
    """A share of the bandwidth, and a latency that is up to a twentieth of the horizon."""
    rate = availability(rng, horizon)
    delay = availability(rng, horizon)
    return LinkTrace(
        Trace(rate.time, rate.value * bandwidth, rate.length, rate.offset),
        Trace(delay.time, delay.value * 0.05 * horizon, delay.length, delay.offset),
    )


def _join(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    late = _some_hosts(platform, rng, len(platform.hosts))
    changes = [Change(_moment(rng, horizon), "host-up", name) for name in late]
    for name in late:
        if rng.random() < 0.2:  # it joins, follows a trace, and leaves again
            changes.append(Change(0.95 * horizon, "host-down", name))
    return changes


def _cluster_loss(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    sites = [site for site in platform.sites if site.hosts]
    lost = sites[int(rng.integers(len(sites)))]
    down = _moment(rng, horizon)
    at_origin = platform.origin in (lost.name, *(host.name for host in lost.hosts))
    returns = len(sites) == 1 or at_origin or rng.random() < 0.6
    changes = [Change(down, "host-down", host.name) for host in lost.hosts]
    changes.append(Change(down, "link-down", lost.name))
    if returns:
        back = down + float(rng.uniform(0.05, 0.5)) * horizon
        changes.append(Change(back, "link-up", lost.name))
        joined = [host for host in lost.hosts if rng.random() < 0.7] or [lost.hosts[0]]
        changes.extend(Change(back, "host-up", host.name) for host in joined)
    return changes


def _link_loss(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    names = platform.network.link_names
    changes: list[Change] = []
    for link in rng.permutation(len(names))[: int(rng.integers(1, 5))].tolist():
        down = _moment(rng, horizon)
        for _ in range(int(rng.integers(1, 3))):
            up = down + float(rng.uniform(0.01, 0.4)) * horizon
            changes += [Change(down, "link-down", names[link]), Change(up, "link-up", names[link])]
            down = up + float(rng.uniform(0.0, 0.2)) * horizon
    return changes


def _double_fault(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    lost = _some_hosts(platform, rng, 3)
    first = _moment(rng, horizon)
    changes: list[Change] = []
    for name in lost:
        down = first if rng.random() < 0.5 else first + float(rng.uniform(0.0, 0.1)) * horizon
        changes.append(Change(down, "host-down", name))
    if lost and rng.random() < 0.5:
        back = first + 0.2 * horizon
        changes.append(Change(back, "host-up", lost[0]))
        changes.append(Change(back + float(rng.uniform(0.01, 0.3)) * horizon, "host-down", lost[0]))
    return changes


def _flapping(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    changes: list[Change] = []
    for name in _some_hosts(platform, rng, len(platform.hosts)):
        moment = _moment(rng, 0.3 * horizon)
        for turn in range(2 * int(rng.integers(2, 7))):
            changes.append(Change(moment, "host-up" if turn % 2 else "host-down", name))
            moment += float(rng.uniform(0.005, 0.2)) * horizon
    return changes


def _slow_planning(platform: Platform, rng: Rng, horizon: float) -> list[Change]:
    other = (_crash, _join, _flapping)[int(rng.integers(3))]
    return other(platform, rng, horizon)


_MAKERS: dict[Profile, Callable[[Platform, Rng, float], list[Change]]] = {
    "crash": _crash,
    "slow-down": _slow_down,
    "join": _join,
    "cluster-loss": _cluster_loss,
    "link-loss": _link_loss,
    "double-fault": _double_fault,
    "flapping": _flapping,
    "slow-planning": _slow_planning,
}


class Slow:
    """A scheduler whose commands take effect `delay` seconds late, when the grid may have changed.

    Events in the meantime are delivered to it afterwards, in one batch.
    """

    def __init__(self, scheduler: Scheduler, delay: float) -> None:
        self.scheduler = scheduler
        self.delay = delay
        self.name = f"slow {scheduler.name}"
        self._due = math.inf
        self._answers: Sequence[Command] = ()
        self._news: list[Event] = []

    @property
    def wake(self) -> WakeConditions:
        """The wake conditions of the scheduler, except while it is busy."""
        wake = self.scheduler.wake if self._due == math.inf else WakeConditions()
        return replace(wake, at=self._due)

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]:
        """Return the pending commands if they are due; call the scheduler again if there are new events."""
        self._news.extend(events)
        if view.time < self._due < math.inf:
            return ()
        due, self._answers = self._answers, ()
        thought = self._due < math.inf
        self._due = math.inf
        if not thought or self._news:
            self._answers = self.scheduler.react(view, self._news)
            self._news = []
            if self._answers:
                self._due = view.time + self.delay
        return due
