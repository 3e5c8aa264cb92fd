"""The critical chain of a list pass through cores and links: the tasks whose move can shorten the plan."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, leaf
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays
from headrace.arrays.routes import NetworkArrays, links_between
from headrace.model.graph import Bools, Floats
from headrace.planners.partial_schedule import PartialSchedule, Placement, Transfers

_MOST_READERS = 8
"""Of an item that is sent on the chain, at most this many of the tasks that wait for it are taken."""


@entry
def busy_chain(problem: ProblemArrays, schedule: PartialSchedule) -> Int64s:
    """Tasks on one critical chain, and of each transfer on it the tasks that read the item there.

    The chain goes back from the latest end to what ended when a task or transfer started: on the same core, on a link
    of the same route, or the source of the data. O(n log n) in tasks and transfers.
    """
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    placement, transfers = schedule.placement, schedule.transfers
    n, moves = len(placement.start), transfers.used[0]
    start = np.concatenate((placement.start, transfers.start[:moves]))
    finish = np.concatenate((placement.finish, transfers.finish[:moves]))
    by_finish = np.argsort(finish, kind="mergesort")
    ends = finish[by_finish]
    seen = np.zeros(n + moves, np.bool_)
    found = np.empty(n + _MOST_READERS * moves, np.int64)
    taken = np.zeros(len(network.link_free_at), np.bool_)
    count, node = 0, by_finish[-1]
    while node >= 0:
        seen[node] = True
        if node < n:
            found[count] = node
            count += 1
        else:
            count = _add_readers(tasks, hosts, placement, transfers, node - n, found, count)
        node = _before(
            tasks, hosts, network, placement, transfers, node, start[node], by_finish, ends, seen, taken
        )
    return np.unique(found[:count])


@leaf
def _add_readers(
    tasks: TaskArrays,
    hosts: HostArrays,
    placement: Placement,
    transfers: Transfers,
    move: int,
    found: Int64s,
    count: int,
) -> int:
    """Add the tasks that read what a transfer brings, at its target; if there are none, the task that made it."""
    item, target, before = transfers.item[move], transfers.target[move], count
    for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
        reader = tasks.readers[i]
        if hosts.place[placement.host[reader]] == target and count < before + _MOST_READERS:
            found[count] = reader
            count += 1
    if count == before and tasks.producer[item] >= 0:
        found[count] = tasks.producer[item]
        count += 1
    return count


@leaf
def _before(
    tasks: TaskArrays,
    hosts: HostArrays,
    network: NetworkArrays,
    placement: Placement,
    transfers: Transfers,
    node: int,
    start: float,
    by_finish: Int64s,
    ends: Floats,
    seen: Bools,
    taken: Bools,
) -> int:
    """A node that ended when this one started and that it waited for, or -1."""
    n = len(placement.start)
    at = np.searchsorted(ends, start)
    if node >= n:
        _mark_links(network, transfers, node - n, taken, True)
    result = -1
    while at < len(ends) and ends[at] == start:
        other = by_finish[at]
        at += 1
        if seen[other]:
            continue
        if node < n:
            waits = _task_waits(tasks, hosts, placement, transfers, node, other)
        else:
            waits = _transfer_waits(tasks, network, transfers, n, node - n, other, taken)
        if waits:
            result = other
            break
    if node >= n:
        _mark_links(network, transfers, node - n, taken, False)
    return result


@leaf
def _task_waits(
    tasks: TaskArrays, hosts: HostArrays, placement: Placement, transfers: Transfers, task: int, other: int
) -> bool:
    """Whether a task may have waited for another task, or for a transfer."""
    n = len(placement.start)
    if (
        other < n
        and placement.host[other] == placement.host[task]
        and placement.core[other] == placement.core[task]
    ):
        return True
    if other >= n and transfers.target[other - n] != hosts.place[placement.host[task]]:
        return False
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if other < n and tasks.producer[item] == other:
            return True
        if other >= n and transfers.item[other - n] == item:
            return True
    return False


@leaf
def _transfer_waits(
    tasks: TaskArrays,
    network: NetworkArrays,
    transfers: Transfers,
    n: int,
    move: int,
    other: int,
    taken: Bools,
) -> bool:
    """Whether a transfer, whose links are marked, may have waited for a task, or for another transfer."""
    item = transfers.item[move]
    if other < n:
        return bool(tasks.producer[item] == other)
    earlier = other - n
    if transfers.item[earlier] == item and transfers.target[earlier] == transfers.source[move]:
        return True
    count = links_between(network, transfers.source[earlier], transfers.target[earlier], transfers.route)
    shared = False
    for i in range(count):
        shared = shared or taken[transfers.route[i]]
    return shared


@leaf
def _mark_links(
    network: NetworkArrays,
    transfers: Transfers,
    move: int,
    taken: Bools,
    value: bool,
) -> None:
    count = links_between(network, transfers.source[move], transfers.target[move], transfers.route)
    for i in range(count):
        taken[transfers.route[i]] = value
