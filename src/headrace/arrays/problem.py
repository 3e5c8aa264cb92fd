"""A problem as arrays for compiled loops, shared by list, batch and search planners.

Lists of lists are stored as one array and offsets: the items that task t reads are
`reads[read_ptr[t] : read_ptr[t + 1]]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.routes import NetworkArrays, network_arrays
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE

if TYPE_CHECKING:
    from headrace.core.scheduler import Problem


class TaskArrays(NamedTuple):
    """The program: tasks, and the data items that they read and write."""

    order: Ints
    """All tasks in topological order."""
    level: Ints
    """Length of the longest path, in edges, from a task without predecessors to each task."""
    work: Floats
    """Seconds of each task on a host of speed 1."""
    speed_class: Ints
    """The row of `rate` for each task."""
    cores: Ints
    """How many cores of one host each task holds."""
    read_ptr: Ints
    reads: Ints
    """The items that each task reads."""
    write_ptr: Ints
    writes: Ints
    """The items that each task writes."""
    size: Floats
    """Bytes of each item."""
    producer: Ints
    """The task that writes each item; -1 for inputs from outside the program."""
    reader_ptr: Ints
    readers: Ints
    """The tasks that read each item."""
    result: Bools
    """Results that must be returned to the origin."""
    everywhere: Bools
    """Inputs from outside that need no transfer."""


class InitialCopies(NamedTuple):
    """Copies that exist before the program starts, or that will exist independently of the plan."""

    ptr: Ints
    place: Int64s
    """The places that hold each item, the origin last: among equally near copies, the last is used."""
    since: Floats
    """When each of these copies is available."""


class HostArrays(NamedTuple):
    rate: Floats
    """[classes, hosts] a task of this speed class takes work / rate seconds."""
    free_at: Floats
    """When each host becomes available."""
    core_ptr: Int64s
    """Cores of host h are core_ptr[h] .. core_ptr[h + 1] - 1."""
    place: Int64s
    """The place where each host's data is stored."""


class ProblemArrays(NamedTuple):
    """A problem as four records. Compiled functions take only those they need."""

    tasks: TaskArrays
    initial: InitialCopies
    hosts: HostArrays
    network: NetworkArrays


def problem_arrays(problem: Problem) -> ProblemArrays:
    """The arrays of a problem: O(tasks + items + reads + hosts * kinds + links)."""
    graph, platform = problem.graph, problem.platform
    everywhere, initial = _initial_copies(problem)
    tasks = TaskArrays(
        order=graph.order,
        level=graph.level,
        work=graph.work,
        speed_class=graph.speed_class,
        cores=graph.cores,
        read_ptr=graph.read_ptr,
        reads=graph.reads,
        write_ptr=graph.write_ptr,
        writes=graph.writes,
        size=graph.size,
        producer=graph.producer,
        reader_ptr=graph.reader_ptr,
        readers=graph.readers,
        result=graph.result,
        everywhere=everywhere,
    )
    hosts = HostArrays(
        rate=platform.rates(graph),
        free_at=_from_zero(problem.free_at, len(platform.hosts)),
        core_ptr=np.concatenate(([0], np.cumsum([h.cores for h in platform.hosts]))),
        place=platform.network.host_place.astype(np.int64),
    )
    link_free_at = _from_zero(problem.link_free_at, platform.network.n_links)
    return ProblemArrays(tasks, initial, hosts, network_arrays(platform, link_free_at))


def _from_zero(times: Mapping[int, float], count: int) -> Floats:
    """The times of some of `count` resources, 0 for all others."""
    array = np.zeros(count)
    for number, time in times.items():
        array[number] = time
    return array


def _initial_copies(problem: Problem) -> tuple[Bools, InitialCopies]:
    """Which items are everywhere, and the initial locations of the others."""
    graph, origin = problem.graph, problem.platform.network.origin
    outside = graph.producer == OUTSIDE
    stated = np.zeros(graph.n_items, np.bool_)
    stated[[i for i, places in problem.holders.items() if places]] = True
    everywhere = outside & ~stated if origin == EVERYWHERE else np.zeros(graph.n_items, np.bool_)
    counts = np.zeros(graph.n_items, np.int32)
    if origin != EVERYWHERE:
        counts[outside] = 1
    for item, places in problem.holders.items():
        if places:
            counts[item] = len(places)
    ptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    place = np.full(int(ptr[-1]), origin, np.int64)
    for item, places in problem.holders.items():
        place[ptr[item] : ptr[item] + len(places)] = sorted(places, key=lambda p: p == origin)
    since = np.zeros(len(place))
    for (item, at), time in problem.since.items():
        first, last = int(ptr[item]), int(ptr[item + 1])
        since[first:last][place[first:last] == at] = time
    return everywhere, InitialCopies(ptr, place, since)
