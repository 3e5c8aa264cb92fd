"""How much of many resources (cores of a host, bytes of a disk) is in use over time, for compiled loops.

Each resource has a run of (moment, level): the level holds from that moment until the next; before the first it
is 0. Neighbours of one level are merged, so a pool that is packed is a few entries. Runs that are full move to the
end of the store with twice the room; a store that is full is reported, and the caller starts over with a larger one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.arrays.compiling import inner

FIRST_ROOM = 8


class Steps(NamedTuple):
    offset: Any
    room: Any
    length: Any
    time: Any
    level: Any
    used: Any
    """[entries of the store in use, 1 if the store was too small]"""


def new_steps(resources: int, entries: int) -> Steps:
    """Nothing in use."""
    return Steps(
        np.zeros(resources, np.int64),
        np.zeros(resources, np.int32),
        np.zeros(resources, np.int32),
        np.empty(entries),
        np.empty(entries),
        np.zeros(2, np.int64),
    )


@inner
def last_until(steps, r, time):
    """Index of the last entry at or before `time`; -1 if there is none: O(log entries)."""
    base = steps.offset[r]
    low, high = 0, steps.length[r]
    while low < high:
        middle = (low + high) // 2
        if steps.time[base + middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inner
def _open_entry(steps, r, at, time, level):
    length = steps.length[r]
    if length == steps.room[r]:
        room = max(FIRST_ROOM, 2 * length)
        base = steps.used[0]
        if base + room > len(steps.time):
            steps.used[1] = 1
            return False
        steps.used[0] += room
        old = steps.offset[r]
        for i in range(length):
            steps.time[base + i] = steps.time[old + i]
            steps.level[base + i] = steps.level[old + i]
        steps.offset[r] = base
        steps.room[r] = room
    base = steps.offset[r]
    for i in range(length, at, -1):
        steps.time[base + i] = steps.time[base + i - 1]
        steps.level[base + i] = steps.level[base + i - 1]
    steps.time[base + at] = time
    steps.level[base + at] = level
    steps.length[r] = length + 1
    return True


@inner
def _close_entry(steps, r, at):
    base = steps.offset[r]
    length = steps.length[r]
    for i in range(at, length - 1):
        steps.time[base + i] = steps.time[base + i + 1]
        steps.level[base + i] = steps.level[base + i + 1]
    steps.length[r] = length - 1


@inner
def _entry_at(steps, r, time):
    """The index of an entry exactly at `time`, made if there is none; -1 if the store is full."""
    at = last_until(steps, r, time)
    if at >= 0 and steps.time[steps.offset[r] + at] == time:
        return at
    level = steps.level[steps.offset[r] + at] if at >= 0 else 0.0
    if not _open_entry(steps, r, at + 1, time, level):
        return -1
    return at + 1


@inner
def _merge(steps, r, at):
    if at < 0 or at >= steps.length[r]:
        return
    base = steps.offset[r]
    before = steps.level[base + at - 1] if at > 0 else 0.0
    if steps.level[base + at] == before:
        _close_entry(steps, r, at)


@inner
def occupy(steps, r, start, end, amount):
    """Add `amount` from start to end (which may be inf): O(log entries + entries moved or passed)."""
    if not end > start:
        return
    first = _entry_at(steps, r, start)
    if first < 0:
        return
    last = steps.length[r]
    if end < np.inf:
        last = _entry_at(steps, r, end)
        if last < 0:
            return
    base = steps.offset[r]
    for i in range(first, last):
        steps.level[base + i] += amount
    if end < np.inf:
        _merge(steps, r, last)
    _merge(steps, r, first)


@inner
def blocked_until(steps, r, start, end, most):
    """-1 if the level is at most `most` from start to end; else when the last stretch above it ends (or inf)."""
    base = steps.offset[r]
    length = steps.length[r]
    found = -1.0
    for i in range(max(0, last_until(steps, r, start)), length):
        if steps.time[base + i] >= end:
            break
        if steps.level[base + i] > most:
            after = steps.time[base + i + 1] if i + 1 < length else np.inf
            if after > start:
                found = after
    return found


@inner
def first_fit(steps, r, ready, seconds, most):
    """The earliest moment from `ready` on with the level at most `most` for so many seconds; inf if never."""
    base = steps.offset[r]
    length = steps.length[r]
    time = ready
    for i in range(max(0, last_until(steps, r, ready)), length):
        if steps.time[base + i] >= time + seconds and steps.time[base + i] > time:
            return time
        if steps.level[base + i] > most:
            after = steps.time[base + i + 1] if i + 1 < length else np.inf
            time = max(time, after)
    return time
