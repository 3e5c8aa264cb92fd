"""A scheduler's read-only view of a run: queues, running tasks, data locations and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.core.estimates import Estimates
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.in_flight import InFlight, in_flight
from headrace.core.records import RunRecords
from headrace.core.remaining_graph import remaining_graph
from headrace.core.scheduler import Problem
from headrace.core.state import (
    COPIES,
    MISPREDICTED,
    PREFETCH,
    PRESENT,
    READY,
    CoordinatorState,
    StaticProblem,
)
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.network import Network
from headrace.model.platform import Platform


class Slot(NamedTuple):
    """Expected start and end of a running or queued task, in seconds from now."""

    host: int
    task: int
    start: float
    end: float


class Timetable(NamedTuple):
    """Expected times of running and queued tasks, and when each host has a free core."""

    free: Floats
    slots: list[Slot]


class RunView:
    """The state of a run as schedulers see it. Hosts, tasks, items and places are identified by number.

    Most schedulers use the methods: `ready`, `queue`, `running`, `hosts_up`, `places_of`, `rates`, `problem` and so on.
    Schedulers written with numpy can use `static` and `state`, the coordinator's arrays (documented in `core.state`);
    `compiled` has references to the same arrays for compiled functions. All arrays are read-only.

    >>> import headrace as hr
    >>> from headrace.core.coordinator import Coordinator
    >>> from headrace.online.workqueue import Workqueue
    >>> program = hr.Program()
    >>> tasks = [program.task(None, work=1.0) for _ in range(3)]
    >>> view = Coordinator(Workqueue(), program.graph, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)).view
    >>> view.ready().tolist(), view.hosts_up.tolist(), view.rates().tolist()
    ([0, 1, 2], [True, True], [[2.0, 1.0]])
    """

    def __init__(
        self,
        graph: Graph,
        platform: Platform,
        records: RunRecords,
        estimates: Estimates,
        *,
        policy: ExecutionPolicy | None = None,
        starts_known: bool = True,
    ) -> None:
        self.graph = graph
        self.policy = policy or ExecutionPolicy()
        """How the coordinator carries out commands."""
        self.time = 0.0
        self.starts_known = starts_known
        """Whether the back end reports when tasks start; some report only completions."""
        self._records = records
        self.task_number = {name: t for t, name in enumerate(graph.task_names)}
        self.item_number = {name: i for i, name in enumerate(graph.item_names)}
        self.move_to(platform, estimates)

    def move_to(self, platform: Platform, estimates: Estimates) -> None:
        """Describe the same run on this platform, which may have grown since it began."""
        self.platform, self.estimates = platform, estimates
        self.host_number = {host.name: h for h, host in enumerate(platform.hosts)}
        self.place_number = {name: p for p, name in enumerate(platform.network.place_names)}

    @property
    def static(self) -> StaticProblem:
        """Arrays that do not change during the run."""
        return self._records.static_view

    @property
    def state(self) -> CoordinatorState:
        """Arrays of the current state."""
        return self._records.state_view

    @property
    def compiled(self) -> tuple[object, object]:
        """`static` and `state` for compiled functions."""
        return self._records.view_refs

    @property
    def done(self) -> Bools:
        """Mask of tasks that have finished and need not run again."""
        return self.state.done.view(np.bool_)

    @property
    def running(self) -> Bools:
        """Mask of running tasks."""
        return np.asarray(self.state.run_host >= 0)

    @property
    def hosts_up(self) -> Bools:
        """Mask of hosts that are up."""
        return self.state.host_up.view(np.bool_)

    @property
    def down(self) -> set[str]:
        """Names of the hosts that are down."""
        return {self.platform.hosts[h].name for h in np.flatnonzero(self.state.host_up == 0).tolist()}

    @property
    def mispredicted(self) -> bool:
        """Whether a run time was mispredicted since the scheduler's last call (see `WakeConditions.misprediction`)."""
        return bool(self.state.counters[MISPREDICTED] > 0)

    @property
    def ready_count(self) -> int:
        """Number of ready tasks without a host."""
        return int(self.state.counters[READY])

    def ready(self, limit: int | None = None) -> Ints:
        """Ready tasks without a host, in the order in which they became ready; at most `limit` of them."""
        return self._listed(len(self.platform.hosts), limit)

    def queue(self, host: int, limit: int | None = None) -> list[int]:
        """The tasks in a host's queue, in order; at most `limit` of them."""
        listed: list[int] = self._listed(host, limit).tolist()
        return listed

    def _listed(self, queue: int, limit: int | None) -> Ints:
        from headrace.core.transitions.lists import queued_tasks

        most = self.graph.n_tasks if limit is None else limit
        found: Ints = queued_tasks(self.compiled[1], queue, most)
        return found

    def kept(self, keep: int) -> Ints:
        """The first `keep` tasks of each queue."""
        first = [self.queue(host, keep) for host in range(len(self.platform.hosts))] if keep else []
        return np.array([task for some in first for task in some], np.int32)

    def places_of(self, item: int) -> list[int]:
        """Reachable places that have a copy of an item."""
        state, found = self.state, []
        record = int(state.item_copies[item])
        while record >= 0:
            place = int(state.copy_place[record])
            if state.copy_status[record] == PRESENT and state.place_up[place]:
                found.append(place)
            record = int(state.copy_next[record])
        return sorted(found)

    @property
    def holders(self) -> dict[int, set[str]]:
        """Names of the hosts that are up and hold a copy, for each item produced by a task: O(copies)."""
        at: dict[int, list[str]] = {}
        for host, place, up in zip(
            self.platform.hosts, self.static.host_place.tolist(), self.hosts_up, strict=True
        ):
            if up:
                at.setdefault(place, []).append(host.name)
        found: dict[int, set[str]] = {}
        items, places = self.copies()
        made = self.graph.producer[items] >= 0
        for item, place in zip(items[made].tolist(), places[made].tolist(), strict=True):
            if place in at:
                found.setdefault(item, set()).update(at[place])
        return found

    def copies(self) -> tuple[Ints, Ints]:
        """Items and places of all present copies, sorted by item and place: O(copies log copies)."""
        state = self.state
        used = int(state.counters[COPIES])
        there = np.flatnonzero(state.copy_status[:used] == PRESENT)
        items, places = state.copy_item[there], state.copy_place[there]
        order = np.lexsort((places, items))
        return items[order], places[order]

    def rates(self) -> Floats:
        """Estimated speed of each host for each speed class of tasks now: [classes, hosts]."""
        return self.estimates.rates(self.time)

    def sizes(self) -> Floats:
        """Estimated bytes of each item now."""
        return self.estimates.sizes(self.done, self.state.size)

    def in_flight(self, keep: int = 0) -> InFlight:
        """Transfers in flight, and queued ones that the first `keep` tasks of each queue need."""
        return in_flight(self, keep, self.sizes())

    def timetable(self, keep: int = 0) -> Timetable:
        """Expected starts and ends of running tasks and of the first `keep` tasks of each queue."""
        state, static = self.state, self.static
        table = Timetable(np.zeros(len(self.platform.hosts)), [])
        running = np.flatnonzero(state.run_host >= 0).astype(np.int32)
        left = dict(zip(running.tolist(), self._left(running).tolist(), strict=True))
        for host in range(len(table.free)):
            on = state.core_task[static.core_ptr[host] : static.core_ptr[host + 1]].tolist()
            free = [left[task] if task >= 0 else 0.0 for task in on]
            table.slots.extend(Slot(host, task, 0.0, left[task]) for task in sorted(set(on)) if task >= 0)
            for task in self.queue(host, keep) if keep else ():
                free.sort()
                need = min(int(static.cores[task]), len(free))
                slot = Slot(host, task, free[need - 1], free[need - 1] + float(state.predicted[task]))
                free[:need] = [slot.end] * need
                table.slots.append(slot)
            table.free[host] = min(free)
        return table

    def _left(self, tasks: Ints) -> Floats:
        state = self.state
        return self.estimates.left(
            self.time, tasks, state.run_host[tasks], state.run_start[tasks], state.predicted[tasks]
        )

    def problem(
        self, keep: int = 0, chosen: Bools | None = None, as_if_up: frozenset[int] = frozenset()
    ) -> Problem:
        """The remaining problem: tasks that are neither done, running nor among the first `keep` of a queue.

        `chosen` restricts it further to these tasks. The hosts `as_if_up` take part although they are down. Hosts
        become free when their running and kept tasks are done, links when they have finished the transfers in flight
        and those that kept tasks need. Outputs of running tasks will be where the tasks run, items in flight at their
        targets. O(tasks + copies).
        """
        if not self.state.host_up.any():
            raise NoPlan(
                "no host is up",
                where=self.platform.name,
                hint="wait for a host to join, or add a worker and run again",
            )
        platform = self.estimates.platform(self.time)
        down = self.down - {self.platform.hosts[h].name for h in as_if_up}
        if down:
            platform = platform.without(down)
        wanted = (self.state.done == 0) & (self.state.run_host < 0)
        if chosen is not None:
            wanted &= chosen
        wanted[self.kept(keep)] = False
        estimates, sizes = self.estimates, self.sizes()
        rest, _ = remaining_graph(estimates.graph, wanted, estimates.work, sizes)
        if self.time > 0 and ((rest.release > 0).any() or np.isfinite(rest.deadline).any()):
            later = np.maximum(rest.release - self.time, 0.0)
            rest = replace(rest, release=later, deadline=rest.deadline - self.time)
        table, moving = self.timetable(keep), in_flight(self, keep, sizes)
        holders, since = self._holders(rest, platform, table, moving)
        names = [host.name for host in self.platform.hosts]
        return Problem(
            rest,
            platform,
            holders,
            _by_name(table.free, names, [host.name for host in platform.hosts]),
            since=since,
            link_free_at=_links_by_name(moving.link_free, self.platform.network, platform.network),
            prefetch_depth=int(self.static.policy[PREFETCH]),
        )

    def _holders(
        self, rest: Graph, platform: Platform, table: Timetable, moving: InFlight
    ) -> tuple[dict[int, tuple[int, ...]], dict[tuple[int, int], float]]:
        """Places of items that exist, are in flight or are being produced, numbered as in the remaining platform, and
        the times at which future copies become available."""
        state, graph = self.state, self.graph
        there = {name: p for p, name in enumerate(platform.network.place_names)}
        new = np.array([there.get(name, -1) for name in self.platform.network.place_names], np.int32)
        new[state.place_up == 0] = -1
        needed = np.zeros(graph.n_items, np.bool_)
        needed[rest.reads] = True
        needed &= (rest.producer < 0) & ~self.static.no_transfer
        items, places = self.copies()
        reachable = new[places] >= 0
        items, places = items[reachable], places[reachable]
        later = self._later(needed, table, moving)
        if self.static.origin >= 0:  # most inputs of a sweep are only there and need no entry
            count = np.bincount(items, minlength=graph.n_items)
            at_origin = np.zeros(graph.n_items, np.bool_)
            at_origin[items[places == self.static.origin]] = True
            plain = at_origin & (count == 1) & (graph.producer < 0)
            plain[list(later)] = False
            needed &= ~plain
        held: dict[int, set[int]] = {}
        for item, place in zip(items[needed[items]].tolist(), places[needed[items]].tolist(), strict=True):
            held.setdefault(item, set()).add(int(new[place]))
        since: dict[tuple[int, int], float] = {}
        for item in sorted(later):
            for place, time in later[item]:
                if new[place] >= 0 and int(new[place]) not in held.get(item, ()):
                    held.setdefault(item, set()).add(int(new[place]))
                    since[item, int(new[place])] = time
        return {item: tuple(sorted(held[item])) for item in sorted(held)}, since

    def _later(self, needed: Bools, table: Timetable, moving: InFlight) -> dict[int, list[tuple[int, float]]]:
        """Expected (place, seconds from now) of items in flight and of outputs of running and kept tasks."""
        later: dict[int, list[tuple[int, float]]] = {}
        for row in moving.carried:
            if needed[row.item]:
                later.setdefault(row.item, []).append((row.target, row.end))
        for slot in table.slots:
            place = int(self.static.host_place[slot.host])
            for item in self.graph.writes_of(slot.task).tolist():
                if needed[item]:
                    later.setdefault(item, []).append((place, slot.end))
        return later


def _by_name(values: Floats, names: Sequence[str], wanted: Sequence[str]) -> dict[int, float]:
    """Positive values, keyed by the position of their name in `wanted`; names that are not wanted are omitted."""
    number = {name: k for k, name in enumerate(wanted)}
    return {
        number[names[k]]: float(values[k]) for k in np.flatnonzero(values > 0).tolist() if names[k] in number
    }


def _links_by_name(values: Floats, of: Network, wanted: Network) -> dict[int, float]:
    """As `_by_name`, for links; pairwise links of many hosts have no names but a fixed order."""
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
