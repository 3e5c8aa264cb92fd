"""Earliest arrival of a task's inputs at a place, given all transfers booked so far."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar, is_packed, last_end
from headrace.arrays.compiling import leaf
from headrace.arrays.routes import NetworkArrays, transfer_seconds
from headrace.model.graph import Floats
from headrace.planners.batch.records import FREE_LINKS, STAR, HostGroups, TaskInputs
from headrace.planners.partial_schedule import Copies, Transfers, book_inputs, held_since, undo


@leaf
def sort_inputs_by_time(inputs: TaskInputs, task: int) -> None:
    """Sort a task's inputs by the time at which they are produced; stable, by binary insertion.

    Its predecessors are placed, so the order is final.
    """
    first = inputs.ptr[task]
    for i in range(first + 1, inputs.ptr[task + 1]):
        item, column = inputs.item[i], inputs.column[i]
        low, high = first, i
        while low < high:
            middle = (low + high) // 2
            if inputs.made[inputs.item[middle]] > inputs.made[item]:
                high = middle
            else:
                low = middle + 1
        for k in range(i, low, -1):
            inputs.item[k], inputs.column[k] = inputs.item[k - 1], inputs.column[k - 1]
        inputs.item[low], inputs.column[low] = item, column


@leaf
def arrival_at(
    size: Floats,
    network: NetworkArrays,
    links: Calendar,
    copies: Copies,
    transfers: Transfers,
    groups: HostGroups,
    inputs: TaskInputs,
    task: int,
    k: int,
) -> float:
    """Earliest time at which all inputs of a task can be at place k, including link bookings; inf: no route.

    `size` is the size of each item in bytes.
    """
    items = inputs.item[inputs.ptr[task] : inputs.ptr[task + 1]]
    if groups.network == FREE_LINKS:
        return max(on_free_links(size, network, copies, items, groups.places[k]), inputs.released[task])
    if groups.network == STAR and inputs.from_origin[task]:
        link = groups.in_link[k]
        if link < 0 or is_packed(links, link):
            return _appended(size, groups, inputs, task, k, packed_until(links, link))
    first = transfers.used[0]
    latest = book_inputs(network, links, copies, transfers, items, size, groups.places[k])
    undo(links, transfers, first)
    return max(latest, inputs.released[task])


@leaf
def on_free_links(size: Floats, network: NetworkArrays, copies: Copies, items: Int64s, place: int) -> float:
    """O(inputs * copies); constant for items with many readers."""
    latest = 0.0
    for item in items:
        since = held_since(copies, item, place)
        if since == np.inf:
            row = copies.row[item]
            if row >= 0:
                since = copies.arrival[row, place]
            else:
                node = copies.head[item]
                while node >= 0:
                    seconds = transfer_seconds(network, copies.place[node], place, size[item])
                    since = min(since, copies.since[node] + seconds)
                    node = copies.next[node]
        latest = max(latest, since)
    return latest


@leaf
def packed_until(links: Calendar, link: int) -> float:
    """When a transfer on this packed link would start; -1 at the origin, where nothing is sent."""
    return -1.0 if link < 0 else last_end(links, link)


@leaf
def _appended(size: Floats, groups: HostGroups, inputs: TaskInputs, task: int, k: int, end: float) -> float:
    """Arrival over one packed link from the origin: missing inputs are sent after the bookings up to `end`."""
    latest = inputs.released[task]
    if end < 0.0:
        return latest
    time = end
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        column = inputs.column[i]
        since = inputs.since[k, column] if column >= 0 else np.inf
        if since == np.inf:
            seconds = size[inputs.item[i]] / groups.in_bandwidth[k]
            since = time + (groups.in_latency[k] + seconds)
            time += groups.busy_latency[k] + seconds
        latest = max(latest, since)
    return latest


@leaf
def return_seconds(groups: HostGroups, inputs: TaskInputs, task: int, k: int) -> float:
    """Seconds to return the largest result to the origin over free links; inf: no route."""
    size = inputs.largest_result[task]
    return groups.back_latency[k] + size / groups.back_bandwidth[k] if size > 0.0 else 0.0
