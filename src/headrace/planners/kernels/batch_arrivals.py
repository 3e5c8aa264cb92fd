"""When the inputs of a task could be at a place, given all transfers booked so far."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.planners.kernels.batch_arrays import FREE_LINKS, STAR
from headrace.planners.kernels.transfers import fetch, held_since, seconds, take_back


@inner
def by_time(inputs, task):
    """Put a task's inputs in the order in which they are made, ties as they were.

    Its predecessors are placed, so the order will not change any more. Binary insertion.
    """
    first = inputs.ptr[task]
    for i in range(first + 1, inputs.ptr[task + 1]):
        item, column = inputs.item[i], inputs.shared[i]
        low, high = first, i
        while low < high:
            middle = (low + high) // 2
            if inputs.made[inputs.item[middle]] > inputs.made[item]:
                high = middle
            else:
                low = middle + 1
        for k in range(i, low, -1):
            inputs.item[k], inputs.shared[k] = inputs.item[k - 1], inputs.shared[k - 1]
        inputs.item[low], inputs.shared[low] = item, column


@inner
def arrival_at(m, grid, tasks, inputs, copies, calendar, task, k, moves, log, scratch):
    """Earliest time all inputs of a task can be at place k with their transfers booked; inf: no route."""
    if grid.network == FREE_LINKS:
        return _on_free_links(m, tasks, inputs, copies, task, grid.places[k])
    if grid.network == STAR and inputs.plain[task] and is_packed(calendar, grid.in_link[k]):
        end = packed_until(calendar, grid.in_link[k])
        return appended(tasks, inputs, task, k, end, grid.in_latency[k], grid.in_bandwidth[k])
    count = load_inputs(inputs, task, scratch)
    latest = fetch(m, tasks, copies, calendar, count, grid.places[k], scratch, log, moves, np.bool_(False))
    take_back(calendar, log)
    return max(latest, inputs.released[task])


@inner
def load_inputs(inputs, task, scratch):
    """Copy a task's inputs to where `fetch` takes them from; returns how many."""
    first, last = inputs.ptr[task], inputs.ptr[task + 1]
    for i in range(first, last):
        scratch.inputs[i - first] = inputs.item[i]
    return last - first


@inner
def _on_free_links(m, tasks, inputs, copies, task, place):
    """O(inputs * copies); constant for items with many readers."""
    latest = inputs.released[task]
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        item = inputs.item[i]
        since = held_since(copies, item, place)
        if since == np.inf:
            row = copies.row[item]
            if row >= 0:
                since = copies.arrival[row, place]
            else:
                node = copies.head[item]
                while node >= 0:
                    way = seconds(m, copies.place[node], place, tasks.size[item])
                    since = min(since, copies.time[node] + way)
                    node = copies.next[node]
        latest = max(latest, since)
    return latest


@inner
def is_packed(calendar, link):
    """Whether the link is busy from 0 without a gap, so that the first gap is its end."""
    if link < 0 or calendar.length[link] == 0:
        return True
    return calendar.length[link] == 1 and calendar.start[calendar.offset[link]] == 0.0


@inner
def packed_until(calendar, link):
    """Where a transfer on this packed link would begin; -1 at the origin, where nothing is sent."""
    if link < 0:
        return -1.0
    return 0.0 if calendar.length[link] == 0 else calendar.end[calendar.offset[link]]


@inner
def appended(tasks, inputs, task, k, end, latency, bandwidth):
    """Arrival over one packed link from the origin: what is not there yet follows what is booked."""
    latest = inputs.released[task]
    if end < 0.0:
        return latest
    time = end
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        column = inputs.shared[i]
        since = inputs.since[k, column] if column >= 0 else np.inf
        if since == np.inf:
            time = since = time + (latency + tasks.size[inputs.item[i]] / bandwidth)
        latest = max(latest, since)
    return latest
