"""The critical chain of a list pass through cores and links: the tasks whose move can shorten the plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, inner, leaf
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays
from headrace.arrays.routes import NetworkArrays, busy_links, links_between
from headrace.model.graph import Bools, Floats
from headrace.planners.partial_schedule import PartialSchedule, Placement, Transfers

_MOST_READERS = 8
"""Of an item that is sent on the chain, at most this many of the tasks that wait for it are taken."""


class Uses(NamedTuple):
    """Every use of a link by a transfer, in the order in which the links become idle again."""

    end: Floats
    link: Int64s
    move: Int64s


class Ends(NamedTuple):
    """Tasks and transfers in the order in which they finish."""

    finish: Floats
    node: Int64s


@entry
def busy_chain(problem: ProblemArrays, schedule: PartialSchedule) -> Int64s:
    """Tasks on one critical chain, and of each transfer on it the tasks that read the item there.

    The chain goes back from the latest end to what ended when a task or transfer started: on the same core, the use of
    a link of the same route, or the source of the data. O(n log n) in tasks and uses of links.
    """
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    placement, transfers = schedule.placement, schedule.transfers
    n, moves = len(placement.start), transfers.used[0]
    start = np.concatenate((placement.start, transfers.start[:moves]))
    finish = np.concatenate((placement.finish, transfers.finish[:moves]))
    by_finish = np.argsort(finish, kind="mergesort")
    ends = Ends(finish[by_finish], by_finish)
    uses = _uses(tasks, network, transfers)
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
        before = _supplier(tasks, hosts, placement, transfers, node, start[node], ends, seen)
        if before < 0 and node >= n:
            before = _on_a_link(network, transfers, node - n, start[node], uses, seen, taken)
        node = before
    return np.unique(found[:count])


@inner
def _uses(tasks: TaskArrays, network: NetworkArrays, transfers: Transfers) -> Uses:
    """All uses of links that take time."""
    moves = transfers.used[0]
    most = moves * len(transfers.route)
    end, link, move = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    used = 0
    for k in range(moves):
        source, target, size = transfers.source[k], transfers.target[k], tasks.size[transfers.item[k]]
        for i in range(busy_links(network, source, target, size, transfers.route, transfers.busy)):
            if transfers.busy[i] > 0.0:
                end[used] = transfers.start[k] + transfers.busy[i]
                link[used], move[used] = transfers.route[i], k
                used += 1
    order = np.argsort(end[:used], kind="mergesort")
    return Uses(end[order], link[order], move[order])


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
def _supplier(
    tasks: TaskArrays,
    hosts: HostArrays,
    placement: Placement,
    transfers: Transfers,
    node: int,
    start: float,
    ends: Ends,
    seen: Bools,
) -> int:
    """A task or transfer that finished when this one started and that it waited for, or -1."""
    n = len(placement.start)
    at = np.searchsorted(ends.finish, start)
    while at < len(ends.finish) and ends.finish[at] == start:
        other = ends.node[at]
        at += 1
        if seen[other]:
            continue
        if node < n:
            waits = _task_waits(tasks, hosts, placement, transfers, node, other)
        else:
            waits = _transfer_waits(tasks, transfers, n, node - n, other)
        if waits:
            return other
    return -1


@leaf
def _on_a_link(
    network: NetworkArrays,
    transfers: Transfers,
    move: int,
    start: float,
    uses: Uses,
    seen: Bools,
    taken: Bools,
) -> int:
    """The node of a transfer that kept a link of the same route busy until this one started, or -1."""
    n = len(seen) - transfers.used[0]
    _mark_links(network, transfers, move, taken, True)
    at, result = np.searchsorted(uses.end, start), -1
    while at < len(uses.end) and uses.end[at] == start and result < 0:
        if taken[uses.link[at]] and not seen[n + uses.move[at]]:
            result = n + uses.move[at]
        at += 1
    _mark_links(network, transfers, move, taken, False)
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
def _transfer_waits(tasks: TaskArrays, transfers: Transfers, n: int, move: int, other: int) -> bool:
    """Whether a transfer may have waited for a task, or for another transfer that brought its item."""
    item = transfers.item[move]
    if other < n:
        return bool(tasks.producer[item] == other)
    earlier = other - n
    return bool(transfers.item[earlier] == item and transfers.target[earlier] == transfers.source[move])


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
