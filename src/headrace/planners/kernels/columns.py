"""Sweeps on a STAR: completion times of all ready tasks, a place at a time.

While every task of a wave takes its inputs from the origin, a placed task changes the completion times at its
own place and nowhere else: what is sent there ends later, and one of its hosts is busy. So one column of the
matrix of completion times is computed again, for all tasks at once, by additions and comparisons of arrays;
everything that is divided is divided beforehand. Rows of tasks that are placed are squeezed out now and then.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.planners.kernels.batch_arrays import FIRST_JUMP, MAXMIN, MINMIN, SUFFERAGE
from headrace.planners.kernels.batch_arrivals import packed_until
from headrace.planners.kernels.jumps import SLACK

TILE = 1024
"""Rows that go through all steps of a renewal together, so that what is between them stays in the cache."""
_FEW = 16
"""Fewer rows than this are not worth squeezing."""


@inner
def open_columns(grid, tasks, inputs, wave, columns, count):
    """Fill the columns for the first `count` tasks of the wave: O(count * (places * inputs + groups))."""
    columns.width[0] = count
    for row in range(count):
        columns.task[row] = wave.task[row]
    for g in range(columns.seconds.shape[0]):
        rate, seconds = grid.group_rate[:, g], columns.seconds[g]
        for row in range(count):
            task = columns.task[row]
            seconds[row] = tasks.work[task] / rate[tasks.kind[task]]
    for k in range(len(grid.places)):
        latency, bandwidth = grid.back_latency[k], grid.back_bandwidth[k]
        for row in range(count):
            size = inputs.out_size[columns.task[row]]
            columns.back[k, row] = latency + size / bandwidth if size > 0.0 else 0.0
            columns.held[k, row] = 0.0
            _fill_costs(grid, tasks, inputs, columns, k, row)


@inner
def _fill_costs(grid, tasks, inputs, columns, k, row):
    """How long each input of a task that is not at place k yet keeps its link busy.

    Those that are there cost 0, which changes no sum. If nothing is to be sent, what is sent does not count.
    """
    cost, task = columns.cost, columns.task[row]
    latency, bandwidth, first = grid.in_latency[k], grid.in_bandwidth[k], inputs.ptr[task]
    missing = 0
    for j in range(cost.shape[0]):
        cost[j, k, row] = 0.0
        i = first + j
        if i >= inputs.ptr[task + 1] or grid.in_link[k] < 0:
            continue
        since = inputs.since[k, inputs.shared[i]] if inputs.shared[i] >= 0 else np.inf
        if since < np.inf:
            columns.held[k, row] = max(columns.held[k, row], since)
        else:
            cost[j, k, row] = latency + tasks.size[inputs.item[i]] / bandwidth
            missing += 1
    if missing == 0:
        cost[0, k, row] = -np.inf


@inner
def note_arrivals(grid, tasks, inputs, wave, columns, moves, k, made):
    """Items that moves from `made` on brought to place k are not sent there again."""
    for move in range(made, moves.count[0]):
        item = moves.item[move]
        for i in range(inputs.reader_ptr[item], inputs.reader_ptr[item + 1]):
            row = wave.row[inputs.readers[i]]
            if row >= 0:
                _fill_costs(grid, tasks, inputs, columns, k, row)


@inner
def renew_column(rule, grid, free, wave, columns, calendar, k):
    """Completion times of all rows at place k, and what follows for their keys.

    O(rows * (inputs + groups of the place + sqrt(places))).
    """
    end, width = packed_until(calendar, grid.in_link[k]), columns.width[0]
    for low in range(0, width, TILE):
        high = min(low + TILE, width)
        _times(rule, grid, free, wave, columns, k, end, low, high)
        if rule == SUFFERAGE:
            _two_best(wave, columns, k, low, high)
        elif rule <= MAXMIN:
            _best(rule, wave, columns, k, low, high)


@inner
def _times(rule, grid, free, wave, columns, k, end, low, high):
    """Completion on the best host of a place and, for SUFFERAGE, on the next best."""
    count = high - low
    arrival, new, after = columns.arrival[:count], columns.new[:count], columns.after[:count]
    first, held, back = columns.cost[0, k, low:high], columns.held[k, low:high], columns.back[k, low:high]
    for i in range(count):
        arrival[i] = end + first[i]
    for j in range(1, columns.cost.shape[0]):
        cost = columns.cost[j, k, low:high]
        for i in range(count):
            arrival[i] += cost[i]
    for i in range(count):
        arrival[i] = max(arrival[i], held[i])
        new[i] = np.inf
        after[i] = np.inf
    for g in range(grid.place_group[k], grid.place_group[k + 1]):
        seconds, soonest, next_host = columns.seconds[g, low:high], free.first[g], free.second[g]
        if rule == SUFFERAGE:
            for i in range(count):
                time = max(arrival[i], soonest) + seconds[i] + back[i]
                other = max(arrival[i], next_host) + seconds[i] + back[i]
                after[i] = min(min(after[i], other), max(time, new[i]))
                new[i] = min(new[i], time)
        else:
            for i in range(count):
                new[i] = min(new[i], max(arrival[i], soonest) + seconds[i] + back[i])
    times = wave.time[k, low:high]
    if rule >= FIRST_JUMP:
        _drift(new, times, wave.seen[k, low:high], wave.drift[low:high])
    times[:] = new
    if rule == SUFFERAGE:
        wave.next_time[k, low:high] = after


@inner
def _drift(new, times, seen, drift):
    """How far times have moved. Where they only grow, the i-th smallest grows by at most the most that any grew,
    and so no difference of neighbours moves by more; where one shrinks, all is open.
    """
    for i in range(len(new)):
        grown = (new[i] - seen[i]) * (1.0 + SLACK) if new[i] >= times[i] else np.inf
        drift[i] = max(drift[i], grown if new[i] != times[i] else 0.0)


@inner
def _best(rule, wave, columns, k, low, high):
    """The least time of the block of places that k is in, and of all blocks."""
    size, places = columns.block, wave.time.shape[0]
    best = wave.best[low:high]
    first = k - k % size
    least = columns.block_best[k // size, low:high]
    least[:] = wave.time[first, low:high]
    for other in range(first + 1, min(first + size, places)):
        times = wave.time[other, low:high]
        for i in range(high - low):
            least[i] = min(least[i], times[i])
    best[:] = columns.block_best[0, low:high]
    for block in range(1, columns.block_best.shape[0]):
        times = columns.block_best[block, low:high]
        for i in range(high - low):
            best[i] = min(best[i], times[i])
    key, sign = wave.key[low:high], 1.0 if rule == MINMIN else -1.0
    for i in range(high - low):
        key[i] = sign * best[i]


@inner
def _two_best(wave, columns, k, low, high):
    """The two least times of the block of places that k is in, and of all blocks."""
    size, places = columns.block, wave.time.shape[0]
    first, block = k - k % size, k // size
    _merge(
        wave.time, wave.next_time, first, min(first + size, places),
        columns.block_best[block], columns.block_second[block], low, high,
    )  # fmt: skip
    blocks = columns.block_best.shape[0]
    _merge(columns.block_best, columns.block_second, 0, blocks, wave.best, wave.second, low, high)
    best, second, key = wave.best[low:high], wave.second[low:high], wave.key[low:high]
    for i in range(high - low):
        key[i] = best[i] - second[i] if second[i] < np.inf else 0.0


@inner
def _merge(leasts, nexts, first, last, best, second, low, high):
    """The two least of all values in the rows first .. last - 1 of two matrices."""
    one, two = best[low:high], second[low:high]
    one[:] = leasts[first, low:high]
    two[:] = nexts[first, low:high]
    for other in range(first + 1, last):
        least, after = leasts[other, low:high], nexts[other, low:high]
        for i in range(high - low):
            two[i] = min(min(two[i], after[i]), max(one[i], least[i]))
            one[i] = min(one[i], least[i])


@inner
def best_host_of(m, grid, free, wave, columns, calendar, row):
    """The lowest host with the best completion time of a row, or -1 if it can run nowhere: O(hosts * inputs)."""
    best = np.inf
    for k in range(wave.time.shape[0]):
        best = min(best, wave.time[k, row])
    for host in range(len(free.host) if best < np.inf else 0):
        k = grid.host_place[host]
        if wave.time[k, row] != best:
            continue
        arrival = packed_until(calendar, grid.in_link[k]) + columns.cost[0, k, row]
        for j in range(1, columns.cost.shape[0]):
            arrival += columns.cost[j, k, row]
        begin = max(max(arrival, columns.held[k, row]), free.host[host])
        if begin + columns.seconds[grid.host_group[host], row] + columns.back[k, row] == best:
            return host
    return -1


@inner
def squeeze(wave, columns, left):
    """Leave out rows that are placed, once they are a quarter of all; the others stay in order."""
    width = columns.width[0]
    if width < _FEW or 4 * left > 3 * width:
        return
    for i in range(left):
        row = wave.live[i]
        columns.task[i] = columns.task[row]
        wave.row[columns.task[i]] = i
        for values in (
            wave.best,
            wave.second,
            wave.key,
            wave.tie,
            wave.largest,
            wave.margin,
            wave.firm,
            wave.drift,
            wave.before,
        ):
            values[i] = values[row]
    for matrix in (columns.seconds, columns.back, columns.held, wave.time, wave.next_time, wave.seen,
                   columns.block_best, columns.block_second):  # fmt: skip
        _squeeze_matrix(wave, matrix, left)
    for j in range(columns.cost.shape[0]):
        _squeeze_matrix(wave, columns.cost[j], left)
    for i in range(left):
        wave.live[i] = i
    columns.width[0] = left


@inner
def _squeeze_matrix(wave, matrix, left):
    live = wave.live
    if matrix.shape[1] == 0:
        return
    for r in range(matrix.shape[0]):
        values = matrix[r]
        for i in range(left):
            values[i] = values[live[i]]
