"""Batch-mode heuristics: among ready tasks the next one by a rule, to the host where it completes first.

Ready tasks are taken in waves (levels of the graph); a sweep is one wave. A wave keeps a matrix of completion
times, tasks by places. Placing a task changes the processors of one place and the links of its transfers, so
only the entries that depend on these are computed again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headrace.planners.kernels.arrays import NO_ROUTE, OK, POOL_FULL
from headrace.planners.kernels.batch_arrays import (
    FEWEST_BEFORE_JUMP,
    FIRST_JUMP,
    FREE_LINKS,
    MAXMIN,
    MINMIN,
    OWN_LINKS,
    STAR,
    SUFFERAGE,
)
from headrace.planners.kernels.batch_arrivals import arrival_at, by_time, load_inputs
from headrace.planners.kernels.calendar import book
from headrace.planners.kernels.jumps import SLACK, first_jump, sort_clusters
from headrace.planners.kernels.transfers import add_copy, add_move, fetch, route, seconds, slot


@njit(cache=True)
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
    calendar,
    copies,
    moves,
    log,
    scratch,
    placed,
):
    """Place all tasks, level by level: `levels` are the offsets of the levels in `wave.task`.

    For n tasks of one level on P places, each step evaluates n columns of one place (STAR, FREE_LINKS and
    OWN_LINKS) or all P (SHARED_LINKS), and looks through n keys: O(n^2) or O(n^2 * P) evaluations.
    Returns OK, POOL_FULL (start over with larger calendars) or NO_ROUTE, and the task reached.
    """
    for level in range(len(levels) - 1):
        first, last = levels[level], levels[level + 1]
        _open_wave(rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch, first, last)
        left = last - first
        while left > 0:
            if calendar.used[1]:
                return POOL_FULL, -1
            at = _next_task(rule, tolerance, seed, grid, wave, first, left, last - left)
            row = wave.live[at]
            task = wave.task[first + row]
            if wave.best[row] == np.inf:
                return NO_ROUTE, task
            for i in range(at, left - 1):
                wave.live[i] = wave.live[i + 1]
            left -= 1
            wave.row[task] = -1
            host = _best_host(m, grid, tasks, inputs, free, wave, row, task)
            made = moves.count[0]
            _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host)
            _refresh(
                rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch,
                first, left, grid.host_place[host], made,
            )  # fmt: skip
    return (POOL_FULL if calendar.used[1] else OK), -1


@njit(cache=True)
def workqueue_schedule(order, tasks, m, grid, inputs, free, calendar, copies, moves, log, scratch, placed):
    """Tasks in this order, each to the host that is free first: O(tasks * hosts)."""
    refused = np.zeros(len(free.host), np.bool_)
    for task in order:
        by_time(inputs, task)
        refused[:] = False
        while True:
            host = -1
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


@njit(cache=True)
def _open_wave(rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch, first, last):
    """Rows for the tasks first .. last - 1 of `wave.task`."""
    for row in range(last - first):
        task = wave.task[first + row]
        wave.row[task] = row
        wave.live[row] = row
        by_time(inputs, task)
        for c in range(wave.order.shape[1]):
            wave.order[row, c] = c
        for k in range(len(grid.places)):
            wave.arrival[row, k] = arrival_at(
                m, grid, tasks, inputs, copies, calendar, task, k, moves, log, scratch
            )
            _complete(rule, grid, tasks, inputs, free, wave, row, task, k)
        wave.bound[row] = np.inf
        wave.stale[row] = True
        _rank(rule, wave, row)


@njit(cache=True)
def _back(grid, inputs, task, k):
    """How long the largest result takes to the origin on free links."""
    if inputs.out_size[task] == 0.0:
        return 0.0
    if grid.back_bandwidth[k] == 0.0:
        return np.inf
    return grid.back_latency[k] + inputs.out_size[task] / grid.back_bandwidth[k]


@njit(cache=True)
def _complete(rule, grid, tasks, inputs, free, wave, row, task, k):
    """Write the best (and for SUFFERAGE the second best) completion time of a task at a place."""
    arrival, back = wave.arrival[row, k], _back(grid, inputs, task, k)
    best, second = np.inf, np.inf
    for g in range(grid.place_group[k], grid.place_group[k + 1]):
        duration = tasks.work[task] / grid.group_rate[tasks.kind[task], g]
        time = max(arrival, free.first[g]) + duration + back
        if rule == SUFFERAGE:
            second = min(second, max(arrival, free.second[g]) + duration + back, max(time, best))
        best = min(best, time)
    wave.time[row, k] = best
    if rule == SUFFERAGE:
        wave.next_time[row, k] = second


@njit(cache=True)
def _rank(rule, wave, row):
    """Best and second best of a row, and its key, from its completion times."""
    best, second = np.inf, np.inf
    if rule == SUFFERAGE:
        for k in range(wave.time.shape[1]):
            time = wave.time[row, k]
            second = min(second, wave.next_time[row, k], max(time, best))
            best = min(best, time)
        wave.second[row] = second
        wave.key[row] = best - second if second < np.inf else 0.0
    else:
        for k in range(wave.time.shape[1]):
            best = min(best, wave.time[row, k])
        if rule == MINMIN:
            wave.key[row] = best
        elif rule == MAXMIN:
            wave.key[row] = -best
    wave.best[row] = best


@njit(cache=True)
def _renew(rule, grid, tasks, inputs, free, wave, row, task, k):
    """A place has changed for a task: its completion time there, and what follows for its key."""
    old = wave.time[row, k]
    _complete(rule, grid, tasks, inputs, free, wave, row, task, k)
    new = wave.time[row, k]
    if rule == SUFFERAGE:
        if min(old, new) <= wave.second[row]:
            _rank(rule, wave, row)
        return
    if new == old:
        return
    if rule >= FIRST_JUMP:
        # A time that moves by d moves no difference of neighbours by more than d.
        wave.bound[row] += abs(new - old) * (1.0 + SLACK)
        wave.stale[row] = True
    if new < wave.best[row] or old == wave.best[row]:
        _rank(rule, wave, row)


@njit(cache=True)
def _refresh(
    rule, m, grid, tasks, inputs, free, wave, calendar, copies, moves, log, scratch, first, left, k, made
):
    """Bring the rows that are left up to date after a task went to place k and moves from `made` on."""
    moved = moves.count[0] > made
    if moved and grid.network <= OWN_LINKS:
        _touch_readers(inputs, wave, moves, made, True)
    for i in range(left):
        row = wave.live[i]
        task = wave.task[first + row]
        everywhere, here = False, moved
        if moved and grid.network <= OWN_LINKS:
            everywhere = wave.touched[row]
            here = grid.network == OWN_LINKS
        elif moved:
            everywhere = not (grid.network == STAR and inputs.plain[task])
        if everywhere:
            for other in range(len(grid.places)):
                wave.arrival[row, other] = arrival_at(
                    m, grid, tasks, inputs, copies, calendar, task, other, moves, log, scratch
                )
                _renew(rule, grid, tasks, inputs, free, wave, row, task, other)
        else:
            if here:
                wave.arrival[row, k] = arrival_at(
                    m, grid, tasks, inputs, copies, calendar, task, k, moves, log, scratch
                )
            _renew(rule, grid, tasks, inputs, free, wave, row, task, k)
    if moved and grid.network <= OWN_LINKS:
        _touch_readers(inputs, wave, moves, made, False)


@njit(cache=True)
def _touch_readers(inputs, wave, moves, made, value):
    """Mark the rows of tasks that read an item moved since `made`."""
    for move in range(made, moves.count[0]):
        item = moves.item[move]
        for i in range(inputs.reader_ptr[item], inputs.reader_ptr[item + 1]):
            row = wave.row[inputs.readers[i]]
            if row >= 0:
                wave.touched[row] = value


@njit(cache=True)
def _next_task(rule, tolerance, seed, grid, wave, first, left, step):
    """Position in `wave.live` of the task that is next."""
    if rule >= FIRST_JUMP:
        _find_jumps(rule, tolerance, grid, wave, left)
    chosen = 0
    for i in range(1, left):
        row, best = wave.live[i], wave.live[chosen]
        if wave.key[row] < wave.key[best] or (
            wave.key[row] == wave.key[best] and wave.tie[row] < wave.tie[best]
        ):
            chosen = i
    if tolerance < 0.0:
        return chosen
    key = wave.key[wave.live[chosen]]
    limit = key + tolerance * abs(key)
    least = np.uint64(0xFFFFFFFFFFFFFFFF)
    chosen = -1
    for i in range(left):
        row = wave.live[i]
        if wave.key[row] <= limit:
            drawn = _lot(seed, step, wave.task[first + row])
            if chosen < 0 or drawn < least:
                chosen, least = i, drawn
    return chosen


@njit(cache=True)
def _find_jumps(rule, tolerance, grid, wave, left):
    """Bring keys up to date; for FIRST_JUMP only those that can be the best or within tolerance of it."""
    highest = 0.0
    share = 1.0 - max(tolerance, 0.0)
    for i in range(left):
        row = wave.live[i]
        if not wave.stale[row] and rule == FIRST_JUMP:
            highest = max(highest, -wave.key[row])
    for i in range(left):
        row = wave.live[i]
        if not wave.stale[row]:
            continue
        if rule == FIRST_JUMP and wave.bound[row] * (1.0 + SLACK) < highest * share:
            wave.key[row] = 0.0
            continue
        sort_clusters(grid, wave, row, wave.cluster_time)
        before, height, largest = first_jump(wave.order[row], wave.cluster_time)
        wave.stale[row] = False
        wave.bound[row] = largest
        if rule == FEWEST_BEFORE_JUMP:
            wave.key[row], wave.tie[row] = before, -height
        else:
            wave.key[row] = -height
            highest = max(highest, height)


@njit(cache=True)
def _lot(seed, step, task):
    """A number for each seed, step and task (splitmix64): the least of several is an even draw."""
    x = np.uint64(seed)
    for part in (step, task):
        x = x + np.uint64(part) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


@njit(cache=True)
def _best_host(m, grid, tasks, inputs, free, wave, row, task):
    """The lowest host with the best completion time of the row: O(hosts)."""
    for host in range(len(free.host)):
        k = grid.host_place[host]
        if wave.time[row, k] == wave.best[row]:
            duration = tasks.work[task] / m.rate[tasks.kind[task], host]
            begin = max(wave.arrival[row, k], free.host[host])
            if begin + duration + _back(grid, inputs, task, k) == wave.best[row]:
                return host
    return -1


@njit(cache=True)
def _place(m, grid, tasks, inputs, free, calendar, copies, moves, log, scratch, placed, task, host):
    """Book the transfers of a task and append it to a core of a host."""
    k = grid.host_place[host]
    place = grid.places[k]
    made = moves.count[0]
    count = load_inputs(inputs, task, scratch)
    arrival = fetch(m, tasks, copies, calendar, count, place, scratch, log, moves, True)
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


@njit(cache=True)
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


@njit(cache=True)
def return_results(items, makers, m, grid, tasks, calendar, copies, moves, scratch, placed):
    """All tasks are placed: results return to the origin in the gaps that inputs left on the links."""
    for i in range(len(items)):
        item, maker = np.int64(items[i]), makers[i]
        there = False
        node = copies.head[item]
        while node >= 0:
            there = there or copies.place[node] == m.origin
            node = copies.next[node]
        if there:
            continue
        place, begin = grid.places[grid.host_place[placed.host[maker]]], placed.finish[maker]
        duration = seconds(m, place, m.origin, tasks.size[item])
        if m.booked:
            count = route(m, place, m.origin, scratch.links)
            begin = slot(calendar, scratch.links, count, begin, duration)
            for link in range(count):
                book(calendar, scratch.links[link], begin, begin + duration)
        add_move(moves, item, place, m.origin, begin, begin + duration)
