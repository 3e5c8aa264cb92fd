"""Least times before tasks at each place: a relaxation in which every task may choose its place anew."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner

_MOST_STEPS = 20
"""Most moments that are looked at for a task at a place."""


@entry
def least_before(order, ptr, other, size, quick, area, capacity, near, far, least_here):
    """Raise `least_here` [tasks, places] to the least time before a task can begin at each place.

    `other[ptr[t]:ptr[t + 1]]` are the tasks that come before t, each once, and `size` the largest item that
    must come from them; `quick` [tasks, places] the least run time, `area` [tasks, places] the least use of
    `capacity` [places]. `near` and `far` are (latencies, seconds per byte) of the last hop into a place and
    of the first hop out of one. With all edges turned round it gives the least time after tasks.

    A predecessor either ran at the same place, or its data took at least the first and the last hop. If all
    whose data would come after some moment from elsewhere ran here, they shared this place's capacity: when
    that takes longer, the task cannot begin by that moment. O(edges * places), times at most 20 where
    predecessors share a place.
    """
    places = quick.shape[1]
    soonest = np.empty(len(order))
    most = 0
    for task in range(len(order)):
        most = max(most, ptr[task + 1] - ptr[task])
    away = np.empty(most)
    remote = np.empty(most)
    for task in order:
        first, last = ptr[task], ptr[task + 1]
        for e in range(first, last):
            away[e - first] = _least_away(other[e], size[e], quick, far, least_here, soonest)
        for place in range(places):
            bound = least_here[task, place]
            for e in range(first, last):
                maker = other[e]
                remote[e - first] = soonest[maker]
                if size[e] > 0.0:
                    hop = near[0][place] + size[e] * near[1][place]
                    remote[e - first] = max(away[e - first], soonest[maker] + hop)
                here = least_here[maker, place] + quick[maker, place]
                bound = max(bound, min(here, remote[e - first]))
            if last - first > 1:
                bound = _crowded(place, first, last, other, remote, area, capacity[place], least_here, bound)
            least_here[task, place] = bound
        soonest[task] = np.inf
        for place in range(places):
            soonest[task] = min(soonest[task], least_here[task, place] + quick[task, place])


@inner
def _least_away(maker, size, quick, far, least_here, soonest):
    """When the data of a task can first be at any other place."""
    if size == 0.0:
        return soonest[maker]
    least = np.inf
    for place in range(quick.shape[1]):
        hop = far[0][place] + size * far[1][place]
        least = min(least, least_here[maker, place] + quick[maker, place] + hop)
    return least


@inner
def _crowded(place, first, last, other, remote, area, capacity, least_here, bound):
    """The latest moment from `bound` up that sharing the place rules out.

    Between two moments at which data comes from elsewhere the same predecessors share the place, so the search
    goes from one to the next; after _MOST_STEPS the moment reached is a bound too.
    """
    for _ in range(_MOST_STEPS):
        until = _shared_until(place, first, last, other, remote, area, capacity, least_here, bound)
        if until <= bound:
            break
        following = np.inf
        for e in range(last - first):
            if remote[e] > bound:
                following = min(following, remote[e])
        bound = min(until, following)
    return bound


@inner
def _shared_until(place, first, last, other, remote, area, capacity, least_here, moment):
    """How long the place is shared by predecessors whose data would come after `moment` from elsewhere."""
    total, since = 0.0, np.inf
    for e in range(first, last):
        if remote[e - first] > moment:
            total += area[other[e], place]
            since = min(since, least_here[other[e], place])
    return since + total / capacity if since < np.inf else 0.0
