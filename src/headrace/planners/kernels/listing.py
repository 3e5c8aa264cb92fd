"""List scheduling over arrays: tasks in a given order, each to the host where it finishes first.

Transfers are booked with the tasks. Without contention a transfer starts when its data is ready; with
it, in the first gap in which every link of its route is free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from headrace.planners.kernels.calendar import book, earliest, unbook

OK, POOL_FULL, NO_ROUTE = 0, 1, 2


class Tasks(NamedTuple):
    """The program, as the kernel reads it."""

    work: Any
    kind: Any
    size: Any
    everywhere: Any
    """Items from outside that need no transfer."""
    read_ptr: Any
    reads: Any
    write_ptr: Any
    writes: Any
    result: Any
    held_ptr: Any
    """CSR of places that hold an item before the program starts."""
    held: Any


class Machines(NamedTuple):
    """The platform, as the kernel reads it."""

    rate: Any
    """[kinds, hosts]"""
    free_at: Any
    core_ptr: Any
    """Cores of host h are core_ptr[h] .. core_ptr[h + 1] - 1."""
    host_place: Any
    zone: Any
    port: Any
    out_port: Any
    in_port: Any
    route_ptr: Any
    route_links: Any
    route_bandwidth: Any
    route_latency: Any
    origin: Any
    """-1: results stay where they are."""
    booked: Any
    """True: links carry one transfer at a time."""


class Copies(NamedTuple):
    """Places that hold an item and since when: a linked list per item.

    Items with many readers also have a dense row over places, so that looking one up does not take longer the
    more copies there are.
    """

    head: Any
    next: Any
    place: Any
    time: Any
    count: Any
    row: Any
    """The row of each item, or -1."""
    arrival: Any
    """[rows, places] earliest time the item can be at each place if no link were busy."""
    node: Any
    """[rows, places] the copy at each place, or -1."""


class Moves(NamedTuple):
    """Transfers made so far."""

    item: Any
    source: Any
    target: Any
    start: Any
    finish: Any
    count: Any


class Scratch(NamedTuple):
    """Room the loop writes into, made once."""

    arrival: Any
    since: Any
    back: Any
    promise: Any
    inputs: Any
    times: Any
    links: Any


class Log(NamedTuple):
    """Tentative link bookings of one candidate, to be taken back."""

    link: Any
    how: Any
    at: Any
    start: Any
    end: Any
    count: Any


@njit(cache=True)
def _seconds(m, source, target, size):
    """Time of a transfer on free links, as model.network.Network.seconds."""
    if source == target or size == 0.0:
        return 0.0
    a, b = m.zone[source], m.zone[target]
    bandwidth = min(m.port[source], m.route_bandwidth[a, b], m.port[target])
    if bandwidth <= 0.0:
        return np.inf
    return m.route_latency[a, b] + size / bandwidth


@njit(cache=True)
def _route(m, source, target, links):
    """Write the links between two places into `links`; returns how many."""
    count = 0
    if m.out_port[source] >= 0:
        links[count] = m.out_port[source]
        count += 1
    at = m.zone[source] * m.route_bandwidth.shape[0] + m.zone[target]
    for i in range(m.route_ptr[at], m.route_ptr[at + 1]):
        links[count] = m.route_links[i]
        count += 1
    if m.in_port[target] >= 0:
        links[count] = m.in_port[target]
        count += 1
    return count


@njit(cache=True)
def _add_copy(m, copies, item, size, place, time):
    node = copies.count[0]
    copies.count[0] += 1
    copies.place[node] = place
    copies.time[node] = time
    copies.next[node] = copies.head[item]
    copies.head[item] = node
    row = copies.row[item]
    if row >= 0:
        if copies.node[row, place] < 0:
            copies.node[row, place] = node
        for target in range(copies.arrival.shape[1]):
            since = time + _seconds(m, place, target, size)
            copies.arrival[row, target] = min(copies.arrival[row, target], since)


@njit(cache=True)
def _slot(calendar, links, count, ready, duration):
    """Earliest start at which all links are free for the whole transfer."""
    time = ready
    again = True
    while again:
        again = False
        for i in range(count):
            free = earliest(calendar, links[i], time, duration)
            if free > time:
                time = free
                again = count > 1
    return time


@njit(cache=True)
def _best_source(m, copies, calendar, item, size, target, links):
    """Where to fetch an item from: (copy, start, finish).

    Without contention the copy that arrives first. With it three copies are tried on the links: that one, the
    best in the target's own zone, and the newest, whose ports are least likely to be busy.
    """
    best, best_arrival = -1, np.inf
    near, near_arrival = -1, np.inf
    node = copies.head[item]
    newest = node
    while node >= 0:
        place = copies.place[node]
        arrival = copies.time[node] + _seconds(m, place, target, size)
        if arrival < best_arrival or (arrival == best_arrival and best < 0):
            best, best_arrival = node, arrival
        if m.zone[place] == m.zone[target] and arrival < near_arrival:
            near, near_arrival = node, arrival
        node = copies.next[node]
    if best < 0 or not m.booked or best_arrival == np.inf:
        return best, (copies.time[best] if best >= 0 else np.inf), best_arrival
    chosen, chosen_start, chosen_finish = -1, np.inf, np.inf
    for trial in range(3):
        node = best if trial == 0 else (near if trial == 1 else newest)
        if node < 0 or (trial > 0 and node == best) or (trial == 2 and node == near):
            continue
        duration = _seconds(m, copies.place[node], target, size)
        if duration == np.inf:
            continue
        count = _route(m, copies.place[node], target, links)
        start = _slot(calendar, links, count, copies.time[node], duration)
        if start + duration < chosen_finish:
            chosen, chosen_start, chosen_finish = node, start, start + duration
    return chosen, chosen_start, chosen_finish


@njit(cache=True)
def _held_since(copies, item, place):
    """When a place has the item; inf if it does not."""
    row = copies.row[item]
    if row >= 0:
        node = copies.node[row, place]
        return copies.time[node] if node >= 0 else np.inf
    node = copies.head[item]
    while node >= 0:
        if copies.place[node] == place:
            return copies.time[node]
        node = copies.next[node]
    return np.inf


@njit(cache=True)
def _arrivals(m, tasks, copies, task, arrival, since):
    """Earliest time all inputs can be at each place if no link were busy: O(inputs * copies * places)."""
    arrival[:] = 0.0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item]:
            continue
        size = tasks.size[item]
        node = copies.head[item]
        if size == 0.0:
            for place in range(len(arrival)):
                arrival[place] = max(arrival[place], copies.time[node] if node >= 0 else 0.0)
            continue
        row = copies.row[item]
        if row >= 0:
            for place in range(len(arrival)):
                arrival[place] = max(arrival[place], copies.arrival[row, place])
            continue
        since[:] = np.inf
        while node >= 0:
            source, time = copies.place[node], copies.time[node]
            for place in range(len(arrival)):
                since[place] = min(since[place], time + _seconds(m, source, place, size))
            node = copies.next[node]
        for place in range(len(arrival)):
            arrival[place] = max(arrival[place], since[place])


@njit(cache=True)
def _fetch(m, tasks, copies, calendar, n_inputs, place, scratch, log, moves, keep):
    """Book the transfers a task needs at a place; returns when the last has arrived.

    With `keep` they become part of the plan, else they go to the log so that they can be taken back.
    """
    latest = 0.0
    links = scratch.links
    for i in range(n_inputs):
        item = scratch.inputs[i]
        since = _held_since(copies, item, place)
        if since < np.inf:
            latest = max(latest, since)
            continue
        size = tasks.size[item]
        node, start, finish = _best_source(m, copies, calendar, item, size, place, links)
        latest = max(latest, finish)
        if finish == np.inf:
            return latest
        if m.booked:
            count = _route(m, copies.place[node], place, links)
            for k in range(count):
                how, at, old_start, old_end = book(calendar, links[k], start, finish)
                if not keep:
                    entry = log.count[0]
                    if entry == len(log.link):
                        calendar.used[1] = 1
                        return latest
                    log.link[entry] = links[k]
                    log.how[entry] = how
                    log.at[entry] = at
                    log.start[entry] = old_start
                    log.end[entry] = old_end
                    log.count[0] = entry + 1
        if keep:
            _add_move(moves, item, copies.place[node], place, start, finish)
            _add_copy(m, copies, item, size, place, finish)
    return latest


@njit(cache=True)
def _take_back(calendar, log):
    for entry in range(log.count[0] - 1, -1, -1):
        unbook(calendar, log.link[entry], log.how[entry], log.at[entry], log.start[entry], log.end[entry])
    log.count[0] = 0


@njit(cache=True)
def _add_move(moves, item, source, target, start, finish):
    k = moves.count[0]
    moves.count[0] += 1
    moves.item[k] = item
    moves.source[k] = source
    moves.target[k] = target
    moves.start[k] = start
    moves.finish[k] = finish


@njit(cache=True)
def _inputs_by_time(tasks, copies, task, inputs, times):
    """The items a task may have to fetch, those that are ready first in front; returns how many.

    Insertion into a heap of (time, item) and back out: O(inputs * log inputs).
    """
    count = 0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item] or tasks.size[item] == 0.0:
            continue
        node = copies.head[item]
        first = np.inf
        while node >= 0:
            first = min(first, copies.time[node])
            node = copies.next[node]
        inputs[count] = item
        times[count] = first
        count += 1
    for last in range(1, count):
        child = last
        while child > 0 and _later(inputs, times, child, (child - 1) // 2):
            _swap(inputs, times, child, (child - 1) // 2)
            child = (child - 1) // 2
    for last in range(count - 1, 0, -1):
        _swap(inputs, times, 0, last)
        parent = 0
        while 2 * parent + 1 < last:
            child = 2 * parent + 1
            if child + 1 < last and _later(inputs, times, child + 1, child):
                child += 1
            if not _later(inputs, times, child, parent):
                break
            _swap(inputs, times, child, parent)
            parent = child
    return count


@njit(cache=True)
def _later(inputs, times, a, b):
    return times[a] > times[b] or (times[a] == times[b] and inputs[a] > inputs[b])


@njit(cache=True)
def _swap(inputs, times, a, b):
    inputs[a], inputs[b] = inputs[b], inputs[a]
    times[a], times[b] = times[b], times[a]


@njit(cache=True)
def _best_core(m, cores, host, ready, duration):
    best_core, best_start = -1, np.inf
    ready = max(ready, m.free_at[host])
    for core in range(m.core_ptr[host], m.core_ptr[host + 1]):
        start = earliest(cores, core, ready, duration)
        if start < best_start:
            best_core, best_start = core, start
    return best_core, best_start


@njit(cache=True)
def _way_back(m, tasks, task, back):
    """How long the results of a task take to return from each place on free links."""
    back[:] = 0.0
    if m.origin < 0:
        return
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        if tasks.result[item]:
            for place in range(len(back)):
                back[place] = max(back[place], _seconds(m, place, m.origin, tasks.size[item]))


@njit(cache=True)
def _promises(m, tasks, cores, task, first, last, scratch):
    """When a task's results would be back if links were free, for each host; returns the best, or -1."""
    best = -1
    for host in range(first, last):
        place = m.host_place[host]
        scratch.promise[host] = np.inf
        if scratch.arrival[place] == np.inf or scratch.back[place] == np.inf:
            continue
        duration = tasks.work[task] / m.rate[tasks.kind[task], host]
        _, begin = _best_core(m, cores, host, scratch.arrival[place], duration)
        scratch.promise[host] = begin + duration + scratch.back[place]
        if best < 0 or scratch.promise[host] < scratch.promise[best]:
            best = host
    return best


@njit(cache=True)
def _try_hosts(m, tasks, cores, calendar, copies, moves, log, task, n_inputs, first, last, hint, scratch):
    """The host where the task finishes first with its transfers booked, or -1; takes all bookings back.

    Hosts whose promise on free links is already worse than the best are left out; `hint` is tried first.
    """
    chosen, chosen_goal = -1, np.inf
    for trial in range(first - 1, last):
        host = hint if trial < first else trial
        if (trial >= first and host == hint) or scratch.promise[host] > chosen_goal:
            continue
        place = m.host_place[host]
        ready = _fetch(m, tasks, copies, calendar, n_inputs, place, scratch, log, moves, False)
        _take_back(calendar, log)
        if calendar.used[1] or ready == np.inf:
            continue
        duration = tasks.work[task] / m.rate[tasks.kind[task], host]
        _, begin = _best_core(m, cores, host, max(ready, scratch.arrival[place]), duration)
        goal = begin + duration + scratch.back[place]
        if goal < chosen_goal or (goal == chosen_goal and host < chosen):
            chosen, chosen_goal = host, goal
    return chosen


@njit(cache=True)
def list_schedule(
    order, forced, tasks, m, cores, calendar, copies, moves, log, scratch, host_of, core_of, start, finish
):
    """Place all tasks in `order`; `forced[t]` is the only host allowed for t, or -1 for any.

    Goal for each task: earliest finish, counting the way back of its results. Ties: the lower host.
    O(tasks * (places * copies + cores * (log blocks + gaps))), plus bookings under contention.
    Returns OK, POOL_FULL (start over with larger calendars) or NO_ROUTE, and the task reached.
    """
    for item in range(len(tasks.size)):
        for i in range(tasks.held_ptr[item], tasks.held_ptr[item + 1]):
            _add_copy(m, copies, item, tasks.size[item], tasks.held[i], 0.0)
    for position in range(len(order)):
        task = order[position]
        first, last = 0, m.rate.shape[1]
        if forced[task] >= 0:
            first, last = forced[task], forced[task] + 1
        _arrivals(m, tasks, copies, task, scratch.arrival, scratch.since)
        _way_back(m, tasks, task, scratch.back)
        host = _promises(m, tasks, cores, task, first, last, scratch)
        n_inputs = _inputs_by_time(tasks, copies, task, scratch.inputs, scratch.times)
        if m.booked and host >= 0 and last - first > 1 and n_inputs > 0:
            host = _try_hosts(
                m, tasks, cores, calendar, copies, moves, log, task, n_inputs, first, last, host, scratch
            )
        if host < 0:
            return (POOL_FULL if calendar.used[1] else NO_ROUTE), task
        place = m.host_place[host]
        ready = _fetch(m, tasks, copies, calendar, n_inputs, place, scratch, log, moves, True)
        duration = tasks.work[task] / m.rate[tasks.kind[task], host]
        core, begin = _best_core(m, cores, host, max(ready, scratch.arrival[place]), duration)
        book(cores, core, begin, begin + duration)
        host_of[task], core_of[task] = host, core - m.core_ptr[host]
        start[task], finish[task] = begin, begin + duration
        _deliver(m, tasks, copies, calendar, task, place, begin + duration, scratch.links, moves)
        if calendar.used[1] or cores.used[1]:
            return POOL_FULL, task
    return OK, -1


@njit(cache=True)
def _deliver(m, tasks, copies, calendar, task, place, time, links, moves):
    """Outputs are at the task's place from its finish on; results go back to the origin."""
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        size = tasks.size[item]
        _add_copy(m, copies, item, size, place, time)
        if m.origin < 0 or not tasks.result[item] or place == m.origin or size == 0.0:
            continue
        duration = _seconds(m, place, m.origin, size)
        begin = time
        if m.booked:
            count = _route(m, place, m.origin, links)
            begin = _slot(calendar, links, count, time, duration)
            for k in range(count):
                book(calendar, links[k], begin, begin + duration)
        _add_move(moves, item, place, m.origin, begin, begin + duration)
        _add_copy(m, copies, item, size, m.origin, begin + duration)
