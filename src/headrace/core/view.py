"""The state of a run whose queues and data the coordinator holds in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from headrace.core.coordinator import State
from headrace.core.estimates import Estimates
from headrace.core.in_flight import InFlight, in_flight
from headrace.core.remaining_graph import remaining_graph
from headrace.core.scheduler import Problem
from headrace.core.state import HERE, PREFETCH, CoordinatorState, StaticProblem
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.network import Network
from headrace.model.platform import Platform


class Row(NamedTuple):
    """When a task that runs or is kept is expected to start and to end, in seconds from now."""

    host: int
    task: int
    start: float
    end: float


class Timetable(NamedTuple):
    """What hosts are expected to do with what they run and keep, and when each has a free core."""

    free: Floats
    rows: list[Row]


class RunView(State):
    """As `State`, with the queues: what is where, how long each host is expected to be busy.

    `estimates` say how long tasks are expected to take. `refs` are problem and desk for compiled code.
    """

    def __init__(
        self,
        graph: Graph,
        platform: Platform,
        problem: StaticProblem,
        desk: CoordinatorState,
        estimates: Estimates,
        refs: tuple[Any, Any],
    ) -> None:
        super().__init__(graph, platform)
        self.static = problem
        self.desk = desk
        self.done = desk.done.view(np.bool_)
        self.estimates = estimates
        self.refs = refs
        self.surprised = False
        """Whether a task took far more or less than predicted since the scheduler was last asked."""

    @property
    def holders(self) -> dict[int, set[str]]:
        """As in `State`, looked up anew each time: O(items * places). Hosts of one site may share a place."""
        there: dict[int, list[str]] = {}
        for host, place in zip(self.platform.hosts, self.static.host_place.tolist(), strict=True):
            if host.name not in self.down:
                there.setdefault(place, []).append(host.name)
        graph, places = self.graph, len(self.desk.place_up)
        held = self.desk.present.reshape(graph.n_items, places) == HERE
        held &= (graph.producer >= 0)[:, None]
        found: dict[int, set[str]] = {}
        for item, place in zip(*(axis.tolist() for axis in np.nonzero(held)), strict=True):
            if place in there:
                found.setdefault(item, set()).update(there[place])
        return found

    @property
    def running(self) -> Bools:
        """Tasks that run now."""
        return np.asarray(self.desk.run_host >= 0)

    def rates(self) -> Floats:
        """Believed speed of each host for each kind of task now: [kinds, hosts]."""
        return self.estimates.rates(self.time)

    def waiting(self) -> Ints:
        """Ready tasks that no host has, in the order in which they became ready."""
        task = int(self.desk.queue_head[-1])
        found = []
        while task >= 0:
            found.append(task)
            task = int(self.desk.queue_next[task])
        return np.array(found, np.int32)

    def queue(self, host: int) -> list[int]:
        """The tasks in a host's queue, in order."""
        task = int(self.desk.queue_head[host])
        found = []
        while task >= 0:
            found.append(task)
            task = int(self.desk.queue_next[task])
        return found

    def kept(self, keep: int) -> Ints:
        """The first `keep` tasks of each queue."""
        first = [self.queue(host)[:keep] for host in range(len(self.platform.hosts))] if keep else []
        return np.array([task for some in first for task in some], np.int32)

    def busy_until(self, keep: int = 0) -> Floats:
        """Seconds from now until each host has a free core, with the first `keep` tasks of its queue done.

        When running tasks end is a belief.
        """
        return self.timetable(keep).free

    def timetable(self, keep: int = 0) -> Timetable:
        """When what runs, and the first `keep` tasks of each queue after it, is expected to start and to end."""
        desk, problem = self.desk, self.static
        table = Timetable(np.zeros(len(self.platform.hosts)), [])
        running = np.flatnonzero(desk.run_host >= 0).astype(np.int32)
        left = dict(zip(running.tolist(), self._left(running).tolist(), strict=True))
        for host in range(len(table.free)):
            on = desk.core_task[problem.core_ptr[host] : problem.core_ptr[host + 1]].tolist()
            free = [left[task] if task >= 0 else 0.0 for task in on]
            table.rows.extend(Row(host, task, 0.0, left[task]) for task in sorted(set(on)) if task >= 0)
            for task in self.queue(host)[:keep]:
                free.sort()
                need = min(int(problem.cores[task]), len(free))
                row = Row(host, task, free[need - 1], free[need - 1] + float(desk.predicted[task]))
                free[:need] = [row.end] * need
                table.rows.append(row)
            table.free[host] = min(free)
        return table

    def _left(self, tasks: Ints) -> Floats:
        desk = self.desk
        return self.estimates.left(
            self.time, tasks, desk.run_host[tasks], desk.run_start[tasks], desk.predicted[tasks]
        )

    def problem(self, keep: int = 0, chosen: Bools | None = None) -> Problem:
        """What is left to place: tasks that neither run nor are among the first `keep` of a queue.

        `chosen` limits it further to these tasks. Hosts are free when what they run and keep is done, links
        when they have carried what is under way and what kept tasks need; what running tasks make will be
        where they run, what is being moved where it is going. O(tasks + items * places).
        """
        hosts = self.platform.hosts
        if all(host.name in self.down for host in hosts):
            raise NoPlan("no host is left", where=self.platform.name, hint="let a host join later")
        platform = self.estimates.platform(self.time)
        if self.down:
            platform = platform.without(self.down)
        wanted = (self.desk.done == 0) & (self.desk.run_host < 0)
        if chosen is not None:
            wanted &= chosen
        wanted[self.kept(keep)] = False
        estimates, sizes = self.estimates, self.estimates.sizes(self.done)
        rest, _ = remaining_graph(estimates.graph, wanted, estimates.work, sizes)
        if self.time > 0 and ((rest.release > 0).any() or np.isfinite(rest.deadline).any()):
            later = np.maximum(rest.release - self.time, 0.0)
            rest = replace(rest, release=later, deadline=rest.deadline - self.time)
        table, transit = self.timetable(keep), in_flight(self, keep, sizes)
        holders, since = self._holders(rest, platform, table, transit)
        return Problem(
            rest,
            platform,
            holders,
            _by_name(table.free, [host.name for host in hosts], [host.name for host in platform.hosts]),
            bounded=False,
            since=since,
            link_free_at=_links_by_name(transit.link_free, self.platform.network, platform.network),
            ahead=int(self.static.policy[PREFETCH]),
        )

    def _holders(
        self, rest: Graph, platform: Platform, table: Timetable, transit: InFlight
    ) -> tuple[dict[int, tuple[int, ...]], dict[tuple[int, int], float]]:
        """Where items that exist, move or are being made lie, by the numbers of the platform that is left; and
        when they are there, of those that are not yet."""
        desk, graph = self.desk, self.graph
        names = self.platform.network.place_names
        there = {name: p for p, name in enumerate(platform.network.place_names)}
        new = np.array([there.get(name, -1) for name in names], np.int32)
        new[desk.place_up == 0] = -1
        needed = np.zeros(graph.n_items, np.bool_)
        needed[rest.reads] = True
        needed &= (rest.producer < 0) & ~self.static.no_transfer
        held = (desk.present.reshape(graph.n_items, len(names)) == HERE) & (new >= 0)
        later = self._later(needed, table, transit)
        holders: dict[int, tuple[int, ...]] = {}
        since: dict[tuple[int, int], float] = {}
        if (
            self.static.origin >= 0
        ):  # most inputs of a sweep lie there and nowhere else: nothing to say of them
            plain = held[:, self.static.origin] & (held.sum(axis=1) == 1) & (graph.producer < 0)
            plain[list(later)] = False
            needed &= ~plain
        for item in np.flatnonzero(needed).tolist():
            places = np.flatnonzero(held[item])
            found = {int(new[p]) for p in places}
            for place, time in later.get(item, ()):
                if new[place] >= 0 and int(new[place]) not in found:
                    found.add(int(new[place]))
                    since[item, int(new[place])] = time
            if found:
                holders[item] = tuple(sorted(found))
        return holders, since

    def _later(
        self, needed: Bools, table: Timetable, transit: InFlight
    ) -> dict[int, list[tuple[int, float]]]:
        """(place, seconds from now) at which items are expected that move, or that running and kept tasks make."""
        later: dict[int, list[tuple[int, float]]] = {}
        for row in transit.carried:
            if needed[row.item]:
                later.setdefault(row.item, []).append((row.target, row.end))
        for made in table.rows:
            place = int(self.static.host_place[made.host])
            for item in self.graph.writes_of(made.task).tolist():
                if needed[item]:
                    later.setdefault(item, []).append((place, made.end))
        return later


def _by_name(values: Floats, names: Sequence[str], wanted: Sequence[str]) -> dict[int, float]:
    """Values above 0 by the numbers that their names have among those wanted; others are left out."""
    number = {name: k for k, name in enumerate(wanted)}
    return {
        number[names[k]]: float(values[k]) for k in np.flatnonzero(values > 0).tolist() if names[k] in number
    }


def _links_by_name(values: Floats, of: Network, wanted: Network) -> dict[int, float]:
    """As `_by_name`, for links; those between pairs of many hosts have no names but lie in a fixed order."""
    if of.link_names:
        return _by_name(values, of.link_names, wanted.link_names)
    number = {name: p for p, name in enumerate(wanted.place_names)}
    found = {}
    for link in np.flatnonzero(values > 0).tolist():
        first, second = divmod(link, of.n_places - 1)
        ends = of.place_names[first], of.place_names[second + (second >= first)]
        if ends[0] in number and ends[1] in number:
            source, target = number[ends[0]], number[ends[1]]
            found[source * (wanted.n_places - 1) + target - (target > source)] = float(values[link])
    return found
