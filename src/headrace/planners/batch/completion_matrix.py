"""Sweeps on a STAR: completion times of all ready tasks, one place at a time.

If every task of a level gets its inputs from the origin, placing a task changes the completion times only at its own
place: transfers to it finish later, and one of its hosts is busy. So only one column of the matrix of completion times
is recomputed, for all tasks at once, by additions and comparisons of arrays; all divisions are done in advance. Rows of
placed tasks are removed from time to time.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar
from headrace.arrays.compiling import inner
from headrace.arrays.problem import TaskArrays
from headrace.model.graph import Floats
from headrace.planners.batch.arrivals import packed_until, return_seconds
from headrace.planners.batch.cluster_gap import SLACK, measure_row
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    MAXMIN,
    MINMIN,
    SUFFERAGE,
    Availability,
    HostGroups,
    ReadyTasks,
    SweepMatrix,
    TaskInputs,
)
from headrace.planners.partial_schedule import Transfers

TILE = 1024
"""Number of rows updated together, so that intermediate values stay in the CPU cache."""
_FEW = 16
"""Fewer rows than this are not worth removing."""


@inner
def fill_matrix(
    tasks: TaskArrays, groups: HostGroups, inputs: TaskInputs, sweep: SweepMatrix, count: int
) -> None:
    """Fill the matrix for the first `count` of `sweep.task`: O(count * (places * inputs + groups))."""
    sweep.width[0] = count
    for g in range(sweep.run_seconds.shape[0]):
        rate, seconds = groups.group_rate[:, g], sweep.run_seconds[g]
        for row in range(count):
            task = sweep.task[row]
            seconds[row] = tasks.work[task] / rate[tasks.speed_class[task]]
    for k in range(len(groups.places)):
        for row in range(count):
            sweep.return_seconds[k, row] = return_seconds(groups, inputs, sweep.task[row], k)
            sweep.held[k, row] = 0.0
            _fill_send_seconds(tasks, groups, inputs, sweep, k, row)


@inner
def _fill_send_seconds(
    tasks: TaskArrays, groups: HostGroups, inputs: TaskInputs, sweep: SweepMatrix, k: int, row: int
) -> None:
    """Compute how long each input of a task that is not yet at place k keeps its link busy; the last, until it arrives.

    Inputs that are present cost 0. If no input has to be sent, the bookings of the link do not matter.
    """
    seconds, task, held = sweep.send_seconds, sweep.task[row], sweep.held
    latency, bandwidth, first = groups.in_latency[k], groups.in_bandwidth[k], inputs.ptr[task]
    last = -1
    for j in range(seconds.shape[0]):
        seconds[j, k, row] = 0.0
        i = first + j
        if i >= inputs.ptr[task + 1] or groups.in_link[k] < 0:
            continue
        since = inputs.since[k, inputs.column[i]] if inputs.column[i] >= 0 else np.inf
        if since < np.inf:
            held[k, row] = max(held[k, row], since)
        else:
            seconds[j, k, row] = groups.busy_latency[k] + tasks.size[inputs.item[i]] / bandwidth
            last = j
    if last < 0:
        seconds[0, k, row] = -np.inf
    else:
        seconds[last, k, row] = latency + tasks.size[inputs.item[first + last]] / bandwidth


@inner
def note_arrivals(
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    transfers: Transfers,
    k: int,
    sent: int,
) -> None:
    """Record that items sent to place k by transfers from number `sent` on need not be sent there again."""
    for transfer in range(sent, transfers.used[0]):
        item = transfers.item[transfer]
        for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            row = ready.row[tasks.readers[i]]
            if row >= 0:
                _fill_send_seconds(tasks, groups, inputs, sweep, k, row)


@inner
def update_column(
    rule: int,
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    links: Calendar,
    k: int,
) -> None:
    """Update the completion times of all rows at place k, and their keys, except under rules over clusters.

    O(rows * (inputs + groups of the place + sqrt(places))).
    """
    end, width = packed_until(links, groups.in_link[k]), sweep.width[0]
    for low in range(0, width, TILE):
        high = min(low + TILE, width)
        _completion_times(rule, groups, available, ready, sweep, k, end, low, high)
        if rule == SUFFERAGE:
            _two_best(ready, sweep, k, low, high)
        elif rule <= MAXMIN:
            _best(rule, ready, sweep, k, low, high)
    sweep.changed[k] = False


@inner
def renew_sweep_row(
    rule: int,
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    links: Calendar,
    row: int,
) -> None:
    """Update the completion times of one row, and its key: O(places * inputs + groups)."""
    best, second = np.inf, np.inf
    for k in range(len(groups.places)):
        if sweep.changed[k]:
            end = packed_until(links, groups.in_link[k])
            _completion_times(rule, groups, available, ready, sweep, k, end, row, row + 1)
        time = ready.time[k, row]
        if rule == SUFFERAGE:
            second = min(second, ready.next_time[k, row], max(time, best))
        best = min(best, time)
    if rule >= CLUSTER_SUFFERAGE:
        measure_row(rule, groups, ready, row)
    elif rule == SUFFERAGE:
        ready.key[row] = best - second if second < np.inf else 0.0
    else:
        ready.key[row] = best if rule == MINMIN else -best
    ready.best[row], ready.second[row], ready.renewed[row] = best, second, ready.steps[0]


@inner
def _completion_times(
    rule: int,
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    k: int,
    end: float,
    low: int,
    high: int,
) -> None:
    """Completion times on the best host of a place and, for SUFFERAGE, on the second best."""
    count = high - low
    arrival, new, after = sweep.arrival[:count], sweep.new[:count], sweep.after[:count]
    first, held, back = (
        sweep.send_seconds[0, k, low:high],
        sweep.held[k, low:high],
        sweep.return_seconds[k, low:high],
    )
    for i in range(count):
        arrival[i] = end + first[i]
    for j in range(1, sweep.send_seconds.shape[0]):
        send = sweep.send_seconds[j, k, low:high]
        for i in range(count):
            arrival[i] += send[i]
    for i in range(count):
        arrival[i] = max(arrival[i], held[i])
        new[i] = np.inf
        after[i] = np.inf
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        seconds, soonest, next_host = (
            sweep.run_seconds[g, low:high],
            available.first[0, g],
            available.second[0, g],
        )
        if rule == SUFFERAGE:
            for i in range(count):
                time = max(arrival[i], soonest) + seconds[i] + back[i]
                other = max(arrival[i], next_host) + seconds[i] + back[i]
                after[i] = min(min(after[i], other), max(time, new[i]))
                new[i] = min(new[i], time)
        else:
            for i in range(count):
                new[i] = min(new[i], max(arrival[i], soonest) + seconds[i] + back[i])
    times = ready.time[k, low:high]
    if rule >= CLUSTER_SUFFERAGE:
        _update_drift(new, times, ready.measured_time[k, low:high], ready.drift[low:high])
    times[:] = new
    if rule == SUFFERAGE:
        ready.next_time[k, low:high] = after


@inner
def _update_drift(new: Floats, times: Floats, measured: Floats, drift: Floats) -> None:
    """Update how far times have moved since they were measured.

    If times only grow, the i-th smallest grows by at most the largest increase, so no gap between neighbours changes by
    more than that; if a time shrinks, there is no limit.
    """
    for i in range(len(new)):
        grown = (new[i] - measured[i]) * (1.0 + SLACK) if new[i] >= times[i] else np.inf
        drift[i] = max(drift[i], grown if new[i] != times[i] else 0.0)


@inner
def _best(rule: int, ready: ReadyTasks, sweep: SweepMatrix, k: int, low: int, high: int) -> None:
    """Update the smallest time of the block of places that contains k, and of all blocks."""
    size, places = sweep.block, ready.time.shape[0]
    best = ready.best[low:high]
    first = k - k % size
    least = sweep.block_best[k // size, low:high]
    least[:] = ready.time[first, low:high]
    for other in range(first + 1, min(first + size, places)):
        times = ready.time[other, low:high]
        for i in range(high - low):
            least[i] = min(least[i], times[i])
    best[:] = sweep.block_best[0, low:high]
    for block in range(1, sweep.block_best.shape[0]):
        times = sweep.block_best[block, low:high]
        for i in range(high - low):
            best[i] = min(best[i], times[i])
    key, sign = ready.key[low:high], 1.0 if rule == MINMIN else -1.0
    for i in range(high - low):
        key[i] = sign * best[i]


@inner
def _two_best(ready: ReadyTasks, sweep: SweepMatrix, k: int, low: int, high: int) -> None:
    """Update the two smallest times of the block of places that contains k, and of all blocks."""
    size, places = sweep.block, ready.time.shape[0]
    first, block = k - k % size, k // size
    best, second, key = ready.best[low:high], ready.second[low:high], ready.key[low:high]
    block_best, block_second = sweep.block_best, sweep.block_second
    last = min(first + size, places)
    _two_least(
        ready.time,
        ready.next_time,
        first,
        last,
        low,
        block_best[block, low:high],
        block_second[block, low:high],
    )
    _two_least(block_best, block_second, 0, block_best.shape[0], low, best, second)
    for i in range(high - low):
        key[i] = best[i] - second[i] if second[i] < np.inf else 0.0


@inner
def _two_least(
    leasts: Floats, nexts: Floats, first: int, last: int, low: int, best: Floats, second: Floats
) -> None:
    """The two smallest values in the rows first .. last - 1 of two matrices, for columns from `low` on."""
    high = low + len(best)
    best[:] = leasts[first, low:high]
    second[:] = nexts[first, low:high]
    for other in range(first + 1, last):
        least, after = leasts[other, low:high], nexts[other, low:high]
        for i in range(len(best)):
            second[i] = min(min(second[i], after[i]), max(best[i], least[i]))
            best[i] = min(best[i], least[i])


@inner
def best_sweep_host(
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    links: Calendar,
    row: int,
) -> int:
    """The lowest-numbered host with the best completion time of a row; -1 if no host can run it: O(hosts * inputs)."""
    best = np.inf
    for k in range(ready.time.shape[0]):
        best = min(best, ready.time[k, row])
    for host in range(available.host.shape[1] if best < np.inf else 0):
        k = groups.host_place[host]
        if ready.time[k, row] != best:
            continue
        arrival = packed_until(links, groups.in_link[k]) + sweep.send_seconds[0, k, row]
        for j in range(1, sweep.send_seconds.shape[0]):
            arrival += sweep.send_seconds[j, k, row]
        start = max(max(arrival, sweep.held[k, row]), available.host[0, host])
        if start + sweep.run_seconds[groups.host_group[host], row] + sweep.return_seconds[k, row] == best:
            return host
    return -1


@inner
def remove_placed_rows(ready: ReadyTasks, sweep: SweepMatrix, left: int) -> None:
    """Remove the rows of placed tasks once they are a quarter of all rows; the others stay in order."""
    width = sweep.width[0]
    if width < _FEW or 4 * left > 3 * width:
        return
    for i in range(left):
        row = ready.unplaced[i]
        sweep.task[i] = sweep.task[row]
        ready.row[sweep.task[i]] = i
        for values in (
            ready.best,
            ready.second,
            ready.key,
            ready.tie,
            ready.gap,
            ready.clusters_before,
            ready.largest_gap,
            ready.position_slack,
            ready.height_slack,
            ready.drift,
        ):
            values[i] = values[row]
    for matrix in (
        sweep.run_seconds,
        sweep.return_seconds,
        sweep.held,
        ready.time,
        ready.next_time,
        ready.measured_time,
        sweep.block_best,
        sweep.block_second,
    ):
        _keep_unplaced(ready, matrix, left)
    for j in range(sweep.send_seconds.shape[0]):
        _keep_unplaced(ready, sweep.send_seconds[j], left)
    for i in range(left):
        ready.unplaced[i] = i
    sweep.width[0] = left


@inner
def _keep_unplaced(ready: ReadyTasks, matrix: Floats, left: int) -> None:
    """Move the columns of unplaced rows to the front."""
    unplaced = ready.unplaced
    if matrix.shape[1] == 0:
        return
    for r in range(matrix.shape[0]):
        values = matrix[r]
        for i in range(left):
            values[i] = values[unplaced[i]]
