"""The problem for co-scheduling: jobs, hosts as pools of cores, files with sources and destinations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.planners.coschedule.paths import Paths, find_paths

NONE = -1
EXCESS = 5e-10
"""Share by which sums of bytes may exceed a capacity because of rounding: half of what `check` allows."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Arrays over jobs (n), hosts, items and sites. Items that need no transfer are omitted from reads and writes."""

    problem: Problem
    seconds: Floats
    """[n, hosts] run time; inf where the job cannot run."""
    host_place: Ints
    host_cores: Ints
    host_free: Floats
    read_ptr: Ints
    reads: Ints
    write_ptr: Ints
    writes: Ints
    wait_ptr: Ints
    waits: Ints
    """Predecessors of each job, in addition to the jobs whose files it reads."""
    size: Floats
    source: Ints
    """The set of places that initially hold an item from outside; NONE for items produced by a job."""
    arrival: Floats
    """When each initial copy can be used, at item * places + place, in the middle of a run; empty: all at once."""
    link_free: Floats
    """When each link has finished the transfers under way."""
    destination: Ints
    """The set of places to one of which an item must be delivered; NONE if it need not be."""
    site: Ints
    """The site of each place."""
    storage: Floats
    exclusive_links: bool
    """Whether a link is busy with one transfer at a time."""
    paths: Paths

    @property
    def n(self) -> int:
        return len(self.seconds)

    @property
    def places(self) -> int:
        return len(self.site)

    @property
    def can_run(self) -> Bools:
        able: Bools = np.isfinite(self.seconds)
        return able

    def arrives(self, item: int, place: int) -> float:
        """When an initial copy can be used."""
        return float(self.arrival[item * self.places + place]) if len(self.arrival) else 0.0

    def inputs(self, job: int) -> list[int]:
        found: list[int] = self.reads[self.read_ptr[job] : self.read_ptr[job + 1]].tolist()
        return found

    def outputs(self, job: int) -> list[int]:
        found: list[int] = self.writes[self.write_ptr[job] : self.write_ptr[job + 1]].tolist()
        return found


def instance_of(problem: Problem) -> Instance:
    """Build the arrays; raises NoPlan for infeasible problems: O(jobs * hosts + items + pairs of places)."""
    graph, platform, network = problem.graph, problem.platform, problem.platform.network
    sets, source, destination = _sets_of(problem)
    reads, read_ptr = _kept(
        graph.reads, graph.read_ptr, (source[graph.reads] != NONE) | (graph.producer[graph.reads] >= 0)
    )
    reads, read_ptr = _kept(reads, read_ptr, graph.size[reads] > 0)
    signals, wait_ptr = _kept(
        graph.reads, graph.read_ptr, (graph.size[graph.reads] == 0) & (graph.producer[graph.reads] >= 0)
    )
    writes, write_ptr = _kept(graph.writes, graph.write_ptr, graph.size[graph.writes] > 0)
    free = np.zeros(len(platform.hosts))
    for host, since in problem.free_at.items():
        free[host] = since
    cores = np.array([h.cores for h in platform.hosts], np.int32)
    seconds = graph.work[:, None] / platform.rates(graph)[graph.speed_class]
    seconds[graph.cores[:, None] > cores] = np.inf
    if problem.constraints is not None:
        seconds[~problem.constraints.allowed[problem.constraints.allowed_class]] = np.inf
    moved = np.unique(np.concatenate((reads, writes[destination[writes] != NONE])))
    typical = float(graph.size[moved].mean()) if len(moved) else 1.0
    hosts_at = np.unique(network.host_place).tolist()
    inner = bool((graph.producer[reads] >= 0).any())
    pairs = {(s, p) for s in np.unique(source[reads]).tolist() if s != NONE for p in hosts_at}
    pairs |= {(p, g) for g in np.unique(destination[writes]).tolist() if g != NONE for p in hosts_at}
    pairs |= {(p, q) for p in hosts_at for q in hosts_at} if inner else set()
    made = Instance(
        problem=problem,
        seconds=seconds,
        host_place=network.host_place,
        host_cores=cores,
        host_free=free,
        read_ptr=read_ptr,
        reads=reads,
        write_ptr=write_ptr,
        writes=writes,
        wait_ptr=wait_ptr,
        waits=graph.producer[signals],
        size=graph.size,
        source=source,
        arrival=_arrivals(problem),
        link_free=_link_free(problem),
        destination=destination,
        site=network.site,
        storage=network.storage,
        exclusive_links=platform.contention != "none",
        paths=find_paths(platform, sets, pairs, typical),
    )
    _require_possible(made)
    return made


def _arrivals(problem: Problem) -> Floats:
    """Arrival times of items in flight or in production; empty if there are none."""
    if not problem.since:
        return np.zeros(0)
    places = problem.platform.network.n_places
    found = np.zeros(problem.graph.n_items * places)
    for (item, place), moment in problem.since.items():
        found[item * places + place] = moment
    return found


def _link_free(problem: Problem) -> Floats:
    free = np.zeros(problem.platform.network.n_links)
    for link, moment in problem.link_free_at.items():
        free[link] = moment
    return free


def _sets_of(problem: Problem) -> tuple[tuple[tuple[int, ...], ...], Ints, Ints]:
    """Sets of places, the single places first; for each item its source set and its destination set."""
    graph, network = problem.graph, problem.platform.network
    number: dict[tuple[int, ...], int] = {(p,): p for p in range(network.n_places)}
    source = np.full(graph.n_items, NONE, np.int32)
    destination = np.full(graph.n_items, NONE, np.int32)
    outside = graph.producer == OUTSIDE
    if network.origin != EVERYWHERE:
        source[outside] = network.origin
        destination[graph.result & ~outside & (graph.size > 0)] = network.origin
    for item, places in problem.holders.items():
        if places and outside[item]:
            source[item] = number.setdefault(tuple(sorted(set(places))), len(number))
    for item, places in graph.destinations.places_by_item(graph, problem.platform).items():
        if graph.size[item] > 0 and not outside[item]:
            destination[item] = number.setdefault(tuple(sorted(set(places))), len(number))
    return tuple(number), source, destination


def _kept(values: Ints, ptr: Ints, keep: Bools) -> tuple[Ints, Ints]:
    """A CSR list restricted to the entries to keep."""
    counts = np.concatenate(([0], np.cumsum(keep)))
    return values[keep], counts[ptr].astype(np.int32)


def _require_possible(instance: Instance) -> None:
    """Raise NoPlan for jobs without a host, files without a path, and disks too small for a job or for all results."""
    graph = instance.problem.graph
    wide = np.flatnonzero(~instance.can_run.any(axis=1))
    if len(wide):
        t = int(wide[0])
        raise _impossible(
            instance,
            f"task {graph.task_names[t]!r} needs {int(graph.cores[t])} cores, but no host "
            f"{'' if instance.problem.constraints is None else 'that it may use '}has more than "
            f"{int(instance.host_cores.max())}",
            "give the task fewer cores, or add a host",
        )
    _require_room_for_results(instance)
    reach = reachable(instance)
    for job in np.flatnonzero(~reach.any(axis=1)).tolist():
        raise _impossible(instance, _why_nowhere(instance, job), "add a link, or more storage")
    instance.seconds[~reach] = np.inf
    from headrace.planners.coschedule.relaxation import least_times

    before, after = least_times(instance)
    soonest = (np.maximum(before, graph.release[:, None]) + instance.seconds + after).min(axis=1)
    late = np.flatnonzero(soonest > graph.deadline * (1 + 1e-9) + 1e-9)
    if len(late):
        t = int(late[0])
        raise _impossible(
            instance,
            f"task {graph.task_names[t]!r} is due at {float(graph.deadline[t]):.6g} s, but its results cannot be "
            f"delivered before {float(soonest[t]):.6g} s",
            "give it a later deadline",
        )


def reachable(instance: Instance) -> Bools:
    """Whether a job can run on a host: its files have a path and fit on the disks along it.

    O(reads * hosts).
    """
    room = instance.storage * (1 + 2 * EXCESS)
    largest = _largest_files(instance, room)
    reach = instance.can_run.copy()
    held = np.zeros(instance.n)
    for ptr, items, ends in (
        (instance.read_ptr, instance.reads, instance.source),
        (instance.write_ptr, instance.writes, instance.destination),
    ):
        job = np.repeat(np.arange(instance.n), np.diff(ptr))
        np.add.at(held, job, instance.size[items])
        tied = ends[items] != NONE
        job, items = job[tied], items[tied]
        sets = ends[items][:, None]
        into = (
            largest[sets, instance.host_place]
            if ends is instance.source
            else largest[instance.host_place, sets]
        )
        np.logical_and.at(reach, job, instance.size[items][:, None] <= into)
    reach &= held[:, None] <= room[instance.site[instance.host_place]]
    return reach


def _largest_files(instance: Instance, room: Floats) -> Floats:
    """The largest file that fits on some path from one set to another; -1 if there is no path."""
    paths = instance.paths
    largest = np.full((len(paths.sets), len(paths.sets)), -1.0)
    used = np.flatnonzero(np.diff(paths.pair_ptr))
    for pair in used.tolist():
        s, t = divmod(pair, len(paths.sets))
        heads = (instance.site[paths.arcs.head[paths.arcs_of(path)]] for path in paths.of(s, t))
        largest[s, t] = max(float(room[sites].min(initial=np.inf)) for sites in heads)
    return largest


def _why_nowhere(instance: Instance, job: int) -> str:
    """The reason why a job cannot run on any host, for the host that comes closest."""
    graph, platform = instance.problem.graph, instance.problem.platform
    name, paths = graph.task_names[job], instance.paths
    hosts = np.flatnonzero(instance.can_run[job]).tolist()
    inputs, outputs = instance.inputs(job), instance.outputs(job)
    held = sum(float(instance.size[i]) for i in (*inputs, *outputs))
    rooms = [float(instance.storage[instance.site[instance.host_place[h]]]) for h in hosts]
    if held > max(rooms) * (1 + 2 * EXCESS):
        most = f"no site with a host stores more than {max(rooms):.6g}"
        return f"task {name!r} needs {held:.6g} bytes of storage while it runs, but {most}"
    for i in (*inputs, *outputs):
        s, g = int(instance.source[i]), int(instance.destination[i])
        ends = [(s, int(instance.host_place[h])) for h in hosts] if i in inputs and s != NONE else []
        ends += [(int(instance.host_place[h]), g) for h in hosts] if i in outputs and g != NONE else []
        if ends and not any(len(paths.of(a, b)) for a, b in ends):
            where = platform.network.place_names
            end = " or ".join(repr(where[p]) for p in paths.sets[s if i in inputs else g])
            gap = f"from {end} to any host" if i in inputs else f"from any host to {end}"
            return f"item {graph.item_names[i]!r} of task {name!r} has no route {gap}"
    return f"task {name!r} has no host that can receive and store all its inputs and send all its results"


def _require_room_for_results(instance: Instance) -> None:
    """Raise NoPlan unless all results that can be delivered to only one site fit there."""
    sites = [
        {int(instance.site[p]) for p in instance.paths.sets[g]} if g != NONE else set()
        for g in instance.destination.tolist()
    ]
    need = np.zeros(len(instance.storage))
    for item, at in enumerate(sites):
        if len(at) == 1:
            need[at.pop()] += instance.size[item]
    for s in np.flatnonzero(need > instance.storage * (1 + 2 * EXCESS)).tolist():
        name = instance.problem.platform.sites[s].name
        raise _impossible(
            instance,
            f"results of {float(need[s]):.6g} bytes must be delivered to site {name!r}, "
            f"which stores only {float(instance.storage[s]):.6g}",
            "give the site more storage, or the results other destinations",
        )


def _impossible(instance: Instance, problem: str, hint: str) -> NoPlan:
    return NoPlan(
        problem, where=f"{instance.problem.graph.name} on {instance.problem.platform.name}", hint=hint
    )
