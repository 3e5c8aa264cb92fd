"""A bound and a plan from a relaxation: jobs split over hosts, files flowing over paths.

Each resource r (a pool of cores, a link, a disk) is busy for at most makespan - head - tail, where head is the least
time before it can first be used and tail the least time after it is last used. Any weights on resources that sum to 1
therefore give a bound: the weighted sum of loads, each job where it costs least, files over the cheapest paths. The
linear program gives the weights; the bound is recomputed from them alone and does not depend on the solver's accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.disks import disk_seconds
from headrace.planners.coschedule.inflows import Inflows
from headrace.planners.coschedule.instance import NONE, Instance
from headrace.planners.coschedule.ramps import ramps

FAR = 1e30
"""Distance of an unreachable place."""
_MOST_PLACES = 200
"""Maximum number of places for which links are included: shortest paths take the cube of their number."""


def shortest(instance: Instance, weight: Floats) -> Floats:
    """Length of the shortest path over weighted arcs between all pairs of places: O(places^3)."""
    arcs, places = instance.paths.arcs, instance.places
    distance = np.full((places, places), FAR)
    np.fill_diagonal(distance, 0.0)
    np.minimum.at(distance, (arcs.tail, arcs.head), weight)
    for k in range(places):
        np.minimum(distance, distance[:, k, None] + distance[None, k, :], out=distance)
    return distance


def least_times(instance: Instance) -> tuple[Floats, Floats]:
    """[jobs, hosts] the least time until all inputs arrive, and from the end of the job until all results arrive."""
    arcs = instance.paths.arcs
    latency, slowness = shortest(instance, arcs.latency), shortest(instance, 1.0 / arcs.bandwidth)
    before = np.zeros(instance.seconds.shape)
    after = np.zeros(instance.seconds.shape)
    for entries in file_entries(instance):
        far = _between(instance, latency, entries)
        seconds = far + entries.size[:, None] * _between(instance, slowness, entries)
        np.maximum.at(before if entries.into else after, entries.job, seconds)
    return before, after


@dataclass(frozen=True, eq=False)
class Entries:
    """Files from or to outside: the job that reads or writes each, its class (set of places) and size."""

    job: Ints
    ends: Ints
    size: Floats
    part: Floats
    """Share of the size, divided among the readers of an item."""
    into: bool


def file_entries(instance: Instance) -> tuple[Entries, Entries]:
    """Inputs from outside, and results with destinations. A file is divided equally among its readers."""
    job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
    outside = instance.source[instance.reads] != NONE
    job, items = job[outside], instance.reads[outside]
    readers = np.bincount(items, minlength=len(instance.size))
    sizes = instance.size[items]
    inputs = Entries(job, instance.source[items], sizes, sizes / np.maximum(1, readers[items]), True)
    job = np.repeat(np.arange(instance.n), np.diff(instance.write_ptr))
    wanted = instance.destination[instance.writes] != NONE
    job, items = job[wanted], instance.writes[wanted]
    sizes = instance.size[items]
    return inputs, Entries(job, instance.destination[items], sizes, sizes, False)


def _between(instance: Instance, distance: Floats, entries: Entries) -> Floats:
    """[entries, hosts] least distance between a class of files and the host."""
    table = np.full((len(instance.paths.sets), len(instance.host_place)), FAR)
    for s in np.unique(entries.ends).tolist():
        places = list(instance.paths.sets[s])
        distances = (
            distance[places][:, instance.host_place]
            if entries.into
            else distance[instance.host_place][:, places].T
        )
        table[s] = distances.min(axis=0)
    rows: Floats = table[entries.ends]
    return rows


def arc_loads(instance: Instance) -> tuple[Ints, Ints, Floats]:
    """For each use of a link by an arc: (arc, link, seconds per byte)."""
    arcs = instance.paths.arcs
    arc = np.repeat(np.arange(len(arcs.tail)), np.diff(arcs.link_ptr)).astype(np.int32)
    platform = instance.problem.platform
    whole = platform.contention == "fifo" and platform.network.store_and_forward
    rate = arcs.bandwidth[arc] if whole else platform.network.link_bandwidth[arcs.links]
    return arc, arcs.links, 1.0 / rate


def busy_windows(instance: Instance) -> tuple[Floats, Floats]:
    """Least time before each host, link and disk can be used, and after it: [hosts + links + sites]."""
    before, after = least_times(instance)
    graph = instance.problem.graph
    able = instance.can_run
    hosts = len(instance.host_place)
    links = instance.problem.platform.network.n_links
    count = hosts + links + len(instance.storage)
    head, tail = np.zeros(count), np.zeros(count)
    start = np.maximum(np.maximum(before, graph.release[:, None]), instance.host_free)
    head[:hosts] = np.where(able, start, np.inf).min(axis=0)
    tail[:hosts] = np.where(able, after, np.inf).min(axis=0)
    if instance.exclusive_links and _single_jobs(instance):
        _link_windows(instance, start, after, head, tail)
    head[~np.isfinite(head)] = 0.0
    tail[~np.isfinite(tail)] = 0.0
    if instance.exclusive_links:
        head[:hosts], tail[:hosts] = ramps(instance, head[:hosts], tail[:hosts], path_bound(instance))
    return head, tail


def _single_jobs(instance: Instance) -> bool:
    """Whether no job reads another's output, so that all traffic is from sources or to destinations."""
    graph = instance.problem.graph
    return not bool((graph.producer[instance.reads] >= 0).any())


def _link_windows(instance: Instance, start: Floats, after: Floats, head: Floats, tail: Floats) -> None:
    """Tighten the windows of links: an input passes a link before its job, a result after its job."""
    hosts = len(instance.host_place)
    arcs = instance.paths.arcs
    slow = shortest(instance, 1.0 / arcs.bandwidth)
    inputs, results = file_entries(instance)
    least_in = float(inputs.size.min(initial=np.inf))
    least_out = float(results.size.min(initial=np.inf))
    done = np.where(instance.can_run, start + instance.seconds, np.inf).min(axis=0)
    rest = np.where(instance.can_run, instance.seconds + after, np.inf).min(axis=0)
    sources = sorted({p for s in np.unique(inputs.ends).tolist() for p in instance.paths.sets[s]})
    destinations = sorted({p for s in np.unique(results.ends).tolist() for p in instance.paths.sets[s]})
    first = np.full((2, len(arcs.tail)), np.inf)
    last = np.full((2, len(arcs.tail)), np.inf)
    if sources:
        first[0] = slow[sources].min(axis=0)[arcs.tail] * least_in
        last[0] = (slow[:, instance.host_place] * least_in + rest).min(axis=1)[arcs.head]
    if destinations:
        first[1] = (slow[instance.host_place] * least_out + done[:, None]).min(axis=0)[arcs.tail]
        last[1] = slow[:, destinations].min(axis=1)[arcs.head] * least_out
    for link in range(instance.problem.platform.network.n_links):
        using = arcs_on(instance, link)
        if len(using):
            head[hosts + link] = float(first[:, using].min())
            tail[hosts + link] = float(last[:, using].min())


def arcs_on(instance: Instance, link: int) -> Ints:
    arcs = instance.paths.arcs
    owner = np.repeat(np.arange(len(arcs.tail)), np.diff(arcs.link_ptr))
    using: Ints = np.unique(owner[arcs.links == link]).astype(np.int32)
    return using


def job_costs(
    instance: Instance, price: Floats, whole: float = 0.0, inflows: Inflows | None = None
) -> Floats:
    """[jobs, hosts] seconds of all resources that a job needs on a host, weighted by prices; inf where it cannot run.

    Files take the cheapest paths, and a file with several readers is divided among them, except for the links into a
    place with `inflows`. With `whole`, up to 1, each reader pays more than its part, up to the whole file; the costs
    then prove nothing. O(jobs * hosts + places^3).
    """
    hosts = len(instance.host_place)
    own = np.where(instance.can_run, instance.seconds, 0.0)
    cost = own * instance.problem.graph.cores[:, None] * (price[:hosts] / instance.host_cores)
    cost += disk_seconds(instance) * price[-len(instance.storage) :][instance.site[instance.host_place]]
    cost[~instance.can_run] = np.inf
    if instance.exclusive_links and instance.places <= _MOST_PLACES:
        arc, link, seconds = arc_loads(instance)
        weight: Floats = np.zeros(len(instance.paths.arcs.tail))
        np.add.at(weight, arc, price[hosts + link] * seconds)
        spared = weight
        if inflows is not None:
            arcs = instance.paths.arcs
            least = np.full(instance.places, np.inf)
            np.minimum.at(least, arcs.head, weight)
            per_byte, paid = inflows.costs(instance, np.where(np.isfinite(least), least, 0.0))
            spared = weight - per_byte[arcs.head]
            cost += paid[:, instance.host_place]
        for entries in file_entries(instance):
            distance = shortest(instance, spared if entries.into else weight)
            part = (1.0 - whole) * entries.part + whole * entries.size
            np.add.at(cost, entries.job, part[:, None] * _between(instance, distance, entries))
    return cost


def shared_input_costs(instance: Instance, price: Floats, whole: float = 0.0) -> tuple[Ints, Floats]:
    """Files from outside with several readers, and what one reader pays for each on a host: [files, hosts].

    Costs are those of `job_costs` without inflows: what a reader saves where another has brought the file already.
    O(files * hosts + places^3).
    """
    readers = np.bincount(instance.reads, minlength=len(instance.size))
    items = np.flatnonzero((readers > 1) & (instance.source != NONE)).astype(np.int32)
    cost: Floats = np.zeros((len(items), len(instance.host_place)))
    if len(items) and instance.exclusive_links and instance.places <= _MOST_PLACES:
        arc, link, seconds = arc_loads(instance)
        weight: Floats = np.zeros(len(instance.paths.arcs.tail))
        np.add.at(weight, arc, price[len(instance.host_place) + link] * seconds)
        size = instance.size[items]
        part = (1.0 - whole) * size / readers[items] + whole * size
        entries = Entries(items, instance.source[items], size, part, True)
        far = _between(instance, shortest(instance, weight), entries)
        cost = part[:, None] * np.where(far < FAR, far, 0.0)
    return items, cost


def weighted_bound(
    instance: Instance,
    price: Floats,
    head: Floats,
    tail: Floats,
    late: Sequence[tuple[float, float, Floats]] = (),
    known: float = 0.0,
    inflows: Inflows | None = None,
) -> float:
    """The bound given by these weights of hosts, links and disks; any non-negative weights are valid.

    `late` are further constraints, each with its weight, its time and the loads [jobs, hosts] that come after that
    time; `known` is a bound that is proven already. O((1 + late) * jobs * hosts + places^3).
    """
    price = np.maximum(price, 0.0)
    total = float(price.sum()) + sum(weight for weight, _, _ in late)
    if not total > 0 or not instance.n:
        return 0.0
    price = price / total
    cost = job_costs(instance, price, inflows=None if inflows is None else inflows.scaled(1.0 / total))
    for share, _, loads in late:
        cost += share / total * loads
    load = float(cost.min(axis=1).sum())
    # The makespan is at least head + tail only if the resource is used; else it is at least `known` and the load.
    least = max(known, load)
    usable = head + tail <= least
    after = sum(share / total * moment for share, moment, _ in late if moment <= least)
    return load + after + float((price * (head + tail))[usable].sum())


def path_bound(instance: Instance) -> float:
    """The longest single job, on its best host, with the uncontended transfers of its files."""
    before, after = least_times(instance)
    graph = instance.problem.graph
    start = np.maximum(np.maximum(before, graph.release[:, None]), instance.host_free)
    return float((start + instance.seconds + after).min(axis=1).max(initial=0.0))


def quick_bound(instance: Instance) -> float:
    """The larger of the longest job and all work spread over all cores; no linear program, O(jobs * hosts)."""
    head, tail = busy_windows(instance)
    hosts = len(instance.host_place)
    price = np.zeros(len(head))
    total = np.where(instance.can_run, instance.seconds, 0.0).sum(axis=0)
    some = instance.host_cores * instance.can_run.sum(axis=0)
    busy = total > 1e-300  # less would overflow
    price[:hosts] = np.where(busy, some / np.where(busy, total, 1.0), 0.0)
    single = path_bound(instance)
    return max(single, weighted_bound(instance, price, head, tail, known=single))
