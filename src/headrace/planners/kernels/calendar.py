"""Busy times of many resources (cores, links) as sorted blocks, for compiled loops.

Each resource has a run of blocks [start, end) in one pool; neighbours that touch are merged, so a
packed resource is one block and a search looks at gaps only. Runs that are full move to the end of
the pool with twice the room; a pool that is full is reported, and the caller starts over with a
larger one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.arrays.compiling import inner

FIRST_ROOM = 4


class Calendar(NamedTuple):
    offset: Any
    room: Any
    length: Any
    start: Any
    end: Any
    used: Any
    """[blocks of the pool in use, 1 if the pool was too small]"""


def new_calendar(resources: int, blocks: int) -> Calendar:
    """A calendar with nothing booked; a resource takes room when it is first booked."""
    return Calendar(
        np.zeros(resources, np.int64),
        np.zeros(resources, np.int32),
        np.zeros(resources, np.int32),
        np.empty(blocks),
        np.empty(blocks),
        np.zeros(2, np.int64),
    )


@inner
def first_after(calendar, resource, time):
    """Index of the first block that ends after `time`: O(log blocks)."""
    base = calendar.offset[resource]
    low, high = 0, calendar.length[resource]
    while low < high:
        middle = (low + high) // 2
        if calendar.end[base + middle] > time:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def earliest(calendar, resource, ready, duration):
    """Earliest time from `ready` on at which the resource is free for `duration`."""
    base = calendar.offset[resource]
    time = ready
    for i in range(first_after(calendar, resource, ready), calendar.length[resource]):
        if calendar.start[base + i] >= time + duration:
            return time
        time = max(time, calendar.end[base + i])
    return time


@inner
def _open_slot(calendar, resource, at):
    """Make room for a block at index `at`; False if the pool is full."""
    length = calendar.length[resource]
    if length == calendar.room[resource]:
        room = max(FIRST_ROOM, 2 * length)
        base = calendar.used[0]
        if base + room > len(calendar.start):
            calendar.used[1] = 1
            return False
        calendar.used[0] += room
        old = calendar.offset[resource]
        for i in range(length):
            calendar.start[base + i] = calendar.start[old + i]
            calendar.end[base + i] = calendar.end[old + i]
        calendar.offset[resource] = base
        calendar.room[resource] = room
    base = calendar.offset[resource]
    for i in range(length, at, -1):
        calendar.start[base + i] = calendar.start[base + i - 1]
        calendar.end[base + i] = calendar.end[base + i - 1]
    calendar.length[resource] = length + 1
    return True


@inner
def _close_slot(calendar, resource, at):
    base = calendar.offset[resource]
    length = calendar.length[resource]
    for i in range(at, length - 1):
        calendar.start[base + i] = calendar.start[base + i + 1]
        calendar.end[base + i] = calendar.end[base + i + 1]
    calendar.length[resource] = length - 1


@inner
def book(calendar, resource, start, end):
    """Mark [start, end) busy. Returns what `unbook` needs: (how, index, old start, old end).

    An empty block is kept too where nothing touches it, so that nothing is booked across it later.
    """
    at = first_after(calendar, resource, start)
    base = calendar.offset[resource]
    joins_left = at > 0 and calendar.end[base + at - 1] == start
    joins_right = at < calendar.length[resource] and calendar.start[base + at] == end
    if joins_left and joins_right:
        old_start, old_end = calendar.start[base + at], calendar.end[base + at - 1]
        calendar.end[base + at - 1] = calendar.end[base + at]
        _close_slot(calendar, resource, at)
        return 3, at, old_start, old_end
    if joins_left:
        old_end = calendar.end[base + at - 1]
        calendar.end[base + at - 1] = end
        return 1, at - 1, 0.0, old_end
    if joins_right:
        old_start = calendar.start[base + at]
        calendar.start[base + at] = start
        return 2, at, old_start, 0.0
    if not _open_slot(calendar, resource, at):
        return 0, 0, 0.0, 0.0
    base = calendar.offset[resource]
    calendar.start[base + at] = start
    calendar.end[base + at] = end
    return 4, at, 0.0, 0.0


@inner
def unbook(calendar, resource, how, at, old_start, old_end):
    """Take the latest booking of a resource back."""
    base = calendar.offset[resource]
    if how == 1:
        calendar.end[base + at] = old_end
    elif how == 2:
        calendar.start[base + at] = old_start
    elif how == 3:
        joined_end = calendar.end[base + at - 1]
        _open_slot(calendar, resource, at)
        base = calendar.offset[resource]
        calendar.start[base + at] = old_start
        calendar.end[base + at] = joined_end
        calendar.end[base + at - 1] = old_end
    elif how == 4:
        _close_slot(calendar, resource, at)
