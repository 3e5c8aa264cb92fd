"""Generated grids for campaigns: clusters behind links, synthetic availability, and churn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.model.behaviour import (
    AddCluster,
    AddHost,
    Behaviour,
    GridEvent,
    GridScript,
    LinkTrace,
    RemoveHost,
    grid_script,
)
from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.trace import Trace

Series: TypeAlias = Literal["stable", "loaded", "periodic", "walk", "onoff"]
SERIES: tuple[Series, ...] = get_args(Series)
INTERVAL = 5.0
_LEAST = 0.02
"""No series except onoff falls below this share of its mean: a resource that stops is removed instead."""


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """How a quantity varies over time, relative to its mean.

    - stable: always the mean;
    - loaded: the mean, but half of the time, in bursts of `period` seconds, 1 - `spread` of it;
    - periodic: a sine around the mean with amplitude `spread` and this `period`;
    - walk: a mean-reverting random walk with deviation `spread` over a `period`;
    - onoff: on and off for times drawn with mean `period`; off for a share `spread` of the time.
    """

    series: Series = "stable"
    spread: float = 0.0
    period: float = 600.0

    def __post_init__(self) -> None:
        if self.series not in SERIES:
            raise UsageError(f"the series is {self.series!r}", hint=f"use one of {', '.join(SERIES)}")
        if not (0 <= self.spread < 1 and self.period >= 2 * INTERVAL):
            raise UsageError(
                f"spread is {self.spread}, period {self.period}",
                where=f"series {self.series}",
                hint=f"give a spread from 0 up to 1 and a period of {2 * INTERVAL:g} s or more",
            )


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Equal hosts behind one link."""

    hosts: int
    availability: float = 1.0
    bandwidth: float = 1e4
    latency: float = 0.0
    load: SeriesSpec = SeriesSpec()
    """How the availability of hosts varies; each host has its own series."""
    traffic: SeriesSpec = SeriesSpec()
    """How the bandwidth varies."""
    arch: int = 0


@dataclass(frozen=True)
class GridSpec:
    """Clusters, and how often hosts leave and return.

    Each host is present for times drawn with mean `up` seconds and absent for times with mean `down`; the first
    host of the grid always stays, so that every program can complete.
    """

    clusters: tuple[ClusterSpec, ...] = field(
        default=(ClusterSpec(4), ClusterSpec(6, 0.7), ClusterSpec(12, 0.3))
    )
    up: float | None = None
    down: float = 600.0
    until: float = 86_400.0
    """Nothing joins or leaves after this time; series repeat after it."""

    def __post_init__(self) -> None:
        if not self.clusters or any(c.hosts < 1 for c in self.clusters):
            raise UsageError("a cluster has no hosts", where="grid", hint="give each cluster 1 host or more")
        for c in self.clusters:
            if not (0 < c.availability <= 1 and c.bandwidth > 0 and c.latency >= 0 and c.arch >= 0):
                raise UsageError(
                    f"availability is {c.availability}, bandwidth {c.bandwidth}, latency {c.latency}",
                    where="grid",
                    hint="give an availability above 0 up to 1, a bandwidth above 0, a latency of 0 or more",
                )
        if not (self.until > 0 and self.down > 0 and (self.up is None or self.up > 0)):
            raise UsageError(
                f"up is {self.up}, down {self.down}, until {self.until}",
                where="grid",
                hint="give times above 0",
            )


def generate_grid(spec: GridSpec, seed: int, name: str = "grid") -> GridScript:
    """A grid according to the specification; the same seed gives the same grid: O(hosts * steps).

    >>> grid = generate_grid(GridSpec((ClusterSpec(2), ClusterSpec(1, 0.5))), seed=0)
    >>> [h.name for h in grid.start().hosts], grid.start().hosts[2].load
    (['c0h0', 'c0h1', 'c1h0'], 0.5)
    """
    behaviours: dict[str, Behaviour] = {}
    events: list[GridEvent] = []
    for c, cluster in enumerate(spec.clusters):
        link = make_series(cluster.traffic, cluster.bandwidth, spec.until, [seed, 41, c])
        latency = Trace.constant(cluster.latency)
        behaviours[f"c{c}"] = LinkTrace(link, latency)
        events.append(AddCluster(0.0, f"c{c}", f"c{c}"))
        for h in range(cluster.hosts):
            host = f"c{c}h{h}"
            share = make_series(cluster.load, cluster.availability, spec.until, [seed, 42, c, h])
            behaviours[host] = Trace(share.time, np.minimum(share.value, 1.0), share.length)
            events.append(AddHost(0.0, f"c{c}", host, host, 0, cluster.arch))
            if spec.up is not None and (c, h) != (0, 0):
                events += _churn(spec, cluster, c, host, [seed, 43, c, h])
    return grid_script(events, behaviours, name=name)


def _churn(spec: GridSpec, cluster: ClusterSpec, c: int, host: str, seed: list[int]) -> list[GridEvent]:
    rng = np.random.default_rng(seed)
    events: list[GridEvent] = []
    assert spec.up is not None
    moment = float(rng.exponential(spec.up))
    while moment < spec.until:
        events.append(RemoveHost(moment, host))
        moment += float(rng.exponential(spec.down))
        if moment >= spec.until:
            break
        events.append(AddHost(moment, f"c{c}", host, host, 0, cluster.arch))
        moment += float(rng.exponential(spec.up))
    return events


def make_series(spec: SeriesSpec, mean: float, length: float, seed: list[int]) -> Trace:
    """A series of about this mean, with a value every 5 s (onoff: when it changes), repeating after `length`.

    >>> make_series(SeriesSpec("onoff", 0.5, 100.0), 1.0, 3600.0, [1]).value[:4].tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    if spec.series == "stable" or spec.spread == 0:
        return Trace.constant(mean)
    rng = np.random.default_rng(seed)
    if spec.series == "onoff":
        return _onoff(spec, mean, length, rng)
    count = max(2, round(length / INTERVAL))
    times = np.arange(count, dtype=np.float64) * INTERVAL
    shares = {"loaded": _loaded, "periodic": _periodic, "walk": _walk}[spec.series](spec, times, rng)
    return Trace.steps(mean * np.maximum(shares, _LEAST), INTERVAL)


def _loaded(spec: SeriesSpec, times: Floats, rng: np.random.Generator) -> Floats:
    bursts = rng.random(int(times[-1] // spec.period) + 1) < 0.5
    return np.where(bursts[(times // spec.period).astype(np.int64)], 1.0 - spec.spread, 1.0)


def _periodic(spec: SeriesSpec, times: Floats, rng: np.random.Generator) -> Floats:
    phase = rng.uniform(0, 2 * np.pi)
    return np.asarray(1.0 + spec.spread * np.sin(2 * np.pi * times / spec.period + phase))


def _walk(spec: SeriesSpec, times: Floats, rng: np.random.Generator) -> Floats:
    """An autoregressive series whose correlation decays over the period."""
    keep = np.exp(-INTERVAL / spec.period)
    shocks = rng.normal(0.0, spec.spread * np.sqrt(1 - keep * keep), len(times))
    values = np.empty(len(times))
    value = float(rng.normal(0.0, spec.spread))
    for k, shock in enumerate(shocks.tolist()):
        value = keep * value + shock
        values[k] = 1.0 + value
    return values


def _onoff(spec: SeriesSpec, mean: float, length: float, rng: np.random.Generator) -> Trace:
    """Alternating pieces, on first, of mean lengths 2 * period * (1 - spread) and 2 * period * spread."""
    ends: list[float] = [0.0]
    while ends[-1] < length:
        share = (1 - spec.spread, spec.spread)[len(ends) % 2 == 0]
        ends.append(ends[-1] + max(1e-3, float(rng.exponential(2 * spec.period * share))))
    time = np.array([moment for moment in ends if moment < length])
    return Trace(time, np.where(np.arange(len(time)) % 2 == 0, mean, 0.0), length)
