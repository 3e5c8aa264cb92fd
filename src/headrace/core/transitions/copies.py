"""Copy records: where each item is present, requested or in transit, and how many tasks need it there. O(1) lookups."""

from __future__ import annotations

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import ABSENT, COPIES, PRESENT


@leaf
def slot_of(table, item, place):
    """Where the search for a record begins in the hash table."""
    mixed = int(item) * 40503 + int(place) * 2654435
    return (mixed ^ (mixed >> 13)) & (len(table) - 1)


@leaf
def link_record(item_copies, copy_item, copy_place, copy_next, table, record):
    """Insert a record into the hash table and the list of its item."""
    item = copy_item[record]
    slot = slot_of(table, item, copy_place[record])
    while table[slot] >= 0:
        slot = (slot + 1) & (len(table) - 1)
    table[slot] = record
    copy_next[record] = item_copies[item]
    item_copies[item] = record


@entry
def link_records(item_copies, copy_item, copy_place, copy_next, table, count):
    """Rebuild the table and the lists for the first `count` records."""
    for record in range(count):
        link_record(item_copies, copy_item, copy_place, copy_next, table, record)


@entry
def add_records(item_copies, copy_item, copy_place, copy_status, copy_next, table, items, places):
    """Add records for the copies that exist at the start."""
    for record in range(len(items)):
        copy_item[record] = items[record]
        copy_place[record] = places[record]
        copy_status[record] = PRESENT
        link_record(item_copies, copy_item, copy_place, copy_next, table, record)


@leaf
def find_copy(state, item, place):
    """The record of an item at a place; -1 if there is none."""
    table = state.copy_table
    slot = slot_of(table, item, place)
    while True:
        record = table[slot]
        if record < 0 or (state.copy_place[record] == place and state.copy_item[record] == item):
            return record
        slot = (slot + 1) & (len(table) - 1)


@leaf
def copy_at(state, item, place):
    """The record of an item at a place, created if necessary; `reserve` has ensured that there is room."""
    record = find_copy(state, item, place)
    if record >= 0:
        return record
    record = state.counters[COPIES]
    state.counters[COPIES] = record + 1
    state.copy_item[record] = item
    state.copy_place[record] = place
    state.copy_status[record] = ABSENT
    state.copy_needed[record] = 0
    state.copy_relayed[record] = 0
    state.copy_request[record] = -1
    state.copy_outgoing[record] = -1
    link_record(
        state.item_copies, state.copy_item, state.copy_place, state.copy_next, state.copy_table, record
    )
    return record


@leaf
def status_of(state, item, place):
    """ABSENT, REQUESTED, IN_TRANSIT or PRESENT."""
    record = find_copy(state, item, place)
    return ABSENT if record < 0 else state.copy_status[record]


@leaf
def is_present(state, item, place):
    return status_of(state, item, place) == PRESENT


@leaf
def is_needed(state, item, place):
    """Whether a task that is assigned to this place, or runs there, reads the item."""
    record = find_copy(state, item, place)
    return record >= 0 and state.copy_needed[record] > 0


@leaf
def find_holder(state, item):
    """Set `holder` to the lowest-numbered reachable place that has a copy."""
    lowest = -1
    record = state.item_copies[item]
    while record >= 0:
        place = state.copy_place[record]
        if state.copy_status[record] == PRESENT and state.place_up[place] and (lowest < 0 or place < lowest):
            lowest = place
        record = state.copy_next[record]
    state.holder[item] = lowest
