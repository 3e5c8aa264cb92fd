"""A whole plan from the schedules of sites with small disks: with the jobs of the pool, and all other transfers."""

from __future__ import annotations

import bisect
from typing import TypeAlias

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Floats
from headrace.model.plan import Plan
from headrace.planners.coschedule.balance import balanced
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import first_cores
from headrace.planners.coschedule.relaxation import least_times, shortest
from headrace.planners.coschedule.site_records import LEFT_OUT, SiteChoice, SiteRun
from headrace.planners.coschedule.site_schedule import MOVES, simulated
from headrace.planners.coschedule.sites import Sites

_Need: TypeAlias = tuple[float, int, int]
"""A time, an item and a place."""
_PATIENCE = 6.0
"""For how many times its slack the pool leaves links to the small sites."""
_NEARER = 0.5
"""Weight of the time for files when a job of the pool gets its host; it falls to 0 for the last third."""


def assembled(instance: Instance, sites: Sites, choice: SiteChoice, run: SiteRun) -> Plan:
    """The plan of a choice that meets its target. Its orders count, not its times.

    Inputs may reach a site later than it expects them.
    O(jobs * hosts + jobs * cores^2 + transfers * (transfers of a link + places)).
    """
    return _Assembly(instance, sites, choice, run).plan()


_FAR = 1e29


class _Assembly:
    def __init__(self, instance: Instance, sites: Sites, choice: SiteChoice, run: SiteRun) -> None:
        self._instance, self._sites = instance, sites
        self._host = np.zeros(instance.n, np.int32)
        self._start: Floats = np.zeros(instance.n)
        self._moves: list[tuple[int, int, float]] = []
        """Item, arc and start of each transfer."""
        self._links: dict[int, list[tuple[float, float]]] = {}
        arcs = instance.paths.arcs
        self._link = arcs.links[arcs.link_ptr[:-1]].tolist()
        self._way = _Ways(instance, sites)
        self._ready: dict[tuple[int, int], float] = {}
        for item in np.unique(instance.reads).tolist():
            for place in instance.paths.sets[instance.source[item]]:
                self._ready[item, place] = 0.0
        self._before, self._after = least_times(instance)
        needs, made = self._small_sites(choice, run)
        mine = self._divided(np.flatnonzero(choice.site == LEFT_OUT))
        made += self._run_pool(mine, sorted(needs))
        self._send_results(made)

    def _small_sites(self, choice: SiteChoice, run: SiteRun) -> tuple[list[_Need], list[_Need]]:
        """Simulate the sites; returns when inputs leave the places next to them, and when results arrive there."""
        arrays, arcs = self._sites.arrays, self._instance.paths.arcs
        needs, made = list[_Need](), list[_Need]()
        for s, h in enumerate(self._sites.small.tolist()):
            jobs = choice.order[s, : choice.length[s]]
            simulated(arrays, run, jobs, len(jobs), s, int(choice.keep[s]))
            self._host[jobs], self._start[jobs] = h, run.start[jobs]
            count = int(run.counter[MOVES])
            for item, arc, start in zip(
                run.move_item[:count].tolist(),
                run.move_arc[:count].tolist(),
                run.move_start[:count].tolist(),
                strict=True,
            ):
                self._moves.append((item, arc, start))
                if arrays.onward[arc, item] < 0:
                    needs.append((start, item, int(arcs.tail[arc])))
                else:
                    made.append((start + self._seconds(item, arc), item, int(arcs.head[arc])))
        return needs, made

    def _seconds(self, item: int, arc: int) -> float:
        arcs = self._instance.paths.arcs
        return float(arcs.latency[arc] + self._instance.size[item] / arcs.bandwidth[arc])

    def _divided(self, jobs: Int64s) -> list[list[int]]:
        """The jobs of each host of the pool: all hosts end alike, and files are near where that costs nothing."""
        instance, pool = self._instance, self._sites.pool
        least = instance.seconds[np.ix_(jobs, pool)].min(axis=1)
        load: Floats = np.zeros(len(pool))
        mine: list[list[int]] = [[] for _ in pool]
        for rank, j in enumerate(jobs[np.argsort(-least, kind="stable")].tolist()):
            weight = _NEARER * max(0.0, 1.0 - 1.5 * rank / len(jobs))
            files = self._before[j, pool] + self._after[j, pool]
            seconds = instance.seconds[j, pool] + weight * files
            p = int(np.argmin(load + seconds / instance.host_cores[pool]))
            load[p] += instance.seconds[j, pool[p]] / instance.host_cores[pool[p]]
            mine[p].append(j)
            self._host[j] = pool[p]
        return mine

    def _run_pool(self, mine: list[list[int]], needs: list[_Need]) -> list[_Need]:
        """Bring inputs in the order in which they are needed, and run the jobs of the pool; returns their results.

        Small sites come first: the pool can wait for some cores, while all that follows at a site is delayed with it.
        """
        later = _PATIENCE * self._sites.arrays.pool_slack
        for need in needs:
            if need[0] <= later:
                self._bring(need)
        lists = self._cores(mine)
        for h, jobs in lists:
            moment = 0.0
            for j in jobs:
                place = int(self._instance.host_place[h])
                needs += [(moment, item, place) for item in self._instance.inputs(j)]
                moment += float(self._instance.seconds[j, h])
        for need in sorted(needs):
            self._bring(need)
        return [made for h, jobs in lists for made in self._run_core(h, jobs)]

    def _cores(self, mine: list[list[int]]) -> list[tuple[int, list[int]]]:
        """The host and the jobs of each core of the pool; their results arrive the sooner, the later they run.

        First come jobs whose inputs are there first, and the others are distributed so that all cores end alike.
        """
        instance, cores = self._instance, list[tuple[int, list[int]]]()
        busy, rest = list[float](), list[int]()
        for h, jobs in zip(self._sites.pool.tolist(), mine, strict=True):
            soon = sorted(jobs, key=lambda j: (self._before[j, h], -instance.seconds[j, h], j))
            count = int(instance.host_cores[h])
            for j in soon[:count]:
                for item in instance.inputs(j):
                    self._bring((0.0, item, int(instance.host_place[h])))
            rest += soon[count:]
            cores += [(h, [j]) for j in soon[:count]] + [(h, []) for _ in range(count - len(soon))]
            busy += [0.0] * count
        for c, (h, jobs) in enumerate(cores):
            self._run_core(h, jobs)
            busy[c] = max([0.0, *(self._start[j] + instance.seconds[j, h] for j in jobs)])
        at = balanced(
            np.array(rest, np.int32),
            np.array([h for h, _ in cores], np.int32),
            np.array(busy),
            instance.seconds,
        )
        for c, (h, jobs) in enumerate(cores):
            others = [j for j, core in zip(rest, at.tolist(), strict=True) if core == c]
            self._host[others] = h
            jobs += sorted(others, key=lambda j: (-self._after[j, h], j))
        return cores

    def _run_core(self, host: int, jobs: list[int]) -> list[_Need]:
        """Run jobs one after another; returns their results."""
        instance, moment, made = self._instance, 0.0, list[_Need]()
        place = int(instance.host_place[host])
        for j in jobs:
            moment = max([moment, *(self._ready[item, place] for item in instance.inputs(j))])
            self._start[j] = moment
            moment += float(instance.seconds[j, host])
            made += [(moment, item, place) for item in instance.outputs(j)]
        return made

    def _bring(self, need: _Need) -> None:
        """Send an input to a place of the pool, from the place and over the way by which it arrives first."""
        _, item, place = need
        if (item, place) not in self._ready:
            holders = [p for p in self._way.places if (item, p) in self._ready]
            self._send_first(item, [(p, way) for p in holders for way in self._way.between(p, place)])

    def _send_results(self, made: list[_Need]) -> None:
        """Send results in the order in which they are ready, to the destination that they reach first."""
        for moment, item, place in sorted(made):
            self._ready[item, place] = moment
            goals = self._instance.paths.sets[self._instance.destination[item]]
            if place not in goals:
                self._send_first(item, [(place, way) for g in goals for way in self._way.between(place, g)])

    def _send_first(self, item: int, ways: list[tuple[int, list[int]]]) -> None:
        """Send a file from a place over the arcs by which it arrives first; ties: the first of these ways."""
        arrivals = [self._send(item, place, arcs, book=False) for place, arcs in ways]
        self._send(item, *ways[int(np.argmin(arrivals))], book=True)

    def _send(self, item: int, place: int, arcs: list[int], *, book: bool) -> float:
        """When a file arrives that is sent in the first gaps of links; with `book`, these are taken."""
        moment, heads = self._ready[item, place], self._instance.paths.arcs.head
        for arc in arcs:
            head = int(heads[arc])
            if (item, head) in self._ready:
                moment = self._ready[item, head]
                continue
            seconds = self._seconds(item, arc)
            busy = self._links.setdefault(self._link[arc], [])
            start = _first_gap(busy, moment, seconds)
            moment = start + seconds
            if book:
                bisect.insort(busy, (start, moment))
                self._moves.append((item, arc, start))
                self._ready[item, head] = moment
        return moment

    def plan(self) -> Plan:
        instance, arcs = self._instance, self._instance.paths.arcs
        graph, host, start = instance.problem.graph, self._host, self._start
        finish = start + instance.seconds[np.arange(instance.n), host]
        item, arc = (np.array([move[k] for move in self._moves], np.int32) for k in range(2))
        begin = np.array([move[2] for move in self._moves])
        return Plan(
            graph=graph,
            platform=instance.problem.platform,
            scheduler="",
            host=host,
            core=first_cores(graph, instance.host_cores, host, start, finish),
            start=start,
            finish=finish,
            move_item=item,
            move_source=arcs.tail[arc],
            move_target=arcs.head[arc],
            move_start=begin,
            move_finish=begin + (arcs.latency[arc] + instance.size[item] / arcs.bandwidth[arc]),
        )


class _Ways:
    """Ways between the places that are not small sites: the shortest for a file of mean size, and detours."""

    def __init__(self, instance: Instance, sites: Sites) -> None:
        arcs = instance.paths.arcs
        used = np.concatenate((np.unique(instance.reads), instance.writes))
        self._weight = np.full(len(arcs.tail), np.inf)
        inner = sites.inner
        self._weight[inner] = arcs.latency[inner] + instance.size[used].mean() / arcs.bandwidth[inner]
        self._distance = shortest(instance, self._weight)
        small = set(instance.host_place[sites.small].tolist())
        self.places = [p for p in range(instance.places) if p not in small]
        self._from: dict[int, list[tuple[int, int]]] = {p: [] for p in self.places}
        for a in inner.tolist():
            self._from[int(arcs.tail[a])].append((a, int(arcs.head[a])))
        self._known: dict[tuple[int, int], list[list[int]]] = {}

    def between(self, place: int, target: int) -> list[list[int]]:
        """For each neighbour of a place, the shortest way that begins there; loops are left out."""
        if (place, target) not in self._known:
            self._known[place, target] = [
                [arc, *rest]
                for arc, head in self._from[place]
                if self._distance[head, target] < _FAR
                and (rest := self._shortest(head, target, place)) is not None
            ]
        return self._known[place, target]

    def _shortest(self, place: int, target: int, avoided: int) -> list[int] | None:
        """The arcs of the shortest way; None if it leads over a place to avoid."""
        found = []
        while place != target:
            _, arc, place = min(
                (self._weight[a] + self._distance[head, target], a, head) for a, head in self._from[place]
            )
            if place == avoided:
                return None
            found.append(arc)
        return found


def _first_gap(busy: list[tuple[float, float]], moment: float, seconds: float) -> float:
    """The earliest time from a moment on at which a link is idle for this long."""
    k = bisect.bisect_left(busy, (moment, moment))
    if k and busy[k - 1][1] > moment:
        moment = busy[k - 1][1]
    while k < len(busy) and busy[k][0] < moment + seconds:
        moment = max(moment, busy[k][1])
        k += 1
    return moment
