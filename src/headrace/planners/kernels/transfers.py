"""Moving data between places: which copy to take, when it arrives, which links it keeps busy.

Without contention a transfer starts when its data is ready; with it, in the first gap in which every link of
its route is free.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.planners.kernels.arrays import NO_ROUTE, OK, POOL_FULL
from headrace.planners.kernels.calendar import book, earliest, unbook


@inner
def seconds(m, source, target, size):
    """Time of a transfer on free links, as model.network.Network.seconds."""
    if source == target or size == 0.0:
        return 0.0
    a, b = m.zone[source], m.zone[target]
    bandwidth = min(m.port[source], m.route_bandwidth[a, b], m.port[target])
    if bandwidth <= 0.0:
        return np.inf
    return m.route_latency[a, b] + size / bandwidth


@inner
def route(m, source, target, links):
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


@entry
def add_held(m, tasks, copies, since):
    """The copies there are before the program starts, or will be without its doing, `since` when each is there."""
    for item in range(len(tasks.size)):
        for i in range(tasks.held_ptr[item], tasks.held_ptr[item + 1]):
            add_copy(m, copies, item, tasks.size[item], tasks.held[i], since[i])


@entry
def keep_busy(calendar, until):
    """Book each link from the start until it can first be used."""
    for link in range(len(until)):
        if until[link] > 0.0:
            book(calendar, link, 0.0, until[link])


@inner
def add_copy(m, copies, item, size, place, time):
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
            since = time + seconds(m, place, target, size)
            copies.arrival[row, target] = min(copies.arrival[row, target], since)


@inner
def slot(calendar, links, count, ready, duration):
    """Earliest start from `ready` on at which all links are free for the whole transfer."""
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


@inner
def best_source(m, copies, calendar, item, size, target, links):
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
        arrival = copies.time[node] + seconds(m, place, target, size)
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
        duration = seconds(m, copies.place[node], target, size)
        if duration == np.inf:
            continue
        count = route(m, copies.place[node], target, links)
        start = slot(calendar, links, count, copies.time[node], duration)
        if start + duration < chosen_finish:
            chosen, chosen_start, chosen_finish = node, start, start + duration
    return chosen, chosen_start, chosen_finish


@inner
def held_since(copies, item, place):
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


@inner
def _reach(m, source, time, size, places, since):
    """Lower `since` to when an item can come to these places from `source` (as `seconds`, loads hoisted)."""
    zone, port = m.zone[source], m.port[source]
    bandwidths, latencies = m.route_bandwidth[zone], m.route_latency[zone]
    for p in places:
        there = m.zone[p]
        bandwidth = min(port, bandwidths[there], m.port[p])
        arrival = time
        if p != source:
            arrival = time + (latencies[there] + size / bandwidth) if bandwidth > 0.0 else np.inf
        since[p] = min(since[p], arrival)


@inner
def arrivals(m, tasks, copies, task, places, arrival, since):
    """Earliest time all inputs can be at these places if no link were busy: O(inputs * copies * places)."""
    for p in places:
        arrival[p] = 0.0
    for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
        item = tasks.reads[i]
        if tasks.everywhere[item]:
            continue
        size = tasks.size[item]
        node = copies.head[item]
        row = copies.row[item]
        if size == 0.0:
            made = copies.time[node] if node >= 0 else 0.0
            for p in places:
                arrival[p] = max(arrival[p], made)
        elif row >= 0:
            for p in places:
                arrival[p] = max(arrival[p], copies.arrival[row, p])
        else:
            for p in places:
                since[p] = np.inf
            while node >= 0:
                _reach(m, copies.place[node], copies.time[node], size, places, since)
                node = copies.next[node]
            for p in places:
                arrival[p] = max(arrival[p], since[p])


@inner
def fetch(m, tasks, copies, calendar, n_inputs, place, scratch, log, moves, keep):
    """Book the transfers a task needs at a place; returns when the last has arrived.

    With `keep` they become part of the plan, else they go to the log so that they can be taken back.
    """
    latest = 0.0
    links = scratch.links
    for i in range(n_inputs):
        item = scratch.inputs[i]
        since = held_since(copies, item, place)
        if since < np.inf:
            latest = max(latest, since)
            continue
        size = tasks.size[item]
        node, start, finish = best_source(m, copies, calendar, item, size, place, links)
        latest = max(latest, finish)
        if finish == np.inf:
            return latest
        if m.booked:
            count = route(m, copies.place[node], place, links)
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
            add_move(moves, item, copies.place[node], place, start, finish)
            add_copy(m, copies, item, size, place, finish)
    return latest


@inner
def take_back(calendar, log):
    for booking in range(log.count[0] - 1, -1, -1):
        unbook(
            calendar,
            log.link[booking],
            log.how[booking],
            log.at[booking],
            log.start[booking],
            log.end[booking],
        )
    log.count[0] = 0


@inner
def add_move(moves, item, source, target, start, finish):
    k = moves.count[0]
    moves.count[0] += 1
    moves.item[k] = item
    moves.source[k] = source
    moves.target[k] = target
    moves.start[k] = start
    moves.finish[k] = finish


@inner
def deliver(m, tasks, copies, calendar, task, place, time, links, moves):
    """Outputs are at the task's place from its finish on; results go back to the origin."""
    for i in range(tasks.write_ptr[task], tasks.write_ptr[task + 1]):
        item = np.int64(tasks.writes[i])
        size = tasks.size[item]
        add_copy(m, copies, item, size, place, time)
        if m.origin < 0 or not tasks.result[item] or place == m.origin or size == 0.0:
            continue
        duration = seconds(m, place, m.origin, size)
        begin = time
        if m.booked:
            count = route(m, place, m.origin, links)
            begin = slot(calendar, links, count, time, duration)
            for k in range(count):
                book(calendar, links[k], begin, begin + duration)
        add_move(moves, item, place, m.origin, begin, begin + duration)
        add_copy(m, copies, item, size, m.origin, begin + duration)


@entry
def return_results(items, makers, m, tasks, calendar, copies, moves, scratch, placed):
    """All tasks are placed: results return to the origin in the gaps that inputs left on the links.

    Returns OK, POOL_FULL or NO_ROUTE, and the task reached.
    """
    for i in range(len(items)):
        item, maker = np.int64(items[i]), makers[i]
        if held_since(copies, item, m.origin) < np.inf:
            continue
        place, begin = m.host_place[placed.host[maker]], placed.finish[maker]
        duration = seconds(m, place, m.origin, tasks.size[item])
        if duration == np.inf:
            return NO_ROUTE, maker
        if m.booked:
            count = route(m, place, m.origin, scratch.links)
            begin = slot(calendar, scratch.links, count, begin, duration)
            for link in range(count):
                book(calendar, scratch.links[link], begin, begin + duration)
        add_move(moves, item, place, m.origin, begin, begin + duration)
    return (POOL_FULL if calendar.used[1] else OK), -1
