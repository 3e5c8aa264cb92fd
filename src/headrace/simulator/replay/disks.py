"""What waits for what so that limited disks are taken up in the order of the plan."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from headrace.model.check_case import EXCESS, Numbers, slack
from headrace.model.graph import OUTSIDE, Bools, Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.simulator.replay.dependencies import Dependencies, Holders, with_more
from headrace.simulator.replay.prefetch import Calls

INITIAL = -1
"""In place of the node that begins a copy: it is there from the beginning."""


class _Copies(NamedTuple):
    """All copies that take up storage, and every use of one."""

    site: Ints
    begin: Ints
    """The task or transfer that begins it, or `INITIAL`."""
    size: Floats
    until: Floats
    """The planned end of its last use; inf: it is kept; -inf: it is never used."""
    used: Numbers
    """For each use, the copy ..."""
    user: Ints
    """... and the task or transfer: one that reads, sends, makes or brings it."""


def with_disks(plan: Plan, depends: Dependencies, holders: Holders, calls: Calls) -> Dependencies:
    """What waits for what, with turns on the disks that the copies of the plan could fill.

    What begins a copy on such a disk waits until what begins the copy before it has started, and until all users of
    copies that by the planned times are no longer held have finished. The disk then never holds more than at some
    planned moment. Copies begin in the order of their planned times as far as what waits for what already allows,
    so no tasks and transfers come to wait for each other. O((tasks + reads + transfers) log), as many edges.
    """
    storage = plan.platform.network.storage
    if not np.isfinite(storage).any():
        return depends
    copies = _copies(plan, holders)
    held = copies.until > -np.inf
    total = np.bincount(copies.site[held], copies.size[held], len(storage))
    tight = np.flatnonzero(total > storage * (1 + EXCESS))
    if not len(tight):
        return depends
    start, finish = _times(plan)
    begins = np.zeros(len(start), np.bool_)
    begins[copies.begin[np.isin(copies.site, tight) & (copies.begin != INITIAL)]] = True
    waits = depends.waits.copy()
    waits[plan.graph.n_tasks :] += ~calls.called
    rank = _ranks(depends._replace(waits=waits), calls, start, finish, begins)
    turns = [_turns(copies, site, start, rank) for site in tight.tolist()]
    return with_more(depends, *(np.concatenate(part) for part in zip(*turns, strict=True)))


def _times(plan: Plan) -> tuple[Floats, Floats]:
    return np.concatenate((plan.start, plan.move_start)), np.concatenate((plan.finish, plan.move_finish))


def _copies(plan: Plan, holders: Holders) -> _Copies:
    """Copies as `check` counts them."""
    graph, network = plan.graph, plan.platform.network
    n, places = graph.n_tasks, network.n_places
    task_place = network.host_place[plan.host].astype(np.int64)
    item, place = _initial(plan, holders)
    made = np.flatnonzero(graph.producer != OUTSIDE)
    maker = graph.producer[made]
    carrier = np.arange(n, n + len(plan.move_item))
    key = np.concatenate(
        (
            item * places + place,
            made * places + task_place[maker],
            plan.move_item.astype(np.int64) * places + plan.move_target,
        )
    )
    begin = np.concatenate((np.full(len(item), INITIAL), maker, carrier)).astype(np.int32)
    reader = np.repeat(np.arange(n), np.diff(graph.read_ptr))
    use = np.concatenate(
        (
            key[len(item) :],
            graph.reads.astype(np.int64) * places + task_place[reader],
            plan.move_item.astype(np.int64) * places + plan.move_source,
        )
    )
    user = np.concatenate((begin[len(item) :], reader, carrier)).astype(np.int32)
    with_bytes = graph.size[key // places] > 0
    copy, first = np.unique(key[with_bytes], return_index=True)
    begin = begin[with_bytes][first]
    used = _find(copy, use)
    used, user = used[used >= 0], user[used >= 0]
    finish = _times(plan)[1]
    until = np.full(len(copy), -np.inf)
    np.maximum.at(until, used, finish[user])
    until[_kept(plan, copy, np.append(finish, 0.0)[begin])] = np.inf  # INITIAL is the last: ready at 0
    return _Copies(network.site[copy % places], begin, graph.size[copy // places], until, used, user)


def _initial(plan: Plan, holders: Holders) -> tuple[Numbers, Numbers]:
    """Items and places of the copies that are there from the beginning."""
    graph, origin = plan.graph, plan.platform.network.origin
    listed = [
        (i, p) for i, places in holders.items() if graph.producer[i] == OUTSIDE for p in dict.fromkeys(places)
    ]
    homeless = graph.producer == OUTSIDE
    homeless[[i for i, _ in listed]] = False
    rest = np.flatnonzero(homeless & (origin != EVERYWHERE))
    pairs = np.array(listed, np.int64).reshape(-1, 2)
    return np.concatenate((pairs[:, 0], rest)), np.concatenate((pairs[:, 1], np.full(len(rest), origin)))


def _find(copy: Numbers, key: Numbers) -> Numbers:
    """Where each key is among the sorted keys of copies; -1: nowhere."""
    if not len(copy):
        return np.full(len(key), -1)
    at = np.minimum(np.searchsorted(copy, key), len(copy) - 1)
    return np.where(copy[at] == key, at, -1)


def _kept(plan: Plan, copy: Numbers, ready: Floats) -> Numbers:
    """Copies that are kept to the end: results at the origin, and at the destination that they reach first."""
    graph, network = plan.graph, plan.platform.network
    at_origin = graph.result[copy // network.n_places] & (copy % network.n_places == network.origin)
    item = np.repeat(np.arange(graph.n_items), np.diff(graph.destinations.ptr))
    at = _find(copy, item * network.n_places + graph.destinations.places(graph, plan.platform))
    item, at = item[at >= 0], at[at >= 0]
    order = np.lexsort((at, ready[at], item))
    first = np.diff(item[order], prepend=-1) != 0
    return np.concatenate((np.flatnonzero(at_origin), at[order[first]]))


def _ranks(depends: Dependencies, calls: Calls, start: Floats, finish: Floats, begins: Bools) -> Ints:
    """The place of each node in an order that keeps to what waits for what and else to planned starts.

    Of nodes with the same start those that begin no copy come first: what ends leaves its disk to what begins.
    `depends.waits` is used up.
    """
    ptr, successors, waits, _ = depends
    call_ptr, nodes, called = calls
    tasks, called = len(call_ptr) - 1, called.copy()
    rank = np.full(len(start), len(start), np.int32)
    ready = [(start[v], begins[v], finish[v], v) for v in range(len(start)) if waits[v] == 0]
    heapq.heapify(ready)
    reached = 0
    while len(ready) > 0:
        node = heapq.heappop(ready)[3]
        rank[node] = reached
        reached += 1
        for i in range(ptr[node], ptr[node + 1]):
            v = int(successors[i])
            waits[v] -= 1
            if waits[v] == 0:
                heapq.heappush(ready, (start[v], begins[v], finish[v], v))
        for i in range(call_ptr[node], call_ptr[node + 1]) if node < tasks else range(0):
            v = int(nodes[i])
            if not called[v - tasks]:
                called[v - tasks] = True
                waits[v] -= 1
                if waits[v] == 0:
                    heapq.heappush(ready, (start[v], begins[v], finish[v], v))
    return rank


def _turns(copies: _Copies, site: int, start: Floats, rank: Ints) -> tuple[Ints, Ints, Floats]:
    """Edges (before, after, lag) for the disk of a site.

    As copies begin in turn, each use has to be over for the first beginning after the planned end of its copy alone.
    """
    begin = np.unique(copies.begin[(copies.site == site) & (copies.begin != INITIAL)])
    begin = begin[np.argsort(rank[begin], kind="stable")]
    since = np.maximum.accumulate(start[begin])
    ends = np.flatnonzero((copies.site == site)[copies.used] & (copies.until[copies.used] < np.inf))
    user, until = copies.user[ends], copies.until[copies.used[ends]]
    following = np.maximum(
        np.searchsorted(since, until - slack(until)), np.searchsorted(rank[begin], rank[user], side="right")
    )
    user, following = user[following < len(begin)], following[following < len(begin)]
    lag = np.concatenate((np.zeros(max(len(begin) - 1, 0)), np.full(len(user), np.inf)))
    return np.concatenate((begin[:-1], user)), np.concatenate((begin[1:], begin[following])), lag
