"""Batch-mode heuristics: among ready tasks the next one by a rule, to the host where it completes first.

Ready tasks are taken in waves (levels of the graph); a sweep is one wave. A wave keeps a matrix of completion
times, places by tasks. Placing a task changes the processors of one place and the links of its transfers, so
only the entries that depend on these are computed again.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.planners.kernels.arrays import NO_ROUTE, OK, POOL_FULL
from headrace.planners.kernels.batch_arrays import (
    FIRST_JUMP,
    FREE_LINKS,
    OWN_LINKS,
    STAR,
)
from headrace.planners.kernels.batch_arrivals import arrival_at, by_time, load_inputs
from headrace.planners.kernels.columns import (
    best_host_of,
    note_arrivals,
    open_columns,
    renew_column,
    squeeze,
)
from headrace.planners.kernels.jumps import find_jumps
from headrace.planners.kernels.renewal import renew
from headrace.planners.kernels.transfers import add_copy, fetch


@entry
def batch_schedule(
    rule,
    tolerance,
    seed,
    levels,
    tasks,
    m,
    grid,
    inputs,
    free,
    wave,
    columns,
    calendar,
    copies,
    moves,
    log,
    scratch,
    placed,
):
    """Place all tasks, level by level: `levels` are the offsets of the levels in `wave.task`.

    For n tasks of one level on P places, each step evaluates n columns of one place (STAR, FREE_LINKS and
    OWN_LINKS) or all P (SHARED_LINKS), and looks through n keys: O(n^2) or O(n^2 * P) evaluations; with
    `columns` these are a few additions each. Rules over C clusters order the clusters of rows that may be
    next, O(n * C) a step at worst.
    Returns OK, POOL_FULL (start over with larger calendars) or NO_ROUTE, and the task reached.
    """
    for level in range(len(levels) - 1):
        first, last = levels[level], levels[level + 1]
        _open_wave(inputs, wave, first, last)
        if level == 0 and len(columns.task) > 0:
            outcome, at = _place_sweep(
                rule, tolerance, seed, tasks, m, grid, inputs, free, wave, columns, calendar, copies, moves,
                log, scratch, placed, last,
            )  # fmt: skip
        else:
            outcome, at = _place_wave(
                rule, tolerance, seed, tasks, m, grid, inputs, free, wave, calendar, copies, moves, log,
                scratch, placed, first, last,
            )  # fmt: skip
        if outcome != OK:
            return outcome, at
    return (POOL_FULL if calendar.used[1] else OK), -1


@inner
def _place_wave(
    rule, tolerance, seed, tasks, m, grid, inputs, free, wave, calendar, copies, moves, log, scratch, placed,
    first, last,
):  # fmt: skip
    """Place the tasks first .. last - 1 of `wave.task`."""
    left = last - first
    k, made = np.int64(-1), moves.count[0]
    while left > 0:
        _refresh(
            rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch, first, left, k,
            made,
        )  # fmt: skip
        if calendar.used[1]:
            return POOL_FULL, -1
        if rule >= FIRST_JUMP:
            find_jumps(rule, tolerance, grid, wave, wave.live, left)
        row = _least(tolerance, seed, wave, wave.task[first:last], left)
        task = wave.task[first + row]
        if wave.best[row] == np.inf:
            return NO_ROUTE, task
        _take_out(wave, row, left)
        left -= 1
        wave.row[task] = -1
        host = _best_host(m, grid, tasks, inputs, free, wave, row, task)
        made = moves.count[0]
        _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host)
        k = grid.host_place[host]
    return OK, -1


@inner
def _place_sweep(
    rule, tolerance, seed, tasks, m, grid, inputs, free, wave, columns, calendar, copies, moves, log, scratch,
    placed, left,
):  # fmt: skip
    """As `_place_wave` for the first wave of a STAR whose tasks take all inputs from the origin."""
    open_columns(grid, tasks, inputs, wave, columns, left)
    # Backwards: the first column is renewed last, when all blocks of places have their values.
    for k in range(len(grid.places) - 1, -1, -1):
        renew_column(rule, grid, free, wave, columns, calendar, k)
    while left > 0:
        if rule >= FIRST_JUMP:
            find_jumps(rule, tolerance, grid, wave, wave.live, left)
        row = _least(tolerance, seed, wave, columns.task, left)
        task = columns.task[row]
        host = best_host_of(m, grid, free, wave, columns, calendar, row)
        if host < 0:
            return NO_ROUTE, task
        _take_out(wave, row, left)
        left -= 1
        wave.row[task] = -1
        made = moves.count[0]
        _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host)
        if calendar.used[1]:
            return POOL_FULL, task
        squeeze(wave, columns, left)
        k = grid.host_place[host]
        note_arrivals(grid, tasks, inputs, wave, columns, moves, k, made)
        renew_column(rule, grid, free, wave, columns, calendar, k)
    return OK, -1


@entry
def workqueue_schedule(order, tasks, m, grid, inputs, free, calendar, copies, moves, log, scratch, placed):
    """Tasks in this order, each to the host that is free first: O(tasks * hosts)."""
    refused = np.zeros(len(free.host), np.bool_)
    for task in order:
        by_time(inputs, task)
        refused[:] = False
        while True:
            host = np.int64(-1)
            for h in range(len(free.host)):
                if not refused[h] and (host < 0 or free.host[h] < free.host[host]):
                    host = h
            if host < 0:
                return (POOL_FULL if calendar.used[1] else NO_ROUTE), task
            k = grid.host_place[host]
            way = arrival_at(m, grid, tasks, inputs, copies, calendar, task, k, moves, log, scratch)
            if way < np.inf and _back(grid, inputs, task, k) < np.inf:
                break
            refused[host] = True
        _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host)
        if calendar.used[1]:
            return POOL_FULL, task
    return OK, -1


@inner
def _open_wave(inputs, wave, first, last):
    """Empty rows for the tasks first .. last - 1 of `wave.task`."""
    for row in range(last - first):
        task = wave.task[first + row]
        wave.row[task] = row
        wave.live[row] = row
        by_time(inputs, task)
        for k in range(wave.time.shape[0]):
            wave.time[k, row] = np.inf
        wave.best[row], wave.second[row], wave.drift[row] = np.inf, np.inf, np.inf
        wave.margin[row], wave.firm[row], wave.largest[row], wave.before[row] = 0.0, 0.0, 0.0, 0


@inner
def _back(grid, inputs, task, k):
    """How long the largest result takes to the origin on free links; inf: no route."""
    size = inputs.out_size[task]
    return grid.back_latency[k] + size / grid.back_bandwidth[k] if size > 0.0 else 0.0


@inner
def _refresh(
    rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch, first, left, k, made
):
    """Bring rows up to date after a task went to place k and moves from `made` on; k = -1: all is new."""
    moved = moves.count[0] > made
    here, rest = _split(m, grid, inputs, wave, moves, first, left, k, made)
    if k >= 0:
        if moved and grid.network != FREE_LINKS:
            for i in range(here):
                row = wave.here[i]
                task = wave.task[first + row]
                wave.arrival[k, row] = arrival_at(
                    m, grid, tasks, inputs, copies, calendar, task, k, moves, log, scratch
                )
        renew(rule, grid, tasks, inputs, free, wave, wave.here, here, first, k)
    if rest == 0:
        return
    for other in range(len(grid.places)):
        for i in range(rest):
            row = wave.rest[i]
            task = wave.task[first + row]
            wave.arrival[other, row] = arrival_at(
                m, grid, tasks, inputs, copies, calendar, task, other, moves, log, scratch
            )
        renew(rule, grid, tasks, inputs, free, wave, wave.rest, rest, first, other)


@inner
def _split(m, grid, inputs, wave, moves, first, left, k, made):
    """Write rows that only see a change at place k to `wave.here`, others to `wave.rest`; returns how many.

    Tasks that read what was just moved have a new source for it. Where links are shared, a transfer may delay
    others to anywhere, except on a STAR: there one from the origin delays only those to the same place.
    """
    live, task_of, touched, plain = wave.live, wave.task, wave.touched, inputs.plain
    into_here, into_rest = wave.here, wave.rest
    moved = moves.count[0] > made
    by_reader = moved and grid.network <= OWN_LINKS
    from_origin = moved and grid.network == STAR
    for move in range(made, moves.count[0]):
        from_origin = from_origin and moves.source[move] == m.origin
    if by_reader:
        _touch_readers(inputs, wave, moves, made, 1)
    here, rest = 0, 0
    for i in range(left):
        row = live[i]
        everywhere = k < 0 or moved
        if by_reader:
            everywhere = touched[row] > 0
        elif from_origin:
            everywhere = not plain[task_of[first + row]]
        if everywhere:
            into_rest[rest] = row
            rest += 1
        else:
            into_here[here] = row
            here += 1
    if by_reader:
        _touch_readers(inputs, wave, moves, made, 0)
    return here, rest


@inner
def _touch_readers(inputs, wave, moves, made, value):
    """Mark the rows of tasks that read an item moved since `made`."""
    for move in range(made, moves.count[0]):
        item = moves.item[move]
        for i in range(inputs.reader_ptr[item], inputs.reader_ptr[item + 1]):
            row = wave.row[inputs.readers[i]]
            if row >= 0:
                wave.touched[row] = value


@inner
def _least(tolerance, seed, wave, task_of, count):
    """Of the first `count` live rows the one with the least key, or one drawn among those near it."""
    rows, key, tie = wave.live, wave.key, wave.tie
    chosen = rows[0]
    for i in range(1, count):
        row = rows[i]
        if key[row] < key[chosen] or (key[row] == key[chosen] and tie[row] < tie[chosen]):
            chosen = row
    if tolerance < 0.0:
        return chosen
    limit = key[chosen] + tolerance * abs(key[chosen])
    least, drawn = np.uint64(0xFFFFFFFFFFFFFFFF), chosen
    for i in range(count):
        if key[rows[i]] <= limit:
            lot = _lot(seed, wave.steps[0], task_of[rows[i]])
            if lot < least:
                drawn, least = rows[i], lot
    return drawn


@inner
def _take_out(wave, row, left):
    """Remove a row from those that are left; they stay in order."""
    low, high = 0, left
    while low < high:
        middle = (low + high) // 2
        if wave.live[middle] < row:
            low = middle + 1
        else:
            high = middle
    for i in range(low, left - 1):
        wave.live[i] = wave.live[i + 1]
    wave.steps[0] += 1


@inner
def _lot(seed, step, task):
    """A number for each seed, step and task (splitmix64): the least of several is an even draw."""
    x = np.uint64(seed)
    for part in (step, task):
        x = x + np.uint64(part) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


@inner
def _best_host(m, grid, tasks, inputs, free, wave, row, task):
    """The lowest host with the best completion time of the row: O(hosts)."""
    for host in range(len(free.host)):
        k = grid.host_place[host]
        if wave.time[k, row] == wave.best[row]:
            duration = tasks.work[task] / m.rate[tasks.kind[task], host]
            begin = max(wave.arrival[k, row], free.host[host])
            if begin + duration + _back(grid, inputs, task, k) == wave.best[row]:
                return host
    return -1


@inner
def _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host):
    """Book the transfers of a task and append it to a core of a host."""
    k = grid.host_place[host]
    place = grid.places[k]
    made = moves.count[0]
    count = load_inputs(inputs, task, scratch)
    arrival = fetch(m, tasks, copies, calendar, count, place, scratch, log, moves, np.bool_(True))
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        if made < moves.count[0] and moves.item[made] == inputs.item[i]:
            if inputs.shared[i] >= 0:
                inputs.since[k, inputs.shared[i]] = moves.finish[made]
            made += 1
    arrival = max(arrival, inputs.released[task])
    chosen = m.core_ptr[host]
    for core in range(chosen + 1, m.core_ptr[host + 1]):
        if max(arrival, free.core[core]) < max(arrival, free.core[chosen]):
            chosen = core
    begin = max(arrival, free.core[chosen])
    end = begin + tasks.work[task] / m.rate[tasks.kind[task], host]
    placed.host[task], placed.core[task] = host, chosen - m.core_ptr[host]
    placed.start[task], placed.finish[task] = begin, end
    free.core[chosen] = end
    free_hosts(m, grid, free, host)
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = np.int64(tasks.writes[i])
        inputs.made[item] = end
        add_copy(m, copies, item, tasks.size[item], place, end)
        for j in range(inputs.reader_ptr[item], inputs.reader_ptr[item + 1]):
            reader = inputs.readers[j]
            inputs.released[reader] = max(inputs.released[reader], end)


@entry
def free_hosts(m, grid, free, host):
    """Bring the free times of a host and its group up to date: O(cores + hosts of the group)."""
    least = np.inf
    for core in range(m.core_ptr[host], m.core_ptr[host + 1]):
        least = min(least, free.core[core])
    free.host[host] = least
    group = grid.host_group[host]
    first, second = np.inf, np.inf
    for i in range(grid.group_ptr[group], grid.group_ptr[group + 1]):
        time = free.host[grid.group_hosts[i]]
        second = min(second, max(time, first))
        first = min(first, time)
    free.first[group], free.second[group] = first, second
