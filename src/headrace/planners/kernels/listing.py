"""List scheduling over arrays: tasks in a given order, each to the host that serves its goal best.

Transfers are booked with the tasks.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.planners.kernels.arrays import NO_ROUTE, OK, POOL_FULL
from headrace.planners.kernels.calendar import book, earliest
from headrace.planners.kernels.transfers import arrivals, deliver, fetch, seconds, take_back


@inner
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


@inner
def _later(inputs, times, a, b):
    return times[a] > times[b] or (times[a] == times[b] and inputs[a] > inputs[b])


@inner
def _swap(inputs, times, a, b):
    inputs[a], inputs[b] = inputs[b], inputs[a]
    times[a], times[b] = times[b], times[a]


@inner
def _best_core(m, cores, host, ready, duration):
    best_core, best_start = -1, np.inf
    ready = max(ready, m.free_at[host])
    for core in range(m.core_ptr[host], m.core_ptr[host + 1]):
        start = earliest(cores, core, ready, duration)
        if start < best_start:
            best_core, best_start = core, start
    return best_core, best_start


@inner
def _way_back(m, tasks, task, places, back):
    """How long the results of a task take to return from these places on free links."""
    for p in places:
        back[p] = 0.0
    if m.origin < 0:
        return
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = tasks.writes[i]
        if tasks.result[item]:
            for p in places:
                back[p] = max(back[p], seconds(m, p, m.origin, tasks.size[item]))


@inner
def _extra(choice, task):
    """What each place adds to the goal of a task."""
    return choice.extra[min(task, choice.extra.shape[0] - 1)]


@inner
def _promises(m, tasks, cores, task, choice, hosts, scratch):
    """The goal of a task at each host if links were free; returns the best host, or -1."""
    best, best_goal, best_end = -1, np.inf, np.inf
    work, rate, extra = tasks.work[task], m.rate[tasks.kind[task]], _extra(choice, task)
    for host in hosts:
        place = m.host_place[host]
        scratch.promise[host] = np.inf
        if scratch.arrival[place] == np.inf or scratch.back[place] == np.inf:
            continue
        duration = work / rate[host]
        _, begin = _best_core(m, cores, host, scratch.arrival[place], duration)
        end = begin + duration + scratch.back[place]
        goal = (begin if choice.by_start else end) + extra[place]
        scratch.promise[host] = goal
        if goal < best_goal or (goal == best_goal and end < best_end):
            best, best_goal, best_end = host, goal, end
    return best


@inner
def _try_hosts(m, tasks, cores, links, copies, moves, log, task, n_inputs, choice, hosts, hint, scratch):
    """The best host with its transfers booked, or -1; takes all bookings back.

    Hosts whose promise on free links is already worse than the best are left out; `hint` is tried first.
    """
    chosen, chosen_goal, chosen_end = -1, np.inf, np.inf
    extra = _extra(choice, task)
    for trial in range(-1, len(hosts)):
        host = hint if trial < 0 else hosts[trial]
        if (trial >= 0 and host == hint) or scratch.promise[host] > chosen_goal:
            continue
        place = m.host_place[host]
        ready = fetch(m, tasks, copies, links, n_inputs, place, scratch, log, moves, False)
        take_back(links, log)
        if links.used[1] or ready == np.inf:
            continue
        duration = tasks.work[task] / m.rate[tasks.kind[task], host]
        _, begin = _best_core(m, cores, host, max(ready, scratch.arrival[place]), duration)
        end = begin + duration + scratch.back[place]
        goal = (begin if choice.by_start else end) + extra[place]
        better = goal < chosen_goal or (goal == chosen_goal and end < chosen_end)
        if better or (goal == chosen_goal and end == chosen_end and host < chosen):
            chosen, chosen_goal, chosen_end = host, goal, end
    return chosen


@inner
def _holders(m, tasks, copies, task, choice, scratch):
    """The allowed hosts that have all inputs of a task: how many; they and their places go to the scratch.

    O(copies of the inputs + hosts).
    """
    wanted = 0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item] or tasks.size[item] == 0.0:
            continue
        wanted += 1
        node = copies.head[item]
        while node >= 0:
            scratch.held[copies.place[node]] += 1
            node = copies.next[node]
    count = 0
    for host in choice.hosts:
        if scratch.held[m.host_place[host]] == wanted:
            scratch.hosts[count] = host
            scratch.places[count] = m.host_place[host]
            count += 1
    scratch.held[:] = 0
    return count


@entry
def list_schedule(order, tasks, m, choice, cores, links, copies, moves, log, scratch, placed):
    """Place tasks in `order`, each at the allowed host of least goal; may be called again with further tasks.

    The goal is the earliest finish, counting the way back of results (or the earliest start), plus
    `choice.extra`. Ties: earliest finish, then the lower host.
    O(tasks * (places * copies + cores * (log blocks + gaps))), plus bookings under contention.
    Returns OK, POOL_FULL (start over with larger calendars) or NO_ROUTE, and the task reached.
    """
    for task in order:
        hosts, places = choice.hosts, choice.places
        if choice.forced[task] >= 0:
            scratch.hosts[0], scratch.places[0] = choice.forced[task], m.host_place[choice.forced[task]]
            hosts, places = scratch.hosts[:1], scratch.places[:1]
        elif choice.stay[task]:
            count = _holders(m, tasks, copies, task, choice, scratch)
            if count > 0:
                hosts, places = scratch.hosts[:count], scratch.places[:count]
        arrivals(m, tasks, copies, task, places, scratch.arrival, scratch.since)
        _way_back(m, tasks, task, places, scratch.back)
        host = _promises(m, tasks, cores, task, choice, hosts, scratch)
        n_inputs = _inputs_by_time(tasks, copies, task, scratch.inputs, scratch.times)
        if m.booked and host >= 0 and len(hosts) > 1 and n_inputs > 0:
            host = _try_hosts(
                m, tasks, cores, links, copies, moves, log, task, n_inputs, choice, hosts, host, scratch
            )
        if host < 0:
            return (POOL_FULL if links.used[1] else NO_ROUTE), task
        place = m.host_place[host]
        ready = fetch(m, tasks, copies, links, n_inputs, place, scratch, log, moves, True)
        duration = tasks.work[task] / m.rate[tasks.kind[task], host]
        core, begin = _best_core(m, cores, host, max(ready, scratch.arrival[place]), duration)
        book(cores, core, begin, begin + duration)
        placed.host[task], placed.core[task] = host, core - m.core_ptr[host]
        placed.start[task], placed.finish[task] = begin, begin + duration
        deliver(m, tasks, copies, links, task, place, begin + duration, scratch.links, moves)
        if links.used[1] or cores.used[1]:
            return POOL_FULL, task
    return OK, -1
