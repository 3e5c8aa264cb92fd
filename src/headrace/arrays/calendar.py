"""Bookings of many resources (cores, links, disks) over time, for compiled loops.

Each resource has a contiguous run of entries in one pool. A full run moves to the end of the pool with twice the room;
when the pool is full, `full` returns true, nothing is booked, and the caller continues with a `larger` calendar. Two
kinds:

- exclusive: one booking at a time. Entries are busy blocks [start, end); neighbours that touch are merged, so a
  packed resource is one block and a search looks at gaps only.
- shared: bookings add up. Entries are (start, level): the level holds until the next entry; before the first it
  is 0. Neighbours of one level are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import leaf
from headrace.model.graph import Floats, Ints

FIRST_ROOM = 4


class Calendar(NamedTuple):
    offset: Int64s
    """Where the run of each resource begins in the pool,"""
    room: Ints
    """how many entries it can have there,"""
    length: Ints
    """and how many it has."""
    start: Floats
    end: Floats
    """Exclusive: the end of each block. Empty for shared resources."""
    level: Floats
    """Shared: how much is in use from the start of each entry on. Empty for exclusive resources."""
    used: Int64s
    """[entries of the pool in use, 1 if the pool was too small]"""


class Booking(NamedTuple):
    """What `cancel` needs to undo the latest booking of a resource."""

    how: int
    at: int
    old_start: float
    old_end: float


NOT_BOOKED, LONGER_LEFT, LONGER_RIGHT, JOINED, INSERTED = 0, 1, 2, 3, 4
"""How a block was booked: not at all, by extending its left or right neighbour, by joining both, or as a new block."""


def exclusive_calendar(resources: int, entries: int) -> Calendar:
    """An empty calendar of exclusive resources. A resource takes room in the pool when it is first booked."""
    return _new_calendar(resources, entries, np.empty(entries), np.empty(0))


def shared_calendar(resources: int, entries: int) -> Calendar:
    """An empty calendar of shared resources."""
    return _new_calendar(resources, entries, np.empty(0), np.empty(entries))


def _new_calendar(resources: int, entries: int, end: Floats, level: Floats) -> Calendar:
    return Calendar(
        offset=np.zeros(resources, np.int64),
        room=np.zeros(resources, np.int32),
        length=np.zeros(resources, np.int32),
        start=np.empty(entries),
        end=end,
        level=level,
        used=np.zeros(2, np.int64),
    )


def larger(calendar: Calendar) -> Calendar:
    """The same bookings in a pool of twice the size."""
    calendar.used[1] = 0
    more = np.empty(len(calendar.start))
    return calendar._replace(
        start=np.concatenate((calendar.start, more)),
        end=np.concatenate((calendar.end, more[: len(calendar.end)])),
        level=np.concatenate((calendar.level, more[: len(calendar.level)])),
    )


@leaf
def full(calendar: Calendar) -> bool:
    """Whether the pool was too small for a booking."""
    return calendar.used[1] != 0


@leaf
def clear(calendar: Calendar) -> None:
    """Cancel all bookings."""
    calendar.length[:] = 0
    calendar.room[:] = 0
    calendar.used[:] = 0


@leaf
def last_end(calendar: Calendar, resource: int) -> float:
    """The end of the last use of an exclusive resource, or of a shared one without open bookings; 0: never used."""
    length = calendar.length[resource]
    if length == 0:
        return 0.0
    last = calendar.offset[resource] + length - 1
    return calendar.end[last] if len(calendar.end) > 0 else calendar.start[last]


@leaf
def _insert(calendar: Calendar, values: Floats, resource: int, at: int, start: float, value: float) -> bool:
    """Insert an entry at index `at`; `values` are the ends or the levels. False if the pool is full."""
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
            values[base + i] = values[old + i]
        calendar.offset[resource] = base
        calendar.room[resource] = room
    base = calendar.offset[resource]
    for i in range(length, at, -1):
        calendar.start[base + i] = calendar.start[base + i - 1]
        values[base + i] = values[base + i - 1]
    calendar.start[base + at] = start
    values[base + at] = value
    calendar.length[resource] = length + 1
    return True


@leaf
def _remove(calendar: Calendar, values: Floats, resource: int, at: int) -> None:
    """Remove the entry at index `at`."""
    base = calendar.offset[resource]
    length = calendar.length[resource]
    for i in range(at, length - 1):
        calendar.start[base + i] = calendar.start[base + i + 1]
        values[base + i] = values[base + i + 1]
    calendar.length[resource] = length - 1


# Exclusive resources


@leaf
def _first_after(calendar: Calendar, resource: int, time: float) -> int:
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


@leaf
def earliest(calendar: Calendar, resource: int, ready: float, duration: float) -> float:
    """Earliest time from `ready` on at which an exclusive resource is free for `duration`."""
    base = calendar.offset[resource]
    time = ready
    for i in range(_first_after(calendar, resource, ready), calendar.length[resource]):
        if calendar.start[base + i] >= time + duration:
            return time
        time = max(time, calendar.end[base + i])
    return time


@leaf
def earliest_common(
    calendar: Calendar, resources: Int64s, durations: Floats, count: int, ready: float
) -> float:
    """Earliest time from `ready` on at which the first `count` resources are all free, each for its own duration."""
    time = ready
    again = True
    while again:
        again = False
        for i in range(count):
            free = earliest(calendar, resources[i], time, durations[i])
            if free > time:
                time = free
                again = count > 1
    return time


@leaf
def book(calendar: Calendar, resource: int, start: float, end: float) -> Booking:
    """Book an exclusive resource for [start, end), where it is free.

    An empty block that touches no other is stored too, so that nothing is booked across it later.
    """
    ends = calendar.end
    at = _first_after(calendar, resource, start)
    base = calendar.offset[resource]
    joins_left = at > 0 and ends[base + at - 1] == start
    joins_right = at < calendar.length[resource] and calendar.start[base + at] == end
    if joins_left and joins_right:
        old_start, old_end = calendar.start[base + at], ends[base + at - 1]
        ends[base + at - 1] = ends[base + at]
        _remove(calendar, ends, resource, at)
        return Booking(JOINED, at, old_start, old_end)
    if joins_left:
        old_end = ends[base + at - 1]
        ends[base + at - 1] = end
        return Booking(LONGER_LEFT, at - 1, 0.0, old_end)
    if joins_right:
        old_start = calendar.start[base + at]
        calendar.start[base + at] = start
        return Booking(LONGER_RIGHT, at, old_start, 0.0)
    if not _insert(calendar, ends, resource, at, start, end):
        return Booking(NOT_BOOKED, 0, 0.0, 0.0)
    return Booking(INSERTED, at, 0.0, 0.0)


@leaf
def cancel(calendar: Calendar, resource: int, booking: Booking) -> None:
    """Undo the latest booking of an exclusive resource."""
    base, at = calendar.offset[resource], booking.at
    if booking.how == LONGER_LEFT:
        calendar.end[base + at] = booking.old_end
    elif booking.how == LONGER_RIGHT:
        calendar.start[base + at] = booking.old_start
    elif booking.how == JOINED:
        joined_end = calendar.end[base + at - 1]
        _insert(calendar, calendar.end, resource, at, booking.old_start, joined_end)
        calendar.end[calendar.offset[resource] + at - 1] = booking.old_end
    elif booking.how == INSERTED:
        _remove(calendar, calendar.end, resource, at)


@leaf
def is_packed(calendar: Calendar, resource: int) -> bool:
    """Whether an exclusive resource is busy from 0 without a gap, so that its first free time is its end."""
    if calendar.length[resource] == 0:
        return True
    return calendar.length[resource] == 1 and calendar.start[calendar.offset[resource]] == 0.0


# Shared resources


@leaf
def _last_until(calendar: Calendar, resource: int, time: float) -> int:
    """Index of the last entry at or before `time`; -1 if there is none: O(log entries)."""
    base = calendar.offset[resource]
    low, high = 0, calendar.length[resource]
    while low < high:
        middle = (low + high) // 2
        if calendar.start[base + middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@leaf
def _entry_at(calendar: Calendar, resource: int, time: float) -> int:
    """The index of an entry exactly at `time`, inserted if there is none; -1 if the pool is full."""
    at = _last_until(calendar, resource, time)
    base = calendar.offset[resource]
    if at >= 0 and calendar.start[base + at] == time:
        return at
    level = calendar.level[base + at] if at >= 0 else 0.0
    return at + 1 if _insert(calendar, calendar.level, resource, at + 1, time, level) else -1


@leaf
def _merge(calendar: Calendar, resource: int, at: int) -> None:
    """Remove an entry that does not change the level."""
    if at < 0 or at >= calendar.length[resource]:
        return
    base = calendar.offset[resource]
    before = calendar.level[base + at - 1] if at > 0 else 0.0
    if calendar.level[base + at] == before:
        _remove(calendar, calendar.level, resource, at)


@leaf
def occupy(calendar: Calendar, resource: int, start: float, end: float, amount: float) -> None:
    """Add `amount` to a shared resource from start to end, which may be inf; a negative amount undoes that.

    O(log entries + entries moved or passed).
    """
    if not end > start:
        return
    first = _entry_at(calendar, resource, start)
    if first < 0:
        return
    last = calendar.length[resource]
    if end < np.inf:
        last = _entry_at(calendar, resource, end)
        if last < 0:
            return
    base = calendar.offset[resource]
    for i in range(first, last):
        calendar.level[base + i] += amount
    if end < np.inf:
        _merge(calendar, resource, last)
    _merge(calendar, resource, first)


@leaf
def exceeded_until(calendar: Calendar, resource: int, start: float, end: float, most: float) -> float:
    """-1 if the level is at most `most` from start to end; else the end of the last stretch above it, or inf."""
    base = calendar.offset[resource]
    length = calendar.length[resource]
    found = -1.0
    for i in range(max(0, _last_until(calendar, resource, start)), length):
        if calendar.start[base + i] >= end:
            break
        if calendar.level[base + i] > most:
            after = calendar.start[base + i + 1] if i + 1 < length else np.inf
            if after > start:
                found = after
    return found


@leaf
def first_fit(calendar: Calendar, resource: int, ready: float, duration: float, most: float) -> float:
    """Earliest time from `ready` on at which the level stays at most `most` for `duration`; inf if never."""
    base = calendar.offset[resource]
    length = calendar.length[resource]
    time = ready
    for i in range(max(0, _last_until(calendar, resource, ready)), length):
        if calendar.start[base + i] >= time + duration and calendar.start[base + i] > time:
            return time
        if calendar.level[base + i] > most:
            after = calendar.start[base + i + 1] if i + 1 < length else np.inf
            time = max(time, after)
    return time


@leaf
def low_from(calendar: Calendar, resource: int, most: float) -> float:
    """The time from which the level of a shared resource stays at most `most`; 0 if it always is."""
    base, length = calendar.offset[resource], calendar.length[resource]
    at = length - 1
    while at >= 0 and calendar.level[base + at] <= most:
        at -= 1
    if at < 0:
        return 0.0
    return calendar.start[base + at + 1] if at + 1 < length else 0.0
