"""What the engine costs for each task and transfer: measured in runs, and part of the plans of later ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Host, Pairs, Platform

_ENOUGH = 5
"""Tasks or transfers from which a figure counts."""


@dataclass(frozen=True, slots=True)
class Overheads:
    """Seconds that the engine takes."""

    task: float = 0.0
    """From when a core is free and the inputs of its next task are there, until that task starts."""
    transfer: float = 0.0
    """From when an item is made and neither its source nor its target transfers another, until its transfer starts."""


def overheads(
    graph: Graph, platform: Platform, events: Iterable[Event], *, typical: bool = True
) -> Overheads:
    """The overheads in a run: means, if `typical` without the longest and the shortest tenth. O(events log events).

    >>> from headrace.model.graph import make_graph
    >>> graph = make_graph(work=[1.0] * 6, size=[], producer=[], read_ptr=[0] * 7, reads=[])
    >>> done = [TaskFinished(1.01 * k + 1.0, f"t{k}", "h0", 1.01 * k) for k in range(6)]
    >>> found = overheads(graph, Platform.pairwise([1.0], bandwidth=1e6), done)
    >>> round(found.task, 6), found.transfer
    (0.01, 0.0)
    """
    seen = tuple(events)
    runs = sorted((e for e in seen if isinstance(e, TaskFinished)), key=lambda e: (e.start, e.time, e.task))
    moves = sorted((e for e in seen if isinstance(e, DataMoved)), key=lambda e: (e.start, e.time, e.item))
    number = {name: t for t, name in enumerate(graph.task_names)}
    made = {
        (graph.item_names[item], run.host): run.time
        for run in runs
        for item in graph.writes_of(number[run.task]).tolist()
    }
    there = made | {(move.item, move.target): move.time for move in moves}
    ready = [
        max(
            (there.get((graph.item_names[i], run.host), 0.0) for i in graph.reads_of(number[run.task])),
            default=0.0,
        )
        for run in runs
    ]
    pauses, delays = _pauses(platform, runs, ready), _delays(moves, made)
    return Overheads(_mean(pauses, typical), _mean(delays, typical))


def _pauses(platform: Platform, runs: Sequence[TaskFinished], ready: Sequence[float]) -> list[float]:
    """Pauses before tasks for which all cores of the host were busy just before."""
    cores = {host.name: host.cores for host in platform.hosts}
    running: dict[str, list[float]] = {}
    pauses = []
    for run, inputs in zip(runs, ready, strict=True):
        busy = running.setdefault(run.host, [])
        if len(busy) >= cores.get(run.host, 1):
            pauses.append(run.start - max(heapq.heappop(busy), inputs))
        heapq.heappush(busy, run.time)
    return pauses


def _delays(moves: Sequence[DataMoved], made: dict[tuple[str, str], float]) -> list[float]:
    """Delays of transfers from the host that made the item; waiting for another transfer is not one."""
    free: dict[str, float] = {}
    delays = []
    for move in moves:
        if (move.item, move.source) in made:
            ends = (free.get(move.source, 0.0), free.get(move.target, 0.0))
            delays.append(move.start - max(made[move.item, move.source], *ends))
        for host in (move.source, move.target):
            free[host] = max(free.get(host, 0.0), move.time)
    return delays


def _mean(pauses: Sequence[float], typical: bool) -> float:
    if len(pauses) < _ENOUGH:
        return 0.0
    ordered = np.sort(np.maximum(pauses, 0.0))
    if typical:
        left_out = math.ceil(len(ordered) / 10)
        ordered = ordered[left_out : len(ordered) - left_out]
    return float(ordered.mean())


def with_task_overhead(graph: Graph, platform: Platform, seconds: float) -> Platform:
    """The platform with speeds such that tasks of average length of their kind take this many seconds longer.

    Tasks without a kind, and those with speeds for each architecture, stay as they are. O(kinds * hosts).

    >>> from headrace.model.graph import make_graph
    >>> graph = make_graph(work=[1.0, 3.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[], kinds=("fft",))
    >>> lab = with_task_overhead(graph, Platform.pairwise([1.0, 4.0], bandwidth=1e6), 0.5)
    >>> [round(2.0 / float(rate), 6) for rate in lab.rates(graph)[0]]
    [2.5, 1.0]
    """
    if seconds <= 0 or graph.arch_speeds.shape[1]:
        return platform
    mean = {
        kind: float(graph.work[graph.kind == number].mean())
        for number, kind in enumerate(graph.kinds)
        if kind and (graph.work[graph.kind == number] > 0).any()
    }

    def changed(host: Host) -> Host:
        share = 1.0 - host.load
        own = {}
        for kind, work in mean.items():
            net = host.kinds.get(kind, host.speed) * share
            own[kind] = work / (work / net + seconds) / share
        return replace(host, kinds={**host.kinds, **own})

    sites = tuple(replace(site, hosts=tuple(map(changed, site.hosts))) for site in platform.sites)
    return replace(platform, sites=sites)


def with_transfer_overhead(platform: Platform, seconds: float) -> Platform:
    """The platform with latencies such that transfers take this many seconds longer.

    >>> with_transfer_overhead(Platform.pairwise([1.0, 1.0], bandwidth=1e6), 0.5).network.latency(0, 1)
    0.5
    """
    if platform.pairs is not None:
        return replace(platform, pairs=Pairs(platform.pairs.bandwidth, platform.pairs.latency + seconds))
    # Between two sites, the latencies of both are on the way.
    share = seconds if sum(bool(site.hosts) for site in platform.sites) == 1 else seconds / 2
    sites = tuple(replace(site, latency=site.latency + share) for site in platform.sites)
    return replace(platform, sites=sites)
