"""Cores of hosts in partial schedules: a task holds one, or several of one host at once."""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar, book, earliest
from headrace.arrays.compiling import leaf
from headrace.arrays.problem import HostArrays, ProblemArrays
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan


def core_bookings(problem: ProblemArrays) -> int:
    """How many cores all tasks hold together; a task that fits on no host is never booked."""
    most = int(np.diff(problem.hosts.core_ptr).max(initial=1))
    return int(np.minimum(problem.tasks.cores, most).sum(dtype=np.int64))


def too_few_cores(problem: Problem, task: int) -> NoPlan | None:
    """The error for a task that needs more cores than any host has; None if one has enough."""
    needed, most = int(problem.graph.cores[task]), max(host.cores for host in problem.platform.hosts)
    if needed <= most:
        return None
    return NoPlan(
        f"task {problem.graph.task_names[task]!r} needs {needed} cores, but no host has more than {most}",
        where=problem.platform.name,
        hint="lower its `cores`, or add a host that has as many",
    )


@leaf
def has_cores(hosts: HostArrays, host: int, needed: int) -> bool:
    """Whether a host has as many cores."""
    return bool(hosts.core_ptr[host + 1] - hosts.core_ptr[host] >= needed)


@leaf
def earliest_core(
    hosts: HostArrays, cores: Calendar, host: int, needed: int, ready: float, duration: float
) -> tuple[int, float]:
    """The core of a host with the earliest possible start, and that start; inf if it has not as many as needed.

    If several are needed, the first of those that are free at that start.
    """
    best_core, best_start = -1, np.inf
    ready = max(ready, hosts.free_at[host])
    if needed > 1:
        return _earliest_cores(hosts, cores, host, needed, ready, duration)
    for core in range(hosts.core_ptr[host], hosts.core_ptr[host + 1]):
        start = earliest(cores, core, ready, duration)
        if start < best_start:
            best_core, best_start = core, start
    return best_core, best_start


@leaf
def _earliest_cores(
    hosts: HostArrays, cores: Calendar, host: int, needed: int, ready: float, duration: float
) -> tuple[int, float]:
    """The first time from `ready` on at which `needed` cores are free for `duration`, and the first of these cores.

    No start is possible before as many cores have one, each by itself: O(rounds * cores^2 * (log blocks + gaps)).
    """
    if not has_cores(hosts, host, needed):
        return -1, np.inf
    first, last = hosts.core_ptr[host], hosts.core_ptr[host + 1]
    time = ready
    while True:
        free, chosen, later = 0, -1, np.inf
        for core in range(first, last):
            start = earliest(cores, core, time, duration)
            if start == time:
                chosen = core if free == 0 else chosen
                free += 1
            else:
                later = min(later, start)
        if free >= needed:
            return chosen, time
        time = later


@leaf
def book_cores(cores: Calendar, last: int, core: int, needed: int, start: float, duration: float) -> None:
    """Book a core, and if a task needs several, the next ones before core `last` that are free at that time."""
    finish = start + duration
    book(cores, core, start, finish)
    for other in range(core + 1, last):
        if needed <= 1:
            return
        if earliest(cores, other, start, duration) == start:
            book(cores, other, start, finish)
            needed -= 1
