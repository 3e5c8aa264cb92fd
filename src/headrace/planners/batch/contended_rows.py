"""Completion times of ready tasks where transfers contend for shared links, recomputed only where they can matter.

Bookings are only added, so the time at which an item can arrive at a place never gets earlier unless the item gets a
new copy. Three facts follow from it:

- The arrival of all inputs at a place stays as it was until a new transfer overlaps theirs on one of their links.
- What was once a lower bound of an arrival remains one. For a single input to be sent that is the arrival itself. For
  several, of which one can take the gap that another has lost, it is the latest arrival of each input sent alone, and
  the sum of the times for which they keep the port of the place busy.
- So a row (a ready task) needs arrivals only at places whose bound does not exceed its best completion time, or for
  sufferage the second best, and these only if one of the places that decide about its key has changed.

Rows that get a new copy of an input start again from the arrival over free links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.calendar import Calendar
from headrace.arrays.compiling import leaf
from headrace.arrays.problem import TaskArrays
from headrace.arrays.routes import NetworkArrays, busy_links, links_between
from headrace.model.graph import Floats
from headrace.planners.batch.arrivals import on_free_links, return_seconds
from headrace.planners.batch.cluster_gap import measure_row
from headrace.planners.batch.records import (
    CLUSTER_SUFFERAGE,
    MINMIN,
    SUFFERAGE,
    Availability,
    ContendedRows,
    HostGroups,
    ReadyTasks,
    TaskInputs,
)
from headrace.planners.batch.renewals import FIRST, least_key
from headrace.planners.partial_schedule import (
    Copies,
    Transfers,
    _best_source,
    book_inputs,
    held_since,
    undo,
)

_ROUNDING = 1.0 - 1e-11
"""Sums of transfer times in another order differ by less."""
_MASK_BITS = 62


class LinkState(NamedTuple):
    """What arrivals depend on."""

    network: NetworkArrays
    links: Calendar
    copies: Copies
    transfers: Transfers


@leaf
def restart_row(
    tasks: TaskArrays,
    network: NetworkArrays,
    copies: Copies,
    groups: HostGroups,
    inputs: TaskInputs,
    ready: ReadyTasks,
    rows: ContendedRows,
    task: int,
    row: int,
) -> None:
    """Bounds of the arrivals of a row without regard to other transfers: O(places * inputs * copies)."""
    items = inputs.item[inputs.ptr[task] : inputs.ptr[task + 1]]
    for k in range(len(groups.places)):
        arrival = on_free_links(tasks.size, network, copies, items, groups.places[k])
        rows.bound[k, row] = max(arrival, inputs.released[task])
    rows.stale[row] = True
    ready.best[row] = -np.inf


@leaf
def _link_bits(links: Int64s, count: int) -> int:
    """The set of the first `count` links, as bits of their numbers modulo _MASK_BITS."""
    bits = 0
    for i in range(count):
        bits |= 1 << (links[i] % _MASK_BITS)
    return bits


@leaf
def new_bookings(network: NetworkArrays, transfers: Transfers, sent: int) -> tuple[int, float, float]:
    """The links of the transfers from number `sent` on as bits, their earliest start and latest finish."""
    bits, low, high = 0, np.inf, -np.inf
    for i in range(sent, transfers.used[0]):
        count = links_between(network, transfers.source[i], transfers.target[i], transfers.route)
        bits |= _link_bits(transfers.route, count)
        low, high = min(low, transfers.start[i]), max(high, transfers.finish[i])
    return bits, low, high


@leaf
def mark_stale_rows(
    ready: ReadyTasks, rows: ContendedRows, left: int, k: int, bits: int, low: float, high: float
) -> None:
    """Mark rows whose key depends on place k, or on a transfer that may overlap the new bookings: O(left * leaders)."""
    leader, stale = rows.leader, rows.stale
    for i in range(left):
        row = ready.unplaced[i]
        if stale[row]:
            continue
        for j in range(leader.shape[0]):
            place = leader[j, row]
            if place == k:
                stale[row] = True
            elif place >= 0 and rows.links[place, row] & bits:
                stale[row] |= rows.low[place, row] <= high and rows.high[place, row] >= low


@leaf
def update_stale_rows(
    rule: int,
    tasks: TaskArrays,
    state: LinkState,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    rows: ContendedRows,
    first: int,
    left: int,
) -> None:
    """Update the keys of all stale rows."""
    for i in range(left):
        row = ready.unplaced[i]
        if rows.stale[row]:
            update_row(rule, tasks, state, groups, inputs, available, ready, rows, first, row, False)


@leaf
def renew_first_rows(
    rule: int,
    tasks: TaskArrays,
    state: LinkState,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    rows: ContendedRows,
    first: int,
    left: int,
) -> None:
    """Update the row with the least key until it is current, FIRST rows at most."""
    for _ in range(FIRST):
        row = least_key(ready, left)
        if not rows.stale[row]:
            return
        update_row(rule, tasks, state, groups, inputs, available, ready, rows, first, row, False)
        if rule >= CLUSTER_SUFFERAGE:
            measure_row(rule, groups, ready, row)


@leaf
def update_row(
    rule: int,
    tasks: TaskArrays,
    state: LinkState,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    rows: ContendedRows,
    first: int,
    row: int,
    ties: bool,
) -> None:
    """Compute the key of a row, with arrivals at the places that can decide about it.

    Afterwards `ready.time` is exact at these places, and a lower bound that is not below what decides at all others.
    With `ties` it is also exact where it is equal to that.
    """
    task = ready.task[first + row]
    places = len(groups.places)
    for k in range(places):
        rows.exact[k] = False
        _set_times(rule, tasks, groups, inputs, available, rows, task, k, rows.bound[k, row])
    while True:
        k = _next_place(rule, groups, rows, ties)
        if k < 0:
            break
        arrival, exact = _arrival(tasks.size, state, groups, inputs, rows, task, k, row)
        rows.exact[k] = exact
        if exact:
            ready.arrival[k, row] = arrival
        _set_times(rule, tasks, groups, inputs, available, rows, task, k, arrival)
        if not exact and k == _next_place(rule, groups, rows, ties):
            ready.arrival[k, row] = arrival = _booked_arrival(
                tasks.size, state, groups, inputs, rows, task, k, row
            )
            rows.exact[k] = True
            _set_times(rule, tasks, groups, inputs, available, rows, task, k, arrival)
    _store(rule, groups, ready, rows, row)


@leaf
def _set_times(
    rule: int,
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    rows: ContendedRows,
    task: int,
    k: int,
    arrival: float,
) -> None:
    """Completion times on the best and the second best host of a place, given the arrival of all inputs."""
    back = return_seconds(groups, inputs, task, k)
    best, second, c = np.inf, np.inf, inputs.cores_class[task]
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        duration = tasks.work[task] / groups.group_rate[tasks.speed_class[task], g]
        time = max(arrival, available.first[c, g]) + duration + back
        if rule == SUFFERAGE:
            other = max(arrival, available.second[c, g]) + duration + back
            second = min(second, other, max(time, best))
        best = min(best, time)
    rows.time[k], rows.next_time[k] = best, second


@leaf
def _next_place(rule: int, groups: HostGroups, rows: ContendedRows, ties: bool) -> int:
    """The place of the least completion time among those that are not exact and can decide about the key; -1: none."""
    time, exact, limit, cluster = rows.time, rows.exact, rows.limit, groups.cluster
    by_cluster = rule >= CLUSTER_SUFFERAGE
    for c in range(len(limit)):
        limit[c] = np.inf
    best, second = np.inf, np.inf
    for k in range(len(time)):
        if exact[k]:
            if by_cluster:
                limit[cluster[k]] = min(limit[cluster[k]], time[k])
            second = min(second, rows.next_time[k], max(time[k], best))
            best = min(best, time[k])
    most = second if rule == SUFFERAGE else best
    chosen = -1
    for k in range(len(time)):
        if exact[k] or time[k] == np.inf:
            continue
        deciding = limit[cluster[k]] if by_cluster else most
        if (time[k] < deciding or (ties and time[k] == deciding)) and (chosen < 0 or time[k] < time[chosen]):
            chosen = k
    return chosen


@leaf
def _arrival(
    size: Floats,
    state: LinkState,
    groups: HostGroups,
    inputs: TaskInputs,
    rows: ContendedRows,
    task: int,
    k: int,
    row: int,
) -> tuple[float, bool]:
    """A lower bound of the arrival of all inputs at a place, each sent alone, and whether it is the arrival."""
    network, links, copies = state.network, state.links, state.copies
    route, busy = state.transfers.route, state.transfers.busy
    place = groups.places[k]
    latest, missing = inputs.released[task], 0
    begin, total, after, count = np.inf, 0.0, np.inf, 0
    rows.links[k, row] = 0
    for i in range(inputs.ptr[task], inputs.ptr[task + 1]):
        item = inputs.item[i]
        since = held_since(copies, item, place)
        if since == np.inf:
            source, start, since = _best_source(network, links, copies, route, busy, item, size[item], place)
            if since == np.inf:
                rows.bound[k, row] = np.inf
                return np.inf, True
            missing += 1
            if missing == 1:
                rows.low[k, row], rows.high[k, row] = start, since
                rows.links[k, row] = _link_bits(route, links_between(network, source, place, route))
            if copies.next[copies.head[item]] < 0 and network.in_port[place] >= 0:
                at_port = busy[busy_links(network, source, place, size[item], route, busy) - 1]
                begin, total, count = min(begin, start), total + at_port, count + 1
                after = min(after, since - start - at_port)
        latest = max(latest, since)
    if count > 1:
        latest = max(latest, (begin + total + after) * _ROUNDING)
    rows.bound[k, row] = latest
    return latest, missing <= 1


@leaf
def _booked_arrival(
    size: Floats,
    state: LinkState,
    groups: HostGroups,
    inputs: TaskInputs,
    rows: ContendedRows,
    task: int,
    k: int,
    row: int,
) -> float:
    """The arrival of all inputs at a place, each booked after those before it; all bookings are undone."""
    links, transfers = state.links, state.transfers
    first = transfers.used[0]
    items = inputs.item[inputs.ptr[task] : inputs.ptr[task + 1]]
    latest = book_inputs(state.network, links, state.copies, transfers, items, size, groups.places[k])
    rows.links[k, row] = _link_bits(transfers.undo_link, transfers.undo_count[0])
    low, high = np.inf, -np.inf
    for i in range(first, transfers.used[0]):
        low, high = min(low, transfers.start[i]), max(high, transfers.finish[i])
    rows.low[k, row], rows.high[k, row] = low, high
    undo(links, transfers, first)
    return max(latest, inputs.released[task])


@leaf
def _store(rule: int, groups: HostGroups, ready: ReadyTasks, rows: ContendedRows, row: int) -> None:
    """Store the times of a row, its key, and the places on which the key depends."""
    best, second, leader, time = np.inf, np.inf, rows.leader, rows.time
    for j in range(leader.shape[0]):
        leader[j, row] = -1
    for k in range(len(time)):
        ready.time[k, row] = time[k]
        if not rows.exact[k]:
            continue
        if rule >= CLUSTER_SUFFERAGE:
            c = groups.cluster[k]
            if leader[c, row] < 0 or time[k] < time[leader[c, row]]:
                leader[c, row] = k
        elif rule == SUFFERAGE:
            second = _note_two_best(rows, row, k, best, second)
        elif time[k] < best:
            leader[0, row] = k
        best = min(best, time[k])
    if rule >= CLUSTER_SUFFERAGE:
        ready.drift[row] = np.inf
    elif rule == SUFFERAGE:
        ready.second[row] = second
        ready.key[row] = best - second if second < np.inf else 0.0
    else:
        ready.key[row] = best if rule == MINMIN else -best
    ready.best[row] = best
    rows.stale[row] = False


@leaf
def _note_two_best(rows: ContendedRows, row: int, k: int, best: float, second: float) -> float:
    """Let place k take part in the two best times of a row; returns the second best time."""
    leader, time, after = rows.leader, rows.time[k], rows.next_time[k]
    if time < best:
        leader[1, row] = k if after < best else leader[0, row]
        leader[0, row] = k
    elif time < second:
        leader[1, row] = k
    return min(second, after, max(time, best))
