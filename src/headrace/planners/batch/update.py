"""Completion times of ready tasks at one place, and the keys that follow from them."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import leaf
from headrace.arrays.problem import TaskArrays
from headrace.planners.batch.cluster_gap import SLACK
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    MAXMIN,
    MINMIN,
    SUFFERAGE,
    Availability,
    HostGroups,
    ReadyTasks,
    TaskInputs,
)


@leaf
def update_rows(
    rule: int,
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    rows: Int64s,
    first: int,
    k: int,
) -> None:
    """Update the completion times of these rows at place k, and their keys.

    This is the hottest loop: arrays are taken out of their records before it, and it makes no calls.
    """
    if rule == SUFFERAGE:
        _update_two_best(tasks, groups, inputs, available, ready, rows, first, k)
        return
    arrival, times, task_of, best = ready.arrival, ready.time, ready.task, ready.best
    key, drift = ready.key, ready.drift
    work, speed_class, rate, result = tasks.work, tasks.speed_class, groups.group_rate, inputs.largest_result
    free, first_group, last_group = available.first, groups.place_group[k], groups.place_group[k + 1]
    latency, bandwidth = groups.back_latency[k], groups.back_bandwidth[k]
    for row in rows:
        task = task_of[first + row]
        back = latency + result[task] / bandwidth if result[task] > 0.0 else 0.0
        c, new = inputs.cores_class[task], np.inf
        for g in range(first_group, last_group):
            new = min(new, max(arrival[k, row], free[c, g]) + work[task] / rate[speed_class[task], g] + back)
        old = times[k, row]
        if new == old:
            continue
        times[k, row] = new
        if rule >= CLUSTER_SUFFERAGE:
            drift[row] += abs(new - old) * (1.0 + SLACK)
        if new < best[row]:
            best[row] = new
        elif old == best[row]:
            least = np.inf
            for other in range(times.shape[0]):
                least = min(least, times[other, row])
            best[row] = least
        if rule == MINMIN:
            key[row] = best[row]
        elif rule == MAXMIN:
            key[row] = -best[row]


@leaf
def _update_two_best(
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    rows: Int64s,
    first: int,
    k: int,
) -> None:
    """As `update_rows`, also for the second best host of the place and of the row."""
    arrival, times, nexts, task_of = ready.arrival, ready.time, ready.next_time, ready.task
    best, second, key = ready.best, ready.second, ready.key
    work, speed_class, rate, result = tasks.work, tasks.speed_class, groups.group_rate, inputs.largest_result
    first_host, second_host = available.first, available.second
    first_group, last_group = groups.place_group[k], groups.place_group[k + 1]
    latency, bandwidth = groups.back_latency[k], groups.back_bandwidth[k]
    for row in rows:
        task = task_of[first + row]
        ready_at = arrival[k, row]
        back = latency + result[task] / bandwidth if result[task] > 0.0 else 0.0
        c, new, new_next = inputs.cores_class[task], np.inf, np.inf
        for g in range(first_group, last_group):
            duration = work[task] / rate[speed_class[task], g]
            time = max(ready_at, first_host[c, g]) + duration + back
            other = max(ready_at, second_host[c, g]) + duration + back
            new_next = min(new_next, other, max(time, new))
            new = min(new, time)
        old = times[k, row]
        times[k, row], nexts[k, row] = new, new_next
        if min(old, new) > second[row]:
            continue
        if old == np.inf:
            second[row] = min(second[row], new_next, max(new, best[row]))
            best[row] = min(best[row], new)
        else:
            least, after = np.inf, np.inf
            for place in range(times.shape[0]):
                after = min(after, nexts[place, row], max(times[place, row], least))
                least = min(least, times[place, row])
            best[row], second[row] = least, after
        key[row] = best[row] - second[row] if second[row] < np.inf else 0.0
