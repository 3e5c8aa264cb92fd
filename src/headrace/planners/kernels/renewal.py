"""Completion times of ready tasks at one place, and the keys that follow from them."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.planners.kernels.batch_arrays import FIRST_JUMP, MAXMIN, MINMIN, SUFFERAGE
from headrace.planners.kernels.jumps import SLACK


@inner
def renew(rule, grid, tasks, inputs, free, wave, rows, count, first, k):
    """Completion times of these rows at place k, and what follows for their keys.

    Arrays are named before the loop and nothing is called in it: this is where the time goes.
    """
    if rule == SUFFERAGE:
        _renew_two(grid, tasks, inputs, free, wave, rows, count, first, k)
        return
    arrival, times, task_of, best = wave.arrival, wave.time, wave.task, wave.best
    key, drift = wave.key, wave.drift
    work, kind, rate, out_size = tasks.work, tasks.kind, grid.group_rate, inputs.out_size
    free_first, first_group, last_group = free.first, grid.place_group[k], grid.place_group[k + 1]
    latency, bandwidth = grid.back_latency[k], grid.back_bandwidth[k]
    for i in range(count):
        row = rows[i]
        task = task_of[first + row]
        back = latency + out_size[task] / bandwidth if out_size[task] > 0.0 else 0.0
        new = np.inf
        for g in range(first_group, last_group):
            new = min(new, max(arrival[k, row], free_first[g]) + work[task] / rate[kind[task], g] + back)
        old = times[k, row]
        if new == old:
            continue
        times[k, row] = new
        if rule >= FIRST_JUMP:
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


@inner
def _renew_two(grid, tasks, inputs, free, wave, rows, count, first, k):
    """As `renew`, with the second best host of the place and of the row."""
    arrival, times, nexts, task_of = wave.arrival, wave.time, wave.next_time, wave.task
    best, second, key = wave.best, wave.second, wave.key
    work, kind, rate, out_size = tasks.work, tasks.kind, grid.group_rate, inputs.out_size
    free_first, free_second = free.first, free.second
    first_group, last_group = grid.place_group[k], grid.place_group[k + 1]
    latency, bandwidth = grid.back_latency[k], grid.back_bandwidth[k]
    for i in range(count):
        row = rows[i]
        task = task_of[first + row]
        ready = arrival[k, row]
        back = latency + out_size[task] / bandwidth if out_size[task] > 0.0 else 0.0
        new, new_next = np.inf, np.inf
        for g in range(first_group, last_group):
            duration = work[task] / rate[kind[task], g]
            time = max(ready, free_first[g]) + duration + back
            other = max(ready, free_second[g]) + duration + back
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
            for other in range(times.shape[0]):
                after = min(after, nexts[other, row], max(times[other, row], least))
                least = min(least, times[other, row])
            best[row], second[row] = least, after
        key[row] = best[row] - second[row] if second[row] < np.inf else 0.0
