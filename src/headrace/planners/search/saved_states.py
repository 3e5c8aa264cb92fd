"""Partial schedules saved every so many tasks, so that a list pass can continue where its order first differs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.calendar import Calendar
from headrace.arrays.compiling import inner
from headrace.planners.partial_schedule import Copies, PartialSchedule, Transfers

_MOST_BYTES = 100_000_000
"""Maximum size of all saved states together."""


class SavedStates(NamedTuple):
    """Parts of partial schedules; the arrays have one more dimension in front, the number of the state."""

    cores: Calendar
    links: Calendar
    copies: Copies
    transfers: Transfers


def room_for_states(schedule: PartialSchedule, most: int) -> SavedStates:
    """Room for at most `most` states of a schedule, and for at least one."""
    parts = (schedule.cores, schedule.links, schedule.copies, schedule.transfers)
    size = sum(array.nbytes for part in parts for array in part)
    count = max(1, min(most, _MOST_BYTES // max(size, 1)))
    cores, links, copies, transfers = (
        type(part)(*(np.empty((count, *array.shape), array.dtype) for array in part)) for part in parts
    )
    return SavedStates(cores, links, copies, transfers)  # type: ignore[arg-type]


@inner
def save(states: SavedStates, number: int, schedule: PartialSchedule) -> None:
    """Save a schedule without tentative bookings: O(its entries)."""
    _save_calendar(states.cores, number, schedule.cores)
    _save_calendar(states.links, number, schedule.links)
    to, copies = states.copies, schedule.copies
    used = copies.used[0]
    to.used[number, 0] = used
    to.head[number] = copies.head
    to.next[number, :used] = copies.next[:used]
    to.place[number, :used] = copies.place[:used]
    to.since[number, :used] = copies.since[:used]
    to.arrival[number] = copies.arrival
    to.node[number] = copies.node
    moves, transfers = states.transfers, schedule.transfers
    count = transfers.used[0]
    moves.used[number, 0] = count
    moves.item[number, :count] = transfers.item[:count]
    moves.source[number, :count] = transfers.source[:count]
    moves.target[number, :count] = transfers.target[:count]
    moves.start[number, :count] = transfers.start[:count]
    moves.finish[number, :count] = transfers.finish[:count]


@inner
def restore(states: SavedStates, number: int, schedule: PartialSchedule) -> None:
    """Make a schedule what it was when it was saved, but for its placement."""
    _restore_calendar(states.cores, number, schedule.cores)
    _restore_calendar(states.links, number, schedule.links)
    saved, copies = states.copies, schedule.copies
    used = saved.used[number, 0]
    copies.used[0] = used
    copies.head[:] = saved.head[number]
    copies.next[:used] = saved.next[number, :used]
    copies.place[:used] = saved.place[number, :used]
    copies.since[:used] = saved.since[number, :used]
    copies.arrival[:] = saved.arrival[number]
    copies.node[:] = saved.node[number]
    moves, transfers = states.transfers, schedule.transfers
    count = moves.used[number, 0]
    transfers.used[0] = count
    transfers.undo_count[0] = 0
    transfers.item[:count] = moves.item[number, :count]
    transfers.source[:count] = moves.source[number, :count]
    transfers.target[:count] = moves.target[number, :count]
    transfers.start[:count] = moves.start[number, :count]
    transfers.finish[:count] = moves.finish[number, :count]


@inner
def _save_calendar(to: Calendar, number: int, calendar: Calendar) -> None:
    entries = calendar.used[0]
    to.used[number] = calendar.used
    to.offset[number] = calendar.offset
    to.room[number] = calendar.room
    to.length[number] = calendar.length
    to.start[number, :entries] = calendar.start[:entries]
    to.end[number, :entries] = calendar.end[:entries]


@inner
def _restore_calendar(saved: Calendar, number: int, calendar: Calendar) -> None:
    entries = saved.used[number, 0]
    calendar.used[:] = saved.used[number]
    calendar.offset[:] = saved.offset[number]
    calendar.room[:] = saved.room[number]
    calendar.length[:] = saved.length[number]
    calendar.start[:entries] = saved.start[number, :entries]
    calendar.end[:entries] = saved.end[number, :entries]
