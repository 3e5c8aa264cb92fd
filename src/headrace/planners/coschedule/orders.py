"""Orders in which jobs are placed: simple rules based on run times and transfer times."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.relaxation import least_times

EXCHANGES = 8
"""Most exchanges of jobs between cores of a host, for each core."""
EVEN = 2e-4
"""Cores whose ends differ by a smaller share are even enough."""


def topological(instance: Instance, key: Floats) -> Ints:
    """Jobs by ascending key, but never before a job whose output they read; ties by number."""
    graph = instance.problem.graph
    order: Ints = np.lexsort((np.arange(instance.n), key, graph.level)).astype(np.int32)
    return order


def rules(instance: Instance, host: Ints) -> Iterator[tuple[str, Ints]]:
    """Named orders, for jobs with these hosts: O(n log n) each."""
    before, after = least_times(instance)
    jobs = np.arange(instance.n)
    run, come, leave = (table[jobs, host] for table in (instance.seconds, before, after))
    graph = instance.problem.graph
    due = np.where(np.isfinite(graph.deadline), graph.deadline, 0.0)
    if np.isfinite(graph.deadline).any():
        yield "due first", topological(instance, np.where(np.isfinite(graph.deadline), due, np.inf))
    yield "longest first", topological(instance, -run)
    yield "longest run and output transfer first", topological(instance, -(run + leave))
    yield "as given", topological(instance, np.zeros(instance.n))
    yield "shortest first", topological(instance, run)
    yield "longest output transfer first", topological(instance, -leave)
    yield "shortest input transfer first", topological(instance, come)
    yield "input less output transfer", topological(instance, come - leave)
    yield "earliest output first", topological(instance, come + run)
    yield (
        "largest ratio of run to output transfer first",
        topological(instance, -run / (leave + 1e-9 + 1e-6 * run)),
    )
    yield "released first", topological(instance, graph.release)
    # For links in and out that serve one job at a time this order is optimal (Mitten's rule for flow shops with lags).
    first, last = come + run, leave + run
    end = 1.0 + max(first.max(initial=0.0), last.max(initial=0.0))
    yield "flow shop", topological(instance, np.where(come <= leave, first - end, end - last))
    yield "cores filled evenly", topological(instance, even_starts(instance, host))


def even_starts(instance: Instance, host: Ints) -> Floats:
    """When jobs start if inputs never delay them, longest first, and cores of a host then exchange jobs to end alike.

    A list schedule in the order of these times fills the cores in the same way. Jobs that hold several cores count as
    if they held one. O(n log n + cores^2) for each host.
    """
    starts = np.zeros(instance.n)
    for h in np.unique(host).tolist():
        mine = np.flatnonzero(host == h)
        run = instance.seconds[mine, h]
        for core in _even_cores(run, int(instance.host_cores[h])):
            starts[mine[core]] = np.cumsum(run[core]) - run[core]
    return starts


def _even_cores(run: Floats, cores: int) -> list[list[int]]:
    """The jobs of each core, longest first: the fullest core exchanges one job for a shorter one of the emptiest."""
    jobs: list[list[int]] = [[] for _ in range(cores)]
    load = [(0.0, core) for core in range(cores)]
    for j in np.argsort(-run, kind="stable").tolist():
        least, core = load[0]
        jobs[core].append(j)
        heapq.heapreplace(load, (least + float(run[j]), core))
    if cores == 1:
        return jobs
    filled = np.array([run[core].sum() for core in jobs])
    for _ in range(EXCHANGES * cores):
        most, least = int(np.argmax(filled)), int(np.argmin(filled))
        gap = filled[most] - filled[least]
        given, taken = jobs[most], jobs[least]
        if not taken or gap <= EVEN * filled[most]:
            break
        ascending = taken[::-1]
        # Each job of the fuller core against the one of the other that comes closest to closing half of the gap.
        near = np.searchsorted(run[ascending], run[given] - gap / 2).clip(0, len(taken) - 1)
        less = run[given] - run[ascending][near]
        good = (less > 1e-9 * gap) & (less < gap * (1 - 1e-9))
        if not good.any():
            break
        k = int(np.argmin(np.where(good, np.abs(less - gap / 2), np.inf)))
        a, b = given[k], ascending[int(near[k])]
        jobs[most] = sorted([j for j in given if j != a] + [b], key=lambda j: (-run[j], j))
        jobs[least] = sorted([j for j in taken if j != b] + [a], key=lambda j: (-run[j], j))
        filled[most] -= less[k]
        filled[least] += less[k]
    return jobs


def mixed(instance: Instance, host: Ints, orders: list[Ints], ends: list[Floats]) -> Ints:
    """For the jobs of each host, the order of the rule under which they finished first; hosts alternate in proportion.

    `ends` lists, for each order, the latest end of each host's jobs. O(n log n + n * rules).
    """
    best = np.argmin(np.array(ends), axis=0)
    key = np.zeros(instance.n)
    for rule, order in enumerate(orders):
        mine = order[best[host[order]] == rule]
        for h in np.unique(host[mine]).tolist():
            here = mine[host[mine] == h]
            key[here] = (np.arange(len(here)) + 0.5) / len(here)
    chosen = np.zeros(instance.n, np.bool_)
    chosen[orders[0]] = True
    whole = topological(instance, key)
    return whole[chosen[whole]]
