"""Memory and named resources of hosts in the calendar of shared resources, beside cores and disks, and in CP models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.arrays.calendar import Calendar, first_fit, low_from, occupy
from headrace.arrays.compiling import leaf
from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Ints
from headrace.model.needs import capacity
from headrace.planners.coschedule.records import InstanceArrays


def needs_and_room(problem: Problem) -> tuple[Floats, Floats]:
    """[jobs, needs] what each job needs, and [hosts, needs] what each host has, of all that can run out."""
    graph, platform = problem.graph, problem.platform
    limits = () if problem.constraints is None else problem.constraints.limits
    names = tuple(name for name in graph.needs.names if any(limit.need == name for limit in limits))
    columns = [graph.needs.names.index(name) for name in names]
    amount = graph.needs.amount[:, columns] if names else np.zeros((graph.n_tasks, 0))
    amount = np.where(graph.work[:, None] > 0, amount, 0.0)  # what takes no time holds nothing
    return np.ascontiguousarray(amount), np.ascontiguousarray(capacity(platform, names))


@leaf
def _first_need(arrays: InstanceArrays, host: int) -> int:
    """The resource number of the first need of a host; the others follow."""
    return int(len(arrays.host_place) + len(arrays.storage) + host * arrays.needs.shape[1])


@leaf
def first_start(
    arrays: InstanceArrays, usage: Calendar, job: int, host: int, ready: float, seconds: float
) -> float:
    """The first time from `ready` on at which a host has the cores, and all else that a job needs, for its run."""
    cores = arrays.host_cores[host] - arrays.cores[job]
    start = first_fit(usage, host, ready, seconds, cores)
    k, first = 0, _first_need(arrays, host)
    while k < arrays.needs.shape[1]:
        needed = arrays.needs[job, k]
        later = start
        if needed > 0.0:
            later = first_fit(usage, first + k, start, seconds, arrays.room[host, k] - needed)
        k += 1
        if later > start:  # the others may not have enough then
            start, k = first_fit(usage, host, later, seconds, cores), 0
    return start


@leaf
def idle_for(arrays: InstanceArrays, usage: Calendar, job: int, host: int) -> float:
    """From when on a host has, for good, what a job needs."""
    idle = low_from(usage, host, arrays.host_cores[host] - arrays.cores[job])
    for k in range(arrays.needs.shape[1]):
        if arrays.needs[job, k] > 0.0:
            most = arrays.room[host, k] - arrays.needs[job, k]
            idle = max(idle, low_from(usage, _first_need(arrays, host) + k, most))
    return idle


@leaf
def hold(
    arrays: InstanceArrays, usage: Calendar, job: int, host: int, start: float, end: float, sign: float
) -> None:
    """Book (1.0) or cancel (-1.0) the cores of a job, and all else that it needs, on a host."""
    occupy(usage, host, start, end, sign * arrays.cores[job])
    for k in range(arrays.needs.shape[1]):
        if arrays.needs[job, k] > 0.0:
            occupy(usage, _first_need(arrays, host) + k, start, end, sign * arrays.needs[job, k])


def add_room(
    model: Any,
    room: tuple[Floats, Floats],
    host: int,
    runs: list[tuple[Any, int]],
    fixed: Callable[[Ints], Any],
) -> None:
    """Add to a CP model that jobs on a host never need more at once than it has.

    Args:
        model: The model.
        room: As `needs_and_room` returns it.
        host: The host.
        runs: Intervals of jobs that may run there, with the job.
        fixed: For what each job needs, in whole numbers, the intervals in which others hold some of it, with how much.
    """
    needs, has = room
    for k in np.flatnonzero(np.isfinite(has[host])).tolist():
        unit = int(np.gcd.reduce(needs[:, k].astype(np.int64))) or 1
        amount: Ints = (needs[:, k] // unit).astype(np.int64)
        most = int(has[host, k]) // unit
        some = [(run, int(amount[job])) for run, job in runs if amount[job]]
        some += [(interval, min(most, held)) for interval, held in fixed(amount)]
        if some:
            model.add_cumulative([run for run, _ in some], [held for _, held in some], most)
