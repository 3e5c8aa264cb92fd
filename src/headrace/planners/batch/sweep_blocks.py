"""Sweeps on a STAR under MINMIN and MAXMIN: only blocks of similar tasks that may contain the next one are evaluated.

Tasks of a block read the same shared items, if possible, and have similar run times. For each block and place there are
the extremes of what its completion times are made of: seconds to send inputs, to run, to return results. Together with
the state of the place they bound the completion times of all tasks of the block, and few blocks have bounds that reach
the best time found.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar
from headrace.arrays.compiling import leaf
from headrace.planners.batch.arrivals import packed_until
from headrace.planners.batch.records import (
    MINMIN,
    Availability,
    HostGroups,
    ReadyTasks,
    SweepBlocks,
    SweepMatrix,
)

BLOCK = 64
"""Rows in a block at most."""
LISTED = 3
"""First rows that are listed for each place: as many can be placed elsewhere before a place is searched again."""
_SLACK = 1e-9
"""Bounds are weakened by this share: they add up in another order than completion times."""


@leaf
def start_blocks(
    rule: int,
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
) -> None:
    """Measure and bound all blocks: O(rows * (places * inputs + groups))."""
    blocks.left[:] = 0
    for row in range(sweep.width[0]):
        blocks.placed[row] = False
        blocks.left[blocks.block[row]] += 1
    blocks.listed[:] = 0
    for b in range(len(blocks.left)):
        measure_block(rule, sweep, blocks, b)
    for k in range(len(groups.places)):
        bound_blocks(groups, available, blocks, links, k, 0, len(blocks.left))


@leaf
def measure_block(rule: int, sweep: SweepMatrix, blocks: SweepBlocks, b: int) -> None:
    """Measure the extremes of a block: the least values under MINMIN, the largest under MAXMIN."""
    for k in range(blocks.send.shape[0]):
        measure_block_at(rule, sweep, blocks, b, k)
    low, high = blocks.first[b], blocks.first[b + 1]
    sign = 1.0 if rule == MINMIN else -1.0
    for g in range(blocks.run.shape[0]):
        run = np.inf
        for row in range(low, high):
            if not blocks.placed[row]:
                run = min(run, sign * sweep.run_seconds[g, row])
        blocks.run[g, b] = sign * run


@leaf
def measure_block_at(rule: int, sweep: SweepMatrix, blocks: SweepBlocks, b: int, k: int) -> None:
    """As `measure_block`, for what depends on the place only: O(rows of the block * inputs)."""
    sign = 1.0 if rule == MINMIN else -1.0
    least_send, least_held, least_back = np.inf, np.inf, np.inf
    for row in range(blocks.first[b], blocks.first[b + 1]):
        if blocks.placed[row]:
            continue
        send = 0.0
        for j in range(sweep.send_seconds.shape[0]):
            send += sweep.send_seconds[j, k, row]
        least_send = min(least_send, sign * send)
        least_held = min(least_held, sign * sweep.held[k, row])
        least_back = min(least_back, sign * sweep.return_seconds[k, row])
    blocks.send[k, b], blocks.held[k, b] = sign * least_send, sign * least_held
    blocks.back[k, b] = sign * least_back


@leaf
def bound_blocks(
    groups: HostGroups,
    available: Availability,
    blocks: SweepBlocks,
    links: Calendar,
    k: int,
    first: int,
    last: int,
) -> None:
    """Bound the completion times of the blocks first .. last - 1 at place k: O(blocks * groups of the place).

    From below under MINMIN, from above under MAXMIN. Blocks without tasks get any value.
    """
    end, bound, arrival = packed_until(links, groups.in_link[k]), blocks.bound, blocks.arrival
    for b in range(first, last):
        arrival[b] = max(end + blocks.send[k, b], blocks.held[k, b])
        bound[k, b] = np.inf
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        soonest = available.first[0, g]
        for b in range(first, last):
            bound[k, b] = min(bound[k, b], max(arrival[b], soonest) + blocks.run[g, b])
    for b in range(first, last):
        bound[k, b] += blocks.back[k, b]


@leaf
def _block_times(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    links: Calendar,
    k: int,
    low: int,
    high: int,
) -> None:
    """The completion times at place k of the rows low .. high - 1, into `sweep.new`."""
    end, arrival, new = packed_until(links, groups.in_link[k]), sweep.arrival, sweep.new
    send, run, held, back = sweep.send_seconds, sweep.run_seconds, sweep.held, sweep.return_seconds
    for i in range(high - low):
        arrival[i] = end + send[0, k, low + i]
    for j in range(1, send.shape[0]):
        for i in range(high - low):
            arrival[i] += send[j, k, low + i]
    for i in range(high - low):
        arrival[i] = max(arrival[i], held[k, low + i])
        new[i] = np.inf
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        soonest = available.first[0, g]
        for i in range(high - low):
            new[i] = min(new[i], max(arrival[i], soonest) + run[g, low + i] + back[k, low + i])


@leaf
def earliest_row(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
) -> int:
    """MINMIN: the row that completes first, ties by position.

    O(places), and for each place without a list O(blocks) and the rows of blocks whose bounds are low enough.
    """
    chosen, place = -1, -1
    for k in range(len(groups.places)):
        if blocks.listed[k] == 0:
            bound_blocks(groups, available, blocks, links, k, 0, len(blocks.left))
            _list_first_rows(groups, available, sweep, blocks, links, k)
        row = blocks.row[k, 0]
        if place < 0 or _before(blocks, blocks.time[k, 0], row, blocks.time[place, 0], chosen):
            chosen, place = row, k
    return chosen


@leaf
def _before(blocks: SweepBlocks, time: float, row: int, other_time: float, other: int) -> bool:
    return time < other_time or (time == other_time and blocks.order[row] < blocks.order[other])


@leaf
def _list_first_rows(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
    k: int,
) -> None:
    """List the rows that complete first at place k, from the block with the lowest bound on."""
    first = -1
    for b in range(len(blocks.left)):
        if blocks.left[b] > 0 and (first < 0 or blocks.bound[k, b] < blocks.bound[k, first]):
            first = b
    _list_rows_of(groups, available, sweep, blocks, links, k, first)
    for b in range(len(blocks.left)):
        limit = blocks.time[k, LISTED - 1] if blocks.listed[k] == LISTED else np.inf
        if b != first and blocks.left[b] > 0 and not blocks.bound[k, b] * (1.0 - _SLACK) > limit:
            _list_rows_of(groups, available, sweep, blocks, links, k, b)


@leaf
def _list_rows_of(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
    k: int,
    b: int,
) -> None:
    """Insert the rows of a block into the list of place k, which is kept in order of times."""
    low, high = blocks.first[b], blocks.first[b + 1]
    _block_times(groups, available, sweep, links, k, low, high)
    for row in range(low, high):
        time, last = sweep.new[row - low], blocks.listed[k]
        if blocks.placed[row]:
            continue
        if last == LISTED:
            if not _before(blocks, time, row, blocks.time[k, LISTED - 1], blocks.row[k, LISTED - 1]):
                continue
            last -= 1
        i = last
        while i > 0 and _before(blocks, time, row, blocks.time[k, i - 1], blocks.row[k, i - 1]):
            blocks.time[k, i], blocks.row[k, i] = blocks.time[k, i - 1], blocks.row[k, i - 1]
            i -= 1
        blocks.time[k, i], blocks.row[k, i] = time, row
        blocks.listed[k] = last + 1


@leaf
def latest_row(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
) -> int:
    """MAXMIN: the row whose best completion time is the latest, ties by position.

    O(blocks * places), and the rows of blocks whose bounds are high enough, at every place.
    """
    bound, least = blocks.bound, blocks.arrival
    for b in range(len(blocks.left)):
        least[b] = np.inf
    for k in range(bound.shape[0]):
        for b in range(len(blocks.left)):
            least[b] = min(least[b], bound[k, b])
    first = -1
    for b in range(len(blocks.left)):
        if blocks.left[b] > 0 and (first < 0 or least[b] > least[first]):
            first = b
    chosen = _latest_of(groups, available, sweep, blocks, links, first, -1)
    for b in range(len(blocks.left)):
        if b != first and blocks.left[b] > 0 and not least[b] * (1.0 + _SLACK) < blocks.time[0, 0]:
            chosen = _latest_of(groups, available, sweep, blocks, links, b, chosen)
    return chosen


@leaf
def _latest_of(
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
    b: int,
    chosen: int,
) -> int:
    """The row with the latest best time among those of a block and `chosen`, whose time is `blocks.time[0, 0]`."""
    low, high, best = blocks.first[b], blocks.first[b + 1], sweep.after
    for i in range(high - low):
        best[i] = np.inf
    for k in range(len(groups.places)):
        _block_times(groups, available, sweep, links, k, low, high)
        for i in range(high - low):
            best[i] = min(best[i], sweep.new[i])
    for row in range(low, high):
        if not blocks.placed[row] and (
            chosen < 0 or _before(blocks, -best[row - low], row, -blocks.time[0, 0], chosen)
        ):
            chosen = row
            blocks.time[0, 0] = best[row - low]
    return chosen


@leaf
def row_times(
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    sweep: SweepMatrix,
    links: Calendar,
    row: int,
) -> None:
    """Write the completion times of a row at all places to `ready.time`."""
    for k in range(len(groups.places)):
        _block_times(groups, available, sweep, links, k, row, row + 1)
        ready.time[k, row] = sweep.new[0]


@leaf
def remove_from_blocks(
    rule: int,
    groups: HostGroups,
    available: Availability,
    sweep: SweepMatrix,
    blocks: SweepBlocks,
    links: Calendar,
    row: int,
    k: int,
) -> None:
    """Note that a row has been placed at place k: O(places * (LISTED + BLOCK * inputs) + groups * BLOCK).

    Under MAXMIN also O(blocks * groups of the place).
    """
    b = blocks.block[row]
    blocks.placed[row] = True
    blocks.left[b] -= 1
    measure_block(rule, sweep, blocks, b)
    blocks.listed[k] = 0
    for other in range(blocks.row.shape[0]):
        kept = 0
        for i in range(blocks.listed[other]):
            if blocks.row[other, i] != row:
                blocks.row[other, kept], blocks.time[other, kept] = (
                    blocks.row[other, i],
                    blocks.time[other, i],
                )
                kept += 1
        blocks.listed[other] = kept
        if rule != MINMIN:
            bound_blocks(groups, available, blocks, links, other, b, b + 1)
    if rule != MINMIN:
        bound_blocks(groups, available, blocks, links, k, 0, len(blocks.left))
