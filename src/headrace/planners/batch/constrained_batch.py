"""Batch-mode heuristics under constraints: the same rules, on the hosts that the constraints leave for each task.

Every placed task can change which hosts fit for the others, so all completion times of a level are recomputed in each
step. A separate loop, so that problems without constraints pay nothing for it.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import full
from headrace.arrays.compiling import entry, inner
from headrace.arrays.problem import HostArrays, ProblemArrays, TaskArrays
from headrace.planners.batch.arrivals import return_seconds
from headrace.planners.batch.batch_schedule import (
    _affected_rows,
    _next_row,
    _place,
    _remove_row,
    _start_level,
    _update_arrivals,
)
from headrace.planners.batch.cluster_gap import measure_row, update_gap_keys
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    FREE_LINKS,
    MAXMIN,
    SUFFERAGE,
    Availability,
    Batch,
    HostGroups,
    ReadyTasks,
    TaskInputs,
)
from headrace.planners.batch.renewals import FIRST, least_key, until_renewal
from headrace.planners.constraint_state import (
    ConstraintState,
    earliest_with_limits,
    fits,
    note_running,
    take,
    unit_seconds,
)
from headrace.planners.partial_schedule import LINKS_FULL, NO_HOST, NO_ROUTE, OK, PartialSchedule

NO_CHOICE = -1e300
"""The key for SUFFERAGE of a task that has only one host left: it would lose everything."""


@entry
def constrained_batch_schedule(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, state: ConstraintState, levels: Int64s
) -> tuple[int, int]:
    """As `batch_schedule`; NO_HOST if no host fits for a task.

    O(n^2 * hosts * limits of a host) for n tasks of a level.
    """
    for level in range(len(levels) - 1):
        first, last = levels[level], levels[level + 1]
        _start_level(batch.inputs, batch.ready, first, last)
        outcome, task = _place_level(problem, schedule, batch, state, first, last)
        if outcome != OK:
            return outcome, task
    return OK, -1


@inner
def _place_level(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    batch: Batch,
    state: ConstraintState,
    first: int,
    last: int,
) -> tuple[int, int]:
    """Place the tasks first .. last - 1 of `ready.task`."""
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    links, copies, transfers, placement = (
        schedule.links,
        schedule.copies,
        schedule.transfers,
        schedule.placement,
    )
    groups, inputs, available, ready = batch.groups, batch.inputs, batch.available, batch.ready
    k, sent = -1, transfers.used[0]
    wait, exact = 0, batch.exact[min(first, 1)]
    for left in range(last - first, 0, -1):
        renewed = wait == 0
        if renewed:
            wait = until_renewal(left, exact)
            _renew_rows(problem, schedule, batch, state, first, left, k, sent)
        for _ in range(0 if renewed else FIRST):
            row = least_key(ready, left)
            if ready.renewed[row] == ready.steps[0]:
                break
            _renew_row(problem, schedule, batch, state, first, row)
        wait -= 1
        row = _next_row(batch.tolerance, batch.seed, ready, ready.task[first:last], left)
        if not renewed:
            _renew_row(problem, schedule, batch, state, first, row)
        if full(links):
            return LINKS_FULL, -1
        task = ready.task[first + row]
        host = _best_host(tasks, hosts, groups, inputs, available, ready, state, row, task)
        if host < 0:
            return (NO_ROUTE if _any_fits(tasks, hosts, state, task) else NO_HOST), task
        _remove_row(ready, task, row, left)
        sent = transfers.used[0]
        if state.timed[task]:  # so that `_place` does not start it before the limits permit
            inputs.released[task] = _start(
                tasks,
                hosts,
                inputs,
                available,
                state,
                task,
                host,
                ready.arrival[groups.host_place[host], row],
            )
        _place(
            tasks, hosts, network, links, copies, transfers, placement, groups, inputs, available, task, host
        )
        take(state, tasks, hosts, state.unit[task], host)
        if state.timed[task]:
            note_running(state, task, host, placement.start[task], placement.finish[task])
        if renewed and wait == 0:
            k = groups.host_place[host]
        else:  # more has changed than by this task
            k, sent = -1, transfers.used[0]
    return (LINKS_FULL if full(links) else OK), -1


@inner
def _renew_rows(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    batch: Batch,
    state: ConstraintState,
    first: int,
    left: int,
    k: int,
    sent: int,
) -> None:
    """Renew all rows after a task was placed at place k with transfers from number `sent` on; k = -1: at any time."""
    tasks, network, transfers = problem.tasks, problem.network, schedule.transfers
    groups, inputs, ready = batch.groups, batch.inputs, batch.ready
    here = _affected_rows(
        tasks, network.origin, groups.network, inputs, ready, transfers, first, left, k, sent
    )
    if k >= 0 and transfers.used[0] > sent and groups.network != FREE_LINKS:
        _set_arrivals(problem, schedule, batch, ready.rows_here[:here], first, k)
    for other in range(len(groups.places) if here < left else 0):
        _set_arrivals(problem, schedule, batch, ready.rows_anywhere[: left - here], first, other)
    for i in range(left):
        _update_row(
            batch.rule,
            tasks,
            problem.hosts,
            groups,
            inputs,
            batch.available,
            ready,
            state,
            first,
            ready.unplaced[i],
        )
    if batch.rule >= CLUSTER_SUFFERAGE:
        update_gap_keys(batch.rule, batch.tolerance, groups, ready, left)


@inner
def _renew_row(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    batch: Batch,
    state: ConstraintState,
    first: int,
    row: int,
) -> None:
    """Renew one row."""
    groups, ready = batch.groups, batch.ready
    ready.rows_anywhere[0] = row
    for k in range(len(groups.places)):
        _set_arrivals(problem, schedule, batch, ready.rows_anywhere[:1], first, k)
    _update_row(
        batch.rule,
        problem.tasks,
        problem.hosts,
        groups,
        batch.inputs,
        batch.available,
        ready,
        state,
        first,
        row,
    )
    if batch.rule >= CLUSTER_SUFFERAGE:
        measure_row(batch.rule, groups, ready, row)
    ready.renewed[row] = ready.steps[0]


@inner
def _set_arrivals(
    problem: ProblemArrays, schedule: PartialSchedule, batch: Batch, rows: Int64s, first: int, k: int
) -> None:
    _update_arrivals(
        problem.tasks,
        problem.network,
        schedule.links,
        schedule.copies,
        schedule.transfers,
        batch.groups,
        batch.inputs,
        batch.ready,
        rows,
        first,
        k,
    )


@inner
def _any_fits(tasks: TaskArrays, hosts: HostArrays, state: ConstraintState, task: int) -> bool:
    found = False
    for host in range(len(hosts.place)):
        found = found or fits(state, tasks, hosts, state.unit[task], host)
    return found


@inner
def _start(
    tasks: TaskArrays,
    hosts: HostArrays,
    inputs: TaskInputs,
    available: Availability,
    state: ConstraintState,
    task: int,
    host: int,
    arrival: float,
) -> float:
    """When a task could start on a host if it were placed next."""
    start = max(arrival, available.host[inputs.cores_class[task], host])
    if state.timed[task] and start < np.inf:
        duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
        start = earliest_with_limits(state, task, host, start, duration)
    return start


@inner
def _completion(
    tasks: TaskArrays,
    hosts: HostArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    state: ConstraintState,
    task: int,
    host: int,
    arrival: float,
) -> float:
    """Completion time of a task on a host, and for the first task of a unit that of its other tasks after it."""
    unit = state.unit[task]
    duration = tasks.work[task] / hosts.rate[tasks.speed_class[task], host]
    start = _start(tasks, hosts, inputs, available, state, task, host, arrival)
    end = start + duration + return_seconds(groups, inputs, task, groups.host_place[host])
    members = state.unit_ptr[unit + 1] - state.unit_ptr[unit]
    if members > 1 and state.host[unit] < 0:
        others = unit_seconds(state, tasks, hosts, unit, host) - duration
        end += others / min(members - 1, hosts.core_ptr[host + 1] - hosts.core_ptr[host])
    return end


@inner
def _update_row(
    rule: int,
    tasks: TaskArrays,
    hosts: HostArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    state: ConstraintState,
    first: int,
    row: int,
) -> None:
    """Recompute the completion times of a row, and its key: O(hosts * limits of a host)."""
    task = ready.task[first + row]
    unit = state.unit[task]
    for k in range(len(groups.places)):
        ready.time[k, row] = np.inf
    best, second = np.inf, np.inf
    for host in range(len(hosts.place)):
        if not state.free[unit] and not fits(state, tasks, hosts, unit, host):
            continue
        k = groups.host_place[host]
        if ready.arrival[k, row] == np.inf:
            continue
        time = _completion(tasks, hosts, groups, inputs, available, state, task, host, ready.arrival[k, row])
        ready.time[k, row] = min(ready.time[k, row], time)
        second = min(second, max(time, best))
        best = min(best, time)
    ready.best[row] = best
    ready.drift[row] = np.inf
    if rule == SUFFERAGE:
        ready.key[row] = best - second if second < np.inf else NO_CHOICE
    elif rule < CLUSTER_SUFFERAGE:
        ready.key[row] = -best if rule == MAXMIN else best


@inner
def _best_host(
    tasks: TaskArrays,
    hosts: HostArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    state: ConstraintState,
    row: int,
    task: int,
) -> int:
    """The lowest-numbered host with the best completion time of a row; -1 if no host can run it."""
    unit, chosen, best = state.unit[task], -1, np.inf
    for host in range(len(hosts.place)):
        arrival = ready.arrival[groups.host_place[host], row]
        if arrival == np.inf or not (state.free[unit] or fits(state, tasks, hosts, unit, host)):
            continue
        time = _completion(tasks, hosts, groups, inputs, available, state, task, host, arrival)
        if time < best:
            chosen, best = host, time
    return chosen
