"""The batch-mode heuristics in plain Python: slow and simple, completion times are always computed from scratch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE
from headrace.model.network import EVERYWHERE

Busy = dict[int, list[tuple[float, float]]]
Times = dict[int, float]
"""Completion time on each host that can be reached."""
Key = tuple[float, ...]
"""What a rule compares: the task with the least key is next."""


class Reference:
    """State of a half-made plan and the steps of the engine, one by one."""

    def __init__(self, problem: Problem, by_usage: bool = True) -> None:
        self.graph, self.platform = problem.graph, problem.platform
        self.net = problem.platform.network
        self.rates = self.platform.rates(self.graph)
        self.booked = self.platform.contention != "none"
        self.free = {
            (h, c): float(problem.free_at.get(h, 0.0))
            for h, host in enumerate(self.platform.hosts)
            for c in range(host.cores)
        }
        self.busy: Busy = {link: [(0.0, until)] for link, until in problem.link_free_at.items()}
        self.copies: dict[int, list[tuple[int, float]]] = {i: [] for i in range(self.graph.n_items)}
        self.everywhere: set[int] = set()
        for item in range(self.graph.n_items):
            if problem.holders.get(item):
                places = sorted(problem.holders[item], key=lambda p: p == self.net.origin)
                self.copies[item] = [(p, problem.since.get((item, p), 0.0)) for p in places]
            elif self.graph.producer[item] == OUTSIDE and self.net.origin == EVERYWHERE:
                self.everywhere.add(item)
            elif self.graph.producer[item] == OUTSIDE:
                self.copies[item] = [(self.net.origin, 0.0)]
        self.usage = np.diff(self.graph.reader_ptr) if by_usage else np.zeros(self.graph.n_items)
        self.host: dict[int, int] = {}
        self.core: dict[int, int] = {}
        self.start: dict[int, float] = {}
        self.finish: dict[int, float] = {}
        self.moves: list[tuple[int, int, int, float, float]] = []

    def released(self, task: int) -> float:
        """When the last predecessor has finished."""
        makers = [int(self.graph.producer[i]) for i in self.graph.reads_of(task)]
        return max((self.finish[m] for m in makers if m != OUTSIDE), default=0.0)

    def inputs(self, task: int) -> list[int]:
        """Items that may have to be fetched, in the order of fetching."""
        items = [i for i in self.graph.reads_of(task).tolist() if i not in self.everywhere]
        items = [i for i in items if self.graph.size[i] > 0]
        made = {i: int(self.graph.producer[i]) for i in items}
        place = {i: n for n, i in enumerate(items)}
        return sorted(
            items,
            key=lambda i: (0.0 if made[i] == OUTSIDE else self.finish[made[i]], -self.usage[i], place[i]),
        )

    def uses(self, source: int, target: int, size: float) -> list[tuple[int, float]]:
        """The links of a route, and how long each is busy."""
        return [
            (link, self.net.busy_seconds(source, target, size, link))
            for link in self.net.route(source, target)
        ]

    def slot(self, uses: list[tuple[int, float]], ready: float, extra: Busy) -> float:
        """The first time from `ready` on at which every link is free for as long as it is needed."""
        blocks = sorted(
            (*b, length) for k, length in uses for b in self.busy.get(k, []) + extra.get(k, []) if b[1] > b[0]
        )
        time = ready
        moved = True
        while moved:
            moved = False
            for begin, end, length in blocks:
                if begin < time + length and end > time:
                    time, moved = end, True
        return time

    def source(self, item: int, target: int, extra: Busy) -> tuple[int, float, float]:
        """(place, start, finish) of the best of three copies: see `_best_source` of the partial schedule."""
        size = float(self.graph.size[item])
        newest_first = self.copies[item][::-1]
        arrival = [time + self.net.seconds(p, target, size) for p, time in newest_first]
        best = min(range(len(arrival)), key=lambda k: arrival[k])
        if not self.booked or arrival[best] == math.inf:
            return newest_first[best][0], newest_first[best][1], arrival[best]
        near = [k for k, (p, _) in enumerate(newest_first) if self.net.zone[p] == self.net.zone[target]]
        trials = [best, *sorted(near, key=lambda k: arrival[k])[:1], 0]
        found: tuple[int, float, float] = (-1, math.inf, math.inf)
        for place, time in (newest_first[k] for k in trials):
            duration = self.net.seconds(place, target, size)
            if duration < math.inf:
                start = self.slot(self.uses(place, target, size), time, extra)
                if start + duration < found[2]:
                    found = (place, start, start + duration)
        return found

    def fetch(self, task: int, place: int) -> tuple[float, list[tuple[int, int, int, float, float]]]:
        """When all inputs are at a place, and the transfers that bring them."""
        latest, extra = self.released(task), dict[int, list[tuple[float, float]]]()
        moves = []
        for item in self.inputs(task):
            held = [time for p, time in self.copies[item] if p == place]
            if held:
                latest = max(latest, held[0])
                continue
            source, start, finish = self.source(item, place, extra)
            if finish == math.inf:
                return math.inf, []
            latest = max(latest, finish)
            if self.booked:
                for link, length in self.uses(source, place, float(self.graph.size[item])):
                    extra.setdefault(link, []).append((start, start + length))
            moves.append((item, source, place, start, finish))
        return latest, moves

    def way_back(self, task: int, place: int) -> float:
        if self.net.origin == EVERYWHERE:
            return 0.0
        results = [i for i in self.graph.writes_of(task).tolist() if self.graph.result[i]]
        return max(
            (self.net.seconds(place, self.net.origin, self.graph.size[i]) for i in results), default=0.0
        )

    def completions(self, task: int) -> Times:
        """When the task's results could be back, for every host that has a route."""
        times: Times = {}
        arrival: dict[int, float] = {}
        for h, machine in enumerate(self.platform.hosts):
            place = int(self.net.host_place[h])
            if place not in arrival:
                arrival[place] = self.fetch(task, place)[0]
            free = sorted(self.free[h, c] for c in range(machine.cores))
            needed = int(self.graph.cores[task])
            begin = max(arrival[place], free[needed - 1] if needed <= len(free) else math.inf)
            seconds = self.graph.work[task] / self.rates[self.graph.speed_class[task], h]
            back = self.way_back(task, place)
            if begin < math.inf and back < math.inf:
                times[h] = float(begin + seconds + back)
        return times

    def place(self, task: int, host: int) -> None:
        place = int(self.net.host_place[host])
        arrival, moves = self.fetch(task, place)
        for item, source, target, start, finish in moves:
            self._move(item, source, target, start, finish)
        cores = range(self.platform.hosts[host].cores)
        first = sorted(cores, key=lambda c: (max(arrival, self.free[host, c]), c))
        held = first[: int(self.graph.cores[task])]
        core = min(held)
        begin = max(arrival, self.free[host, held[-1]])
        end = begin + self.graph.work[task] / self.rates[self.graph.speed_class[task], host]
        self.host[task], self.core[task] = host, core
        self.start[task], self.finish[task] = begin, end
        for c in held:
            self.free[host, c] = end
        for item in self.graph.writes_of(task).tolist():
            self.copies[item].append((place, end))

    def _move(self, item: int, source: int, target: int, start: float, finish: float) -> None:
        self.moves.append((item, source, target, start, finish))
        self.copies[item].append((target, finish))
        if self.booked:
            for link, length in self.uses(source, target, float(self.graph.size[item])):
                self.busy.setdefault(link, []).append((start, start + length))

    def return_results(self) -> None:
        """All tasks are placed: results go back in the gaps that inputs left, the first finished first."""
        if self.net.origin == EVERYWHERE:
            return
        makers = self.graph.producer
        items = [i for i in np.flatnonzero(self.graph.result).tolist() if makers[i] != OUTSIDE]
        for item in sorted(items, key=lambda i: (self.finish[int(makers[i])], i)):
            size, time = float(self.graph.size[item]), self.finish[int(makers[item])]
            source = int(self.net.host_place[self.host[int(makers[item])]])
            if size == 0 or any(p == self.net.origin for p, _ in self.copies[item]):
                continue
            duration = self.net.seconds(source, self.net.origin, size)
            start = self.slot(self.uses(source, self.net.origin, size), time, {}) if self.booked else time
            self._move(item, source, self.net.origin, start, start + duration)

    @property
    def makespan(self) -> float:
        return max([*self.finish.values(), *(m[4] for m in self.moves)], default=0.0)


Rule = Callable[[Reference, int, Times], Key]


def run(
    problem: Problem,
    rule: Rule,
    tolerance: float | None = None,
    by_usage: bool = True,
    exact: tuple[int, int] = (10**9, 10**9),
) -> Reference:
    """Level by level: place the task with the least key on its best host until none is left.

    Keys of more ready tasks than `exact`, in the first level and in others, are kept for a while: all are computed
    again after a quarter of the tasks beyond that number has been placed, in between up to four that would be least.
    """
    state = Reference(problem, by_usage)
    for level in range(int(problem.graph.level.max(initial=-1)) + 1):
        ready = np.flatnonzero(problem.graph.level == level).tolist()
        few, wait, keys = exact[min(level, 1)], 0, dict[int, Key]()
        while ready:
            if wait == 0:
                current = list(ready)
                wait = 1 if len(ready) <= few else 1 + (len(ready) - few) // 4
                keys = {t: rule(state, t, state.completions(t)) for t in ready}
            else:
                current = []
                while len(current) < 4 and (least := min(ready, key=lambda t: (keys[t], t))) not in current:
                    keys[least] = rule(state, least, state.completions(least))
                    current.append(least)
            wait -= 1
            task = min(ready, key=lambda t: (keys[t], t))
            if tolerance is not None:
                limit = keys[task][0] + tolerance * abs(keys[task][0])
                near = [t for t in ready if keys[t][0] <= limit]
                task = min(near, key=lambda t: (lot(problem.seed, len(state.host), t), t))
            times = state.completions(task)
            state.place(task, min(times, key=lambda h: (times[h], h)))
            ready.remove(task)
    state.return_results()
    return state


def minmin(state: Reference, task: int, times: Times) -> Key:
    return (min(times.values()),)


def maxmin(state: Reference, task: int, times: Times) -> Key:
    return (-min(times.values()),)


def sufferage(state: Reference, task: int, times: Times) -> Key:
    first = sorted(times.values())
    return (first[0] - first[1] if len(first) > 1 else 0.0,)


def xsufferage(state: Reference, task: int, times: Times) -> Key:
    clusters = cluster_times(state, times)
    return (-first_gap(clusters)[1],) if clusters else sufferage(state, task, times)


def sufferage2(state: Reference, task: int, times: Times) -> Key:
    clusters = cluster_times(state, times)
    if not clusters:
        return sufferage(state, task, times)
    before, height = first_gap(clusters)
    return (before, -height)


def cluster_times(state: Reference, times: Times) -> list[float]:
    """Best completion time in each site, in order; empty if there is one site only."""
    site = [s for s, where in enumerate(state.platform.sites) for _ in where.hosts]
    best: dict[int, float] = {}
    for h, time in times.items():
        best[site[h]] = min(best.get(site[h], math.inf), time)
    return sorted(best.values()) if len(set(site)) > 1 else []


def first_gap(ordered: list[float]) -> tuple[int, float]:
    """Clusters before the first jump and its height."""
    jumps = [b - a for a, b in itertools.pairwise(ordered)]
    if not jumps:
        return 1, 0.0
    mean = (ordered[-1] - ordered[0]) / len(jumps)
    spread = math.sqrt(sum((j - mean) * (j - mean) for j in jumps) / len(jumps))
    for k, jump in enumerate(jumps):
        if jump > (mean + spread) * (1 + 1e-9):
            return k + 1, jump
    return 1, jumps[0]


def lot(seed: int, step: int, task: int) -> int:
    """A number from 0 to 2^64 - 1 for each seed, step and task (splitmix64)."""
    mask = (1 << 64) - 1
    x = seed & mask
    for part in (step, task):
        x = (x + part + 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
    return x
