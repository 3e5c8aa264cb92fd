"""Decisions about jobs, and the list schedules derived from them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.arrays.calendar import Calendar, exclusive_calendar, shared_calendar
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.planners.coschedule.dispatch import dispatch_jobs
from headrace.planners.coschedule.instance import EXCESS, Instance
from headrace.planners.coschedule.queues import Uses
from headrace.planners.coschedule.records import (
    DecisionArrays,
    InstanceArrays,
    ItemCopies,
    JobSchedule,
    Preferences,
    new_copies,
    new_schedule,
    new_workspace,
)
from headrace.planners.coschedule.relaxation import arcs_on
from headrace.planners.coschedule.schedule_jobs import FAILED, LATE, clear_schedule, mean_last_use, place_jobs

ANY = -1
"""An undecided path: the one with the earliest arrival is used."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """The order in which jobs are placed, the host of each, the path of each input and output."""

    order: Ints
    host: Ints
    input_path: Ints
    output_path: Ints
    pull: bool = False

    def arrays(self) -> DecisionArrays:
        return DecisionArrays(self.order, self.host, self.input_path, self.output_path, self.pull, self.pull)

    def copy(self) -> Decisions:
        return replace(
            self,
            order=self.order.copy(),
            host=self.host.copy(),
            input_path=self.input_path.copy(),
            output_path=self.output_path.copy(),
        )


def undecided_paths(instance: Instance) -> dict[str, Any]:
    return {
        "input_path": np.full(len(instance.reads), ANY, np.int32),
        "output_path": np.full(len(instance.writes), ANY, np.int32),
    }


class ListScheduler:
    """Makes list schedules of one instance, reusing the same arrays.

    The arrays grow when bookings need more room than is allocated.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.arrays = instance_arrays(instance)
        self.room = 16 * instance.n + 16 * len(instance.problem.platform.network.link_bandwidth) + 64
        """Number of bookings for which there is room. Snapshots can be restored while it is the same."""
        self._make_room()

    def _make_room(self) -> None:
        instance, paths = self.instance, self.instance.paths
        hops = int(np.diff(paths.path_ptr).max(initial=0))
        entries = len(instance.reads) + len(instance.writes)
        n_links = instance.problem.platform.network.n_links
        most = int(np.diff(instance.read_ptr).max(initial=0) + np.diff(instance.write_ptr).max(initial=0))
        self.links = exclusive_calendar(n_links, self.room)
        shared = len(instance.host_place) + len(instance.storage) + self.arrays.room.size
        self.usage = shared_calendar(shared, self.room * (1 + self.arrays.room.shape[1]))
        self.copies = new_copies(len(instance.size) * instance.places + 1, self.arrays.limited_storage)
        self.schedule = new_schedule(instance.n, entries * max(1, hops))
        self.workspace = new_workspace(
            1 + most * max(1, hops), int(np.diff(paths.arcs.link_ptr).max(initial=1))
        )

    def grow(self) -> None:
        """Double the size of the arrays."""
        self.room *= 2
        self._make_room()

    @property
    def full(self) -> bool:
        """Whether the arrays were too small for the bookings; the schedule is then invalid."""
        return bool(self.links.used[1] or self.usage.used[1])

    def clear(self, decisions: DecisionArrays) -> None:
        """Reset to an empty schedule."""
        clear_schedule(self.arrays, decisions, *self.state)

    def place(
        self, decisions: DecisionArrays, first: int, last: int, end: float, late: float
    ) -> tuple[float, float]:
        """Place the jobs at these positions of the order; returns the latest end and the sum of lateness."""
        placed = place_jobs(self.arrays, decisions, first, last, end, late, *self.state, self.workspace)
        return float(placed[0]), float(placed[1])

    def snapshot(self) -> list[list[Any]]:
        """A copy of the current state: O(its size)."""
        return [[array.copy() for array in part] for part in self.state]

    def restore(self, snapshot: list[list[Any]]) -> None:
        """Go back to the state of a snapshot."""
        for part, old in zip(self.state, snapshot, strict=True):
            for array, values in zip(part, old, strict=True):
                array[:] = values

    @property
    def state(self) -> tuple[Calendar, Calendar, ItemCopies, JobSchedule]:
        """Everything that placing a job changes."""
        return self.links, self.usage, self.copies, self.schedule

    def value(self, decisions: Decisions) -> float:
        """Makespan, plus a penalty for late jobs; FAILED or more if some job cannot be placed."""
        while True:
            chosen = decisions.arrays()
            self.clear(chosen)
            end, late = self.place(chosen, 0, len(decisions.order), 0.0, 0.0)
            if not self.full:
                return end + LATE * late
            self.grow()

    def dispatched(
        self,
        order: Ints,
        penalty: Floats,
        waiting: Floats,
        width: int,
        most: int,
        last: int,
        shared: tuple[Ints, Floats],
    ) -> tuple[float, Decisions]:
        """The value and decisions if hosts take the jobs that suit them best as they go (see `Preferences`).

        `order` is that of the `last` jobs; `shared` are files with several readers and what a reader saves on a host
        to which another has brought the file.
        """
        preferred = np.argsort(penalty, axis=0, kind="stable").T.astype(np.int32)
        items, saved = shared
        row, ptr, readers = _readers_of(self.instance, items)
        start = Decisions(
            order, self.instance.seconds.argmin(axis=1).astype(np.int32), **undecided_paths(self.instance)
        )
        while True:
            decisions, placed = start.copy(), order.copy()
            # Nothing is known of later readers: a copy is held until its last use so far, and longer if there is room.
            chosen = decisions.arrays()._replace(open_ended=True)
            brought = np.zeros((len(items), self.instance.places), np.bool_)
            preferences = Preferences(
                preferred.copy(),
                penalty.copy(),
                waiting,
                width,
                most,
                last,
                row,
                ptr,
                readers,
                saved,
                brought,
            )
            self.clear(chosen)
            end = dispatch_jobs(self.arrays, chosen, preferences, *self.state, self.workspace, placed)
            if not self.full:
                break
            self.grow()
        if end >= FAILED:
            return float(end), decisions
        decided = replace(decisions, order=placed)
        return self.value(decided), decided

    def idle(
        self, placed: Ints, jobs: Ints | None = None, first_move: int = 0, held: Floats | None = None
    ) -> Floats:
        """Idle time of each host (mean over cores), link and disk (mean over bytes) before its last use.

        `placed` are the jobs in the latest schedule; with `jobs` and the number of their first transfer, only these
        count as busy, and `held` is what others hold of each disk (see `disk_seconds`).
        """
        jobs = placed if jobs is None else jobs
        instance, schedule = self.instance, self.schedule
        hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
        end, busy = np.zeros(hosts + links), np.zeros(hosts + links)
        taken = ((schedule.finish - schedule.start) * instance.problem.graph.cores)[jobs]
        np.maximum.at(end, schedule.host[placed], schedule.finish[placed])
        np.add.at(busy, schedule.host[jobs], taken / instance.host_cores[schedule.host[jobs]])
        arcs, count = instance.paths.arcs, int(schedule.state[0])
        arc = schedule.transfer_arc[:count]
        uses = np.diff(arcs.link_ptr)[arc]
        move = np.repeat(np.arange(count), uses)
        step = np.arange(len(move)) - np.repeat(np.cumsum(uses) - uses, uses)
        use = arcs.link_ptr[arc][move] + step
        link, size = hosts + arcs.links[use], instance.size[schedule.transfer_item[move]]
        seconds = arcs.busy_latency[use] + size / arcs.busy_bandwidth[use]
        np.maximum.at(end, link, schedule.transfer_start[move] + seconds)
        late = move >= first_move if len(jobs) else np.zeros(len(move), np.bool_)
        np.add.at(busy, link[late], seconds[late])
        left: Floats = np.where(end > 0, end - busy, 0.0)
        last, others = float(end.max(initial=0.0)), 0.0 if held is None else held
        disks = self.disk_seconds(last)
        return np.concatenate((left, np.where(disks > 0, last - (disks - others), 0.0)))

    def disk_seconds(self, until: float) -> Floats:
        """Byte-seconds held on each disk up to a time in the latest schedule, divided by its size: [sites]."""
        usage, hosts = self.usage, len(self.instance.host_place)
        found = np.zeros(len(self.instance.storage))
        limited = np.isfinite(self.instance.storage) & (self.instance.storage > 0)
        for site in np.flatnonzero(limited).tolist():
            first, count = int(usage.offset[hosts + site]), int(usage.length[hosts + site])
            start = np.minimum(usage.start[first : first + count], until)
            level = usage.level[first : first + count]
            found[site] = (level * np.diff(start, append=until)).sum() / self.instance.storage[site]
        return found

    def uses(self, link: int, into: bool) -> Uses:
        """The transfers of inputs (or of results) over a link in the latest schedule."""
        instance, schedule, graph = self.instance, self.schedule, self.instance.problem.graph
        count = int(schedule.state[0])
        on = np.isin(schedule.transfer_arc[:count], arcs_on(instance, link))
        item = schedule.transfer_item[:count]
        on &= (graph.producer[item] < 0) == into
        item = item[on]
        job = graph.readers[graph.reader_ptr[item]] if into else graph.producer[item]
        return Uses(job, schedule.transfer_start[:count][on], schedule.transfer_finish[:count][on])

    def ends(self, placed: Ints) -> Floats:
        """The latest end of each host's jobs, including their results, in the latest schedule."""
        latest = np.zeros(len(self.instance.host_place))
        np.maximum.at(latest, self.schedule.host[placed], self.schedule.delivered[placed])
        return latest

    def mean_last_use(self) -> float:
        """Mean time of last use over hosts and links, in the latest schedule."""
        return float(mean_last_use(self.arrays, self.usage, self.links))

    def plan(self, decisions: Decisions, name: str) -> Plan:
        """The plan of these decisions, which must be feasible; without a bound."""
        value = self.value(decisions)
        assert value < FAILED
        schedule, arcs = self.schedule, self.instance.paths.arcs
        count = int(schedule.state[0])
        graph, platform = self.instance.problem.graph, self.instance.problem.platform
        arc = schedule.transfer_arc[:count]
        start, finish, host = schedule.start.copy(), schedule.finish.copy(), schedule.host.copy()
        return Plan(
            graph=graph,
            platform=platform,
            scheduler=name,
            host=host,
            core=first_cores(graph, self.instance.host_cores, host, start, finish),
            start=start,
            finish=finish,
            move_item=schedule.transfer_item[:count].copy(),
            move_source=arcs.tail[arc],
            move_target=arcs.head[arc],
            move_start=schedule.transfer_start[:count].copy(),
            move_finish=schedule.transfer_finish[:count].copy(),
        )


def instance_arrays(instance: Instance) -> InstanceArrays:
    graph, paths, arcs = instance.problem.graph, instance.paths, instance.paths.arcs
    set_ptr = np.cumsum([0, *(len(places) for places in paths.sets)]).astype(np.int32)
    return InstanceArrays(
        seconds=instance.seconds,
        cores=graph.cores,
        release=graph.release,
        deadline=graph.deadline,
        host_place=instance.host_place,
        host_cores=instance.host_cores,
        host_free=instance.host_free,
        needs=instance.room[0],
        room=instance.room[1],
        read_ptr=instance.read_ptr,
        reads=instance.reads,
        write_ptr=instance.write_ptr,
        writes=instance.writes,
        wait_ptr=instance.wait_ptr,
        waits=instance.waits,
        size=instance.size,
        source=instance.source,
        arrival=instance.arrival,
        link_free=instance.link_free,
        producer=graph.producer,
        destination=instance.destination,
        site=instance.site,
        storage=instance.storage,
        limited_storage=bool(np.isfinite(instance.storage).any()),
        exclusive_links=instance.exclusive_links,
        set_ptr=set_ptr,
        sets=np.array([p for places in paths.sets for p in places], np.int32),
        pair_ptr=paths.pair_ptr,
        path_start=paths.path_start,
        path_ptr=paths.path_ptr,
        path_arcs=paths.path_arcs,
        path_room=_path_room(instance),
        tail=arcs.tail,
        head=arcs.head,
        latency=arcs.latency,
        bandwidth=arcs.bandwidth,
        arc_link_ptr=arcs.link_ptr,
        arc_links=arcs.links,
        busy_latency=arcs.busy_latency,
        busy_bandwidth=arcs.busy_bandwidth,
    )


def _path_room(instance: Instance) -> Floats:
    """The smallest disk along each path, with the share by which sums of bytes may exceed it."""
    paths = instance.paths
    room = np.full(len(paths.path_ptr) - 1, np.inf)
    path = np.repeat(np.arange(len(room)), np.diff(paths.path_ptr))
    np.minimum.at(room, path, instance.storage[instance.site[paths.arcs.head[paths.path_arcs]]])
    return room * (1.0 + EXCESS)


def _readers_of(instance: Instance, items: Ints) -> tuple[Ints, Ints, Ints]:
    """The number of each of these items in the list (-1: not in it), and the jobs that read each, as ptr and jobs."""
    row = np.full(len(instance.size), -1, np.int32)
    row[items] = np.arange(len(items))
    job = np.repeat(np.arange(instance.n, dtype=np.int32), np.diff(instance.read_ptr))
    of = row[instance.reads]
    listed = np.flatnonzero(of >= 0)
    listed = listed[np.argsort(of[listed], kind="stable")]
    ptr = np.zeros(len(items) + 1, np.int32)
    np.cumsum(np.bincount(of[listed], minlength=len(items)), out=ptr[1:])
    return row, ptr, job[listed]


def first_cores(
    graph: Graph, host_cores: Ints, host: Ints, start: Floats, finish: Floats, rounding: float = 0.0
) -> Ints:
    """The lowest core of each job: jobs take the lowest-numbered free cores, in the order of their starts.

    A zero-duration job that finds no free core gets the one that is free soonest and has to wait for it. Jobs may
    overlap by `rounding` seconds. O(n log n + n * cores held).
    """
    core = np.zeros(len(host), np.int32)
    order = np.lexsort((np.arange(len(host)), finish, start, host))
    last, busy, free = -1, list[tuple[float, list[int]]](), list[int]()
    for t in order.tolist():
        if host[t] != last:
            last = int(host[t])
            busy, free = [], list(range(int(host_cores[last])))
        slack = rounding + 1e-9 + 1e-12 * float(start[t])
        while busy and busy[0][0] <= start[t] + slack:
            for c in heapq.heappop(busy)[1]:
                heapq.heappush(free, c)
        if len(free) < graph.cores[t] and finish[t] <= start[t] + slack:
            core[t] = busy[0][1][0]
            continue
        taken = [heapq.heappop(free) for _ in range(int(graph.cores[t]))]
        core[t] = taken[0]
        heapq.heappush(busy, (float(finish[t]), taken))
    return core
