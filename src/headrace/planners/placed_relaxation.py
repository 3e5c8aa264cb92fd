"""Least times before tasks at each place: a relaxation in which every task may choose its place freely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, inner
from headrace.model.graph import Floats, Ints

_MOST_STEPS = 20
"""Maximum number of times examined for a task at a place."""


class HopTimes(NamedTuple):
    """[places] the quickest hop into a place, or out of it, and the quickest one across the border of its zone."""

    latency: Floats
    seconds_per_byte: Floats
    border_latency: Floats
    border_seconds_per_byte: Floats


class PlacedTasks(NamedTuple):
    """Tasks with their minimum run time at each place and minimum use of it."""

    order: Ints
    ptr: Ints
    before: Ints
    """The predecessors of each task, each once,"""
    size: Floats
    """and the size of the largest item read from each of them."""
    quickest: Floats
    """[tasks, places] least run time."""
    area: Floats
    """[tasks, places] least use of the place's capacity."""
    capacity: Floats
    """Capacity of each place."""
    zone: Int64s
    """The zone of each place, numbered from 0."""
    into: HopTimes
    out: HopTimes
    """Of last hops into each place, and of first hops out of it."""


class Sent(NamedTuple):
    """[predecessors, zones] when the data of each predecessor of a task can have left its place."""

    within: Floats
    """For other places of the same zone."""
    beyond: Floats
    """For this zone, if it was made in another one."""
    made: Floats
    """When it can have been made in another zone; without data, in any."""


@entry
def least_before(tasks: PlacedTasks, least_here: Floats) -> None:
    """Raise `least_here` [tasks, places] to the minimum time before a task can start at each place.

    With all edges reversed it gives the minimum time after tasks.

    A predecessor either ran at the same place, or its data took at least the first and the last hop, and from another
    zone also the hops across the borders of both. For a given time, the predecessors whose data would arrive later from
    elsewhere must have run here and shared the capacity of this place; if that takes longer, the task cannot start by
    that time. O(edges * places), times at most 20 if predecessors share a place.
    """
    ptr, others, size, quickest, zone = tasks.ptr, tasks.before, tasks.size, tasks.quickest, tasks.zone
    area, capacity = tasks.area, tasks.capacity
    places, zones = quickest.shape[1], zone.max() + 1
    soonest = np.empty((len(tasks.order), zones))
    most = 0
    for task in range(len(tasks.order)):
        most = max(most, ptr[task + 1] - ptr[task])
    sent = Sent(np.empty((most, zones)), np.empty((most, zones)), np.empty((most, zones)))
    remote = np.empty(most)
    for task in tasks.order:
        first, last = ptr[task], ptr[task + 1]
        for e in range(first, last):
            _send(tasks, others[e], size[e], least_here, soonest, sent, e - first)
        for place in range(places):
            bound = least_here[task, place]
            for e in range(first, last):
                maker = others[e]
                remote[e - first] = _arrival(tasks, size[e], place, soonest[maker], sent, e - first)
                here = least_here[maker, place] + quickest[maker, place]
                bound = max(bound, min(here, remote[e - first]))
            if last - first > 1:
                bound = _crowded(place, first, last, others, remote, area, capacity[place], least_here, bound)
            least_here[task, place] = bound
        soonest[task] = np.inf
        for place in range(places):
            finish = least_here[task, place] + quickest[task, place]
            soonest[task, zone[place]] = min(soonest[task, zone[place]], finish)


@inner
def _send(
    tasks: PlacedTasks, maker: int, size: float, least_here: Floats, soonest: Floats, sent: Sent, number: int
) -> None:
    """Note when the data of a task can have left its place: O(places + zones)."""
    quickest, zone, out = tasks.quickest, tasks.zone, tasks.out
    within, beyond, made = sent.within[number], sent.beyond[number], sent.made[number]
    if size == 0.0:
        made[:] = soonest[maker].min()
        return
    within[:], beyond[:] = np.inf, np.inf
    for place in range(len(zone)):
        finish = least_here[maker, place] + quickest[maker, place]
        hop = out.latency[place] + size * out.seconds_per_byte[place]
        border = out.border_latency[place] + size * out.border_seconds_per_byte[place]
        within[zone[place]] = min(within[zone[place]], finish + hop)
        beyond[zone[place]] = min(beyond[zone[place]], finish + max(hop, border))
    _least_of_others(beyond, beyond)
    _least_of_others(soonest[maker], made)


@inner
def _least_of_others(values: Floats, least: Floats) -> None:
    """For each value, the least of all others; `least` may be the same array."""
    first, second, at = np.inf, np.inf, -1
    for k in range(len(values)):
        if values[k] < first:
            first, second, at = values[k], first, k
        else:
            second = min(second, values[k])
    for k in range(len(least)):
        least[k] = second if k == at else first


@inner
def _arrival(tasks: PlacedTasks, size: float, place: int, soonest: Floats, sent: Sent, number: int) -> float:
    """The earliest time at which data can be at a place, if it comes from another one."""
    here, into = tasks.zone[place], tasks.into
    if size == 0.0:
        return float(sent.made[number, here])
    hop = into.latency[place] + size * into.seconds_per_byte[place]
    border = into.border_latency[place] + size * into.border_seconds_per_byte[place]
    near = max(sent.within[number, here], soonest[here] + hop)
    far = max(sent.beyond[number, here], sent.made[number, here] + max(hop, border))
    return float(min(near, far))


@inner
def _crowded(
    place: int,
    first: int,
    last: int,
    others: Ints,
    remote: Floats,
    area: Floats,
    capacity: float,
    least_here: Floats,
    bound: float,
) -> float:
    """The latest start time from `bound` up that is impossible because predecessors share the place.

    Between two arrival times of data from elsewhere, the same predecessors share the place, so the search goes from one
    arrival to the next; after _MOST_STEPS the time reached is still a valid bound.
    """
    for _ in range(_MOST_STEPS):
        until = _shared_until(place, first, last, others, remote, area, capacity, least_here, bound)
        if until <= bound:
            break
        following = np.inf
        for e in range(last - first):
            if remote[e] > bound:
                following = min(following, remote[e])
        bound = min(until, following)
    return bound


@inner
def _shared_until(
    place: int,
    first: int,
    last: int,
    others: Ints,
    remote: Floats,
    area: Floats,
    capacity: float,
    least_here: Floats,
    moment: float,
) -> float:
    """How long the place is shared by predecessors whose data would arrive from elsewhere after `moment`."""
    total, since = 0.0, np.inf
    for e in range(first, last):
        if remote[e - first] > moment:
            total += area[others[e], place]
            since = min(since, least_here[others[e], place])
    return since + total / capacity if since < np.inf else 0.0
