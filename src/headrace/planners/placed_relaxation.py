"""Least times before tasks at each place: a relaxation in which every task may choose its place freely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.model.graph import Floats, Ints

_MOST_STEPS = 20
"""Maximum number of times examined for a task at a place."""


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
    in_latency: Floats
    in_seconds_per_byte: Floats
    """Of the quickest last hop into each place."""
    out_latency: Floats
    out_seconds_per_byte: Floats
    """Of the quickest first hop out of each place."""


@entry
def least_before(tasks: PlacedTasks, least_here: Floats) -> None:
    """Raise `least_here` [tasks, places] to the minimum time before a task can start at each place.

    With all edges reversed it gives the minimum time after tasks.

    A predecessor either ran at the same place, or its data took at least the first and the last hop. For a given time,
    the predecessors whose data would arrive later from elsewhere must have run here and shared the capacity of this
    place; if that takes longer, the task cannot start by that time. O(edges * places), times at most 20 if predecessors
    share a place.
    """
    ptr, others, size, quickest = tasks.ptr, tasks.before, tasks.size, tasks.quickest
    area, capacity = tasks.area, tasks.capacity
    in_latency, in_seconds_per_byte = tasks.in_latency, tasks.in_seconds_per_byte
    out_latency, out_seconds_per_byte = tasks.out_latency, tasks.out_seconds_per_byte
    places = quickest.shape[1]
    soonest = np.empty(len(tasks.order))
    most = 0
    for task in range(len(tasks.order)):
        most = max(most, ptr[task + 1] - ptr[task])
    away = np.empty(most)
    remote = np.empty(most)
    for task in tasks.order:
        first, last = ptr[task], ptr[task + 1]
        for e in range(first, last):
            away[e - first] = _least_away(
                others[e], size[e], quickest, out_latency, out_seconds_per_byte, least_here, soonest
            )
        for place in range(places):
            bound = least_here[task, place]
            for e in range(first, last):
                maker = others[e]
                remote[e - first] = soonest[maker]
                if size[e] > 0.0:
                    hop = in_latency[place] + size[e] * in_seconds_per_byte[place]
                    remote[e - first] = max(away[e - first], soonest[maker] + hop)
                here = least_here[maker, place] + quickest[maker, place]
                bound = max(bound, min(here, remote[e - first]))
            if last - first > 1:
                bound = _crowded(place, first, last, others, remote, area, capacity[place], least_here, bound)
            least_here[task, place] = bound
        soonest[task] = np.inf
        for place in range(places):
            soonest[task] = min(soonest[task], least_here[task, place] + quickest[task, place])


@inner
def _least_away(
    maker: int,
    size: float,
    quickest: Floats,
    latency: Floats,
    seconds_per_byte: Floats,
    least_here: Floats,
    soonest: Floats,
) -> float:
    """Earliest time at which the data of a task can be at any other place."""
    if size == 0.0:
        return soonest[maker]
    least = np.inf
    for place in range(quickest.shape[1]):
        hop = latency[place] + size * seconds_per_byte[place]
        least = min(least, least_here[maker, place] + quickest[maker, place] + hop)
    return least


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
