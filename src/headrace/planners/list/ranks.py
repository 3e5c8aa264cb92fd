"""Ranks of tasks (longest paths before and after each task, on average hosts) and orders by rank."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, inner
from headrace.arrays.problem import ProblemArrays, TaskArrays
from headrace.model.graph import Floats, Ints


class MeanCosts(NamedTuple):
    """Mean durations of tasks and transfers."""

    run_seconds: Floats
    """Mean run time of each task over hosts."""
    latency: float
    seconds_per_byte: float
    """Means over pairs of different hosts."""


def mean_costs(problem: ProblemArrays, hosts: Ints | None = None) -> MeanCosts:
    """Mean run times over hosts, and mean latency and seconds per byte over pairs of hosts with a route.

    Only the given hosts are considered; None: all. O(tasks + places^2).
    """
    tasks, network = problem.tasks, problem.network
    rate, host_place = problem.hosts.rate, problem.hosts.place
    if hosts is not None:
        rate, host_place = rate[:, hosts], host_place[hosts]
    run_seconds = tasks.work * (1.0 / rate).mean(axis=1)[tasks.speed_class]
    hosts_at = np.bincount(host_place, minlength=len(network.zone)).astype(np.float64)
    used = np.flatnonzero(hosts_at)
    zone, port_slowness, hosts_at = network.zone[used], 1.0 / network.port[used], hosts_at[used]
    latency = seconds = pairs = 0.0
    for i in range(len(used)):
        bandwidth = network.route_bandwidth[zone[i], zone]
        count = hosts_at[i] * np.where(bandwidth > 0, hosts_at, 0.0)
        pairs += count.sum() - hosts_at[i]
        count[i] = 0.0
        with np.errstate(divide="ignore"):
            slowness = np.maximum(np.maximum(port_slowness[i], port_slowness), 1.0 / bandwidth)
        latency += float((count * network.route_latency[zone[i], zone]).sum())
        seconds += float((count[count > 0] * slowness[count > 0]).sum())
    if pairs == 0:
        return MeanCosts(run_seconds, 0.0, 0.0)
    return MeanCosts(run_seconds, latency / pairs, seconds / pairs)


def by_decreasing_rank(tasks: TaskArrays, rank: Floats) -> Ints:
    """Tasks by decreasing rank; ties in topological order. O(tasks log tasks)."""
    position = np.empty(len(rank), np.int64)
    position[tasks.order] = np.arange(len(rank))
    return np.lexsort((position, -rank)).astype(np.int32)


@inner
def communication(costs: MeanCosts, size: float) -> float:
    """Mean time to send this many bytes to another host."""
    return costs.latency + size * costs.seconds_per_byte if size > 0 else 0.0


@inner
def add_bytes_read(tasks: TaskArrays, task: int, bytes_from: Floats) -> None:
    """Sum up what a task reads from each of its predecessors."""
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        maker = tasks.producer[tasks.reads[i]]
        if maker >= 0:
            bytes_from[maker] += tasks.size[tasks.reads[i]]


@inner
def clear_bytes_read(tasks: TaskArrays, task: int, bytes_from: Floats) -> None:
    """Reset the sums for the predecessors of a task to 0."""
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        maker = tasks.producer[tasks.reads[i]]
        if maker >= 0:
            bytes_from[maker] = 0.0


@entry
def upward_rank(tasks: TaskArrays, costs: MeanCosts) -> Floats:
    """rank(t) = run time(t) + max over successors s of (communication(t, s) + rank(s)): O(tasks + reads).

    communication(t, s) is the time to send all bytes that s reads from t.
    """
    n = len(tasks.order)
    below = np.zeros(n)
    bytes_from = np.zeros(n)
    rank = np.empty(n)
    for task in tasks.order[::-1]:
        rank[task] = costs.run_seconds[task] + below[task]
        add_bytes_read(tasks, task, bytes_from)
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            maker = tasks.producer[tasks.reads[i]]
            if maker >= 0:
                below[maker] = max(below[maker], communication(costs, bytes_from[maker]) + rank[task])
        clear_bytes_read(tasks, task, bytes_from)
    return rank


@entry
def downward_rank(tasks: TaskArrays, costs: MeanCosts) -> tuple[Floats, Ints]:
    """rank(t) = max over predecessors p of (rank(p) + run time(p) + communication(p, t)), and the maximising p.

    Ties: the predecessor whose item is read first; -1 for tasks without predecessors. O(tasks + reads).
    """
    n = len(tasks.order)
    bytes_from = np.zeros(n)
    rank = np.zeros(n)
    critical = np.full(n, -1, np.int32)
    for task in tasks.order:
        add_bytes_read(tasks, task, bytes_from)
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            maker = tasks.producer[tasks.reads[i]]
            if maker >= 0:
                path = rank[maker] + costs.run_seconds[maker] + communication(costs, bytes_from[maker])
                if path > rank[task] or critical[task] < 0:
                    rank[task] = path
                    critical[task] = maker
        clear_bytes_read(tasks, task, bytes_from)
    return rank, critical


@entry
def ready_queue_order(tasks: TaskArrays, priority: Floats) -> Ints:
    """Order all tasks by always choosing the ready task of highest priority; ties: the earlier in topological order.

    O((tasks + reads) log tasks).
    """
    n = len(tasks.order)
    waits_for = np.zeros(n, np.int64)
    position = np.empty(n, np.int64)
    chosen = np.empty(n, np.int32)
    for p in range(n):
        task = tasks.order[p]
        position[task] = p
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            waits_for[task] += tasks.producer[tasks.reads[i]] >= 0
    queue = [(-priority[task], position[task]) for task in tasks.order if waits_for[task] == 0]
    heapify(queue)
    for at in range(n):
        _, p = heappop(queue)
        task = tasks.order[p]
        chosen[at] = task
        for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
            item = tasks.writes[i]
            for j in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
                reader = tasks.readers[j]
                waits_for[reader] -= 1
                if waits_for[reader] == 0:
                    heappush(queue, (-priority[reader], position[reader]))
    return chosen


def latest_start_order(problem: ProblemArrays, deadline: Floats, order: Ints | Int64s) -> Ints:
    """Order all tasks by the latest start that meets all deadlines, on average hosts; ties as in `order`.

    Each task comes after its predecessors. O((tasks + reads) log tasks).
    """
    latest = latest_starts(problem.tasks, mean_costs(problem), deadline)
    position, rank = np.empty(len(latest), np.int64), np.empty(len(latest))
    position[order] = np.arange(len(latest))
    rank[np.lexsort((position, latest))] = np.arange(len(latest))
    return ready_queue_order(problem.tasks, -rank)


@entry
def latest_starts(tasks: TaskArrays, costs: MeanCosts, deadline: Floats) -> Floats:
    """start(t) = min(deadline(t), min over successors s of (start(s) - communication(t, s))) - run time(t).

    inf for tasks on which no deadline depends. O(tasks + reads).
    """
    finish = deadline.copy()
    bytes_from = np.zeros(len(tasks.order))
    for task in tasks.order[::-1]:
        start = finish[task] - costs.run_seconds[task]
        add_bytes_read(tasks, task, bytes_from)
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            maker = tasks.producer[tasks.reads[i]]
            if maker >= 0:
                finish[maker] = min(finish[maker], start - communication(costs, bytes_from[maker]))
        clear_bytes_read(tasks, task, bytes_from)
    return finish - costs.run_seconds
