"""The schedules that the rule search, the solver model and their tests agree on: semi-active ones on free links.

A schedule is a host for every task and, for every host, the order in which it starts its tasks. Times follow: a task
starts as soon as its inputs have arrived and its cores are free, and no later. So no task is delayed on purpose, and a
rule that only a deliberate delay could satisfy counts as infeasible. Each item goes straight from the host that
produced it to each place that needs it, in the time of an idle network.

On a host with several cores a task takes those that become free first, and tasks start in the order of the host's
sequence: each start is at least the one before it. A schedule in which a later task of the sequence overtakes is the
schedule of another sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Floats, Graph, Ints
from headrace.model.needs import fitting
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.model.platform import Platform


@dataclass(frozen=True, eq=False)
class ScheduleSpace:
    """Durations and delays of every semi-active schedule of a program on a platform."""

    graph: Graph
    platform: Platform
    run: Floats
    """[tasks, hosts] run time; inf where the task cannot run."""
    outside: Floats
    """[tasks, hosts] earliest start by release and inputs from outside the program."""
    inputs: tuple[tuple[tuple[int, Floats], ...], ...]
    """For each task: its predecessors, with the [hosts, hosts] seconds from their host to the task's."""
    seconds: tuple[Floats, ...]
    """For each item: [hosts, hosts] seconds of its transfer; 0 at the same place, inf where there is no route."""
    free_at: Floats
    """[hosts] when each host becomes available."""
    cores: Ints
    """[hosts]"""
    holders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    since: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @property
    def horizon(self) -> float:
        """No semi-active schedule is longer: everything one after another on the slowest hosts."""
        run = np.where(np.isfinite(self.run), self.run, 0.0).max(axis=1).sum()
        delays = sum(
            float(np.where(np.isfinite(s), s, 0.0).max(initial=0.0)) for row in self.inputs for _, s in row
        )
        first = np.where(np.isfinite(self.outside), self.outside, 0.0).max(initial=0.0)
        return float(run + delays + first + self.free_at.max(initial=0.0))

    def ready(self, task: int, host: Ints, finish: Floats) -> Floats:
        """[hosts] when the inputs of a task are there, given hosts and finish times of its predecessors."""
        ready: Floats = self.outside[task]
        for maker, seconds in self.inputs[task]:
            ready = np.maximum(ready, finish[maker] + seconds[host[maker]])
        return ready

    def decode(self, sequence: Sequence[tuple[int, int]]) -> tuple[Ints, Floats, Floats]:
        """Hosts, starts and finishes when (task, host) pairs are appended in this order: O(tasks * hosts).

        >>> from headrace.model.graph import make_graph
        >>> g = make_graph(work=[2.0, 4.0], size=[1e6], producer=[0], read_ptr=[0, 0, 1], reads=[0])
        >>> space = schedule_space(g, Platform.pairwise([1.0, 2.0], bandwidth=1e6))
        >>> space.decode([(0, 0), (1, 1)])[2].tolist()
        [2.0, 5.0]
        """
        n = self.graph.n_tasks
        host, start, finish = np.full(n, -1, np.int32), np.zeros(n), np.zeros(n)
        free = self.empty_cores()
        for task, at in sequence:
            wanted = int(self.graph.cores[task])
            start[task] = max(self.ready(task, host, finish)[at], free[at, wanted - 1])
            finish[task] = start[task] + self.run[task, at]
            host[task] = at
            free[at, :wanted] = finish[task]
            free[at] = np.sort(free[at])
        return host, start, finish

    def empty_cores(self) -> Floats:
        """[hosts, most cores] when each core becomes free, ascending; inf for cores that a host does not have."""
        most = int(max(self.cores.max(initial=1), self.graph.cores.max(initial=1)))
        has = np.arange(most)[None, :] < self.cores[:, None]
        return np.where(has, self.free_at[:, None], np.inf)


def schedule_space(
    graph: Graph,
    platform: Platform,
    *,
    holders: Mapping[int, tuple[int, ...]] | None = None,
    since: Mapping[tuple[int, int], float] | None = None,
    free_at: Mapping[int, float] | None = None,
) -> ScheduleSpace:
    """The schedule space of a program on a platform: O(items * hosts^2).

    Raises:
        NoPlan: No host can run some task, or its inputs reach none.
    """
    holders, since = holders or {}, since or {}
    latency, bandwidth = _latency_and_bandwidth(platform)
    with np.errstate(divide="ignore"):
        seconds = tuple(
            latency + size / bandwidth if size > 0 else np.zeros_like(latency) for size in graph.size.tolist()
        )
    run = graph.work[:, None] / platform.rates(graph)[graph.speed_class]
    cores = np.array([h.cores for h in platform.hosts], np.int32)
    run[~fitting(graph, platform)] = np.inf
    _forbid_lost_results(graph, platform, run)
    outside = np.repeat(graph.release[:, None], len(cores), axis=1).astype(np.float64)
    inputs = []
    for task in range(graph.n_tasks):
        makers: dict[int, Floats] = {}
        for item in graph.reads_of(task).tolist():
            maker = int(graph.producer[item])
            if maker == OUTSIDE or item in holders:
                arrival = _first_arrival(graph, platform, item, holders, since)
                outside[task] = np.maximum(outside[task], arrival)
            elif maker in makers:
                makers[maker] = np.maximum(makers[maker], seconds[item])
            else:
                makers[maker] = seconds[item]
        inputs.append(tuple(sorted(makers.items())))
    run[~np.isfinite(outside)] = np.inf
    for task in np.flatnonzero(~np.isfinite(run).any(axis=1)).tolist():
        raise NoPlan(
            f"task {graph.task_names[task]!r} cannot run on any host: too few cores, or no route to its data",
            where=platform.name,
            hint="add a host with more cores, or a link",
        )
    return ScheduleSpace(
        graph,
        platform,
        run,
        outside,
        tuple(inputs),
        seconds,
        np.array([(free_at or {}).get(h, 0.0) for h in range(len(cores))]),
        cores,
        holders,
        since,
    )


def _latency_and_bandwidth(platform: Platform) -> tuple[Floats, Floats]:
    """[hosts, hosts] of the routes between hosts."""
    network, places = platform.network, platform.network.host_place.tolist()
    latency = np.array([[network.latency(a, b) for b in places] for a in places])
    return latency, np.array([[network.bandwidth(a, b) for b in places] for a in places])


def _forbid_lost_results(graph: Graph, platform: Platform, run: Floats) -> None:
    """A task whose results cannot return to the origin from a host does not run there."""
    network = platform.network
    if network.origin == EVERYWHERE:
        return
    for item in np.flatnonzero(graph.result & (graph.producer >= 0) & (graph.size > 0)).tolist():
        for h, place in enumerate(network.host_place.tolist()):
            if not np.isfinite(network.seconds(place, network.origin, float(graph.size[item]))):
                run[graph.producer[item], h] = np.inf


def _sources(
    graph: Graph, platform: Platform, item: int, holders: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """The places of an item from outside; none if it is everywhere."""
    if holders.get(item):
        return holders[item]
    origin = platform.network.origin
    return () if origin == EVERYWHERE else (origin,)


def _first_arrival(
    graph: Graph,
    platform: Platform,
    item: int,
    holders: Mapping[int, tuple[int, ...]],
    since: Mapping[tuple[int, int], float],
) -> Floats:
    """[hosts] when an item from outside can be at each host."""
    network, size = platform.network, float(graph.size[item])
    sources = _sources(graph, platform, item, holders)
    if not sources:
        return np.zeros(len(network.host_place))
    return np.array(
        [
            min(since.get((item, s), 0.0) + network.seconds(s, place, size) for s in sources)
            for place in network.host_place.tolist()
        ]
    )


def semi_active_plan(space: ScheduleSpace, host: Ints, start: Floats, scheduler: str) -> Plan:
    """The plan with these hosts and starts on a platform without contention, with all its transfers.

    O(tasks log tasks + reads * copies).
    """
    graph, platform = space.graph, space.platform
    finish = start + space.run[np.arange(graph.n_tasks), host]
    moves = _moves(space, host, finish)
    columns = list(zip(*moves, strict=True)) if moves else [()] * 5
    return Plan(
        graph=graph,
        platform=platform,
        scheduler=scheduler,
        host=host.astype(np.int32),
        core=_cores(space, host, start, finish),
        start=start,
        finish=finish,
        move_item=np.array(columns[0], np.int32),
        move_source=np.array(columns[1], np.int32),
        move_target=np.array(columns[2], np.int32),
        move_start=np.array(columns[3], np.float64),
        move_finish=np.array(columns[4], np.float64),
    )


def _cores(space: ScheduleSpace, host: Ints, start: Floats, finish: Floats) -> Ints:
    """A core for each task: on its host, the lowest of those that are free first."""
    core = np.zeros(len(host), np.int32)
    free = [np.full(int(c), f) for c, f in zip(space.cores, space.free_at, strict=True)]
    for task in np.lexsort((finish, start)).tolist():
        row = free[host[task]]
        taken = np.argsort(row, kind="stable")[: int(space.graph.cores[task])]
        core[task] = taken.min()
        row[taken] = finish[task]
    return core


def _moves(space: ScheduleSpace, host: Ints, finish: Floats) -> list[tuple[int, int, int, float, float]]:
    """All transfers as (item, source, target, start, finish): inputs to their readers, results to the origin."""
    graph, network = space.graph, space.platform.network
    made: dict[tuple[int, int], tuple[int, int, int, float, float]] = {}
    for task in range(graph.n_tasks):
        target = int(network.host_place[host[task]])
        for item in graph.reads_of(task).tolist():
            move = _move(space, host, finish, item, target)
            if move is not None:
                made.setdefault((item, target), move)
    if network.origin != EVERYWHERE:
        for item in np.flatnonzero(graph.result & (graph.producer >= 0)).tolist():
            move = _move(space, host, finish, item, network.origin)
            if move is not None:
                made.setdefault((item, network.origin), move)
    return [made[key] for key in sorted(made)]


def _move(
    space: ScheduleSpace, host: Ints, finish: Floats, item: int, target: int
) -> tuple[int, int, int, float, float] | None:
    """The transfer that brings an item to a place, None if it needs none."""
    graph, network, size = space.graph, space.platform.network, float(space.graph.size[item])
    maker = int(graph.producer[item])
    if size == 0:
        return None
    if maker != OUTSIDE and item not in space.holders:
        source, at = int(network.host_place[host[maker]]), float(finish[maker])
    else:
        sources = _sources(graph, space.platform, item, space.holders)
        if not sources or target in sources:
            return None
        since = space.since
        source = min(sources, key=lambda s: since.get((item, s), 0.0) + network.seconds(s, target, size))
        at = since.get((item, source), 0.0)
    if source == target:
        return None
    return item, source, target, at, at + network.seconds(source, target, size)
