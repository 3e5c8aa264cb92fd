"""Sweeps on a STAR under rules that compare hosts: the next task, with as few completion times as possible.

If every task of a level gets its inputs from the origin, placing a task at a place makes others complete later there,
by no more than the link of the place and its hosts are busy longer, and nowhere else. The **score** of a row (a ready
task) is what its rule maximises: minus its best completion time, its best completion time, or the difference to the
second best. When it was computed, it depended on one or two places. As times only grow,

- the score of min-min can only fall;
- that of max-min rises by at most the growth of the place of the best time;
- for a best time b at place p and a second best s at place q, that of sufferage is at most s + growth of q - b while
  p remains the best, and otherwise at most b + growth of p - s.

So each row has an upper bound of its score, which rises with the places that it depends on; blocks of rows have the
largest of each place. Only rows whose bound is as large as the best score are computed again. Rows that read an item
which has just been sent are computed at once, as they may complete earlier.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Calendar
from headrace.arrays.compiling import inner, leaf
from headrace.arrays.problem import TaskArrays
from headrace.planners.batch.arrivals import packed_until, return_seconds
from headrace.planners.batch.completion_matrix import _fill_send_seconds
from headrace.planners.batch.lots import lot
from headrace.planners.batch.records import (
    MAXMIN,
    MINMIN,
    SUFFERAGE,
    Availability,
    HostGroups,
    ReadyTasks,
    SweepMatrix,
    SweepRows,
    TaskInputs,
)
from headrace.planners.partial_schedule import Transfers

BLOCK = 128
"""Rows per block."""
_SLACK = 1e-11
"""Sums in another order differ by less than this share."""


@inner
def fill_rows(
    rule: int,
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    one: SweepMatrix,
    rows: SweepRows,
    links: Calendar,
) -> None:
    """Compute all rows for the first time: O(rows * (places * inputs + groups)). `one` is room for a single row."""
    for k in range(len(groups.places)):
        rows.busy_until[k] = packed_until(links, groups.in_link[k])
    for row in range(len(rows.score)):
        task = ready.task[row]
        for g in range(rows.run_seconds.shape[1]):
            rows.run_seconds[row, g] = tasks.work[task] / groups.group_rate[tasks.speed_class[task], g]
        for k in range(len(groups.places)):
            rows.return_seconds[row, k] = return_seconds(groups, inputs, task, k)
            _fill_sends(tasks, groups, inputs, one, rows, task, row, k)
        _compute(rule, groups, available, rows, row)
    for block in range(rows.bound.shape[0]):
        _bound_block(rows, block)


@inner
def _fill_sends(
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    one: SweepMatrix,
    rows: SweepRows,
    task: int,
    row: int,
    k: int,
) -> None:
    """What is still to be sent to place k for a task."""
    one.task[0] = task
    one.held[k, 0] = 0.0
    _fill_send_seconds(tasks, groups, inputs, one, k, 0)
    rows.held[row, k] = one.held[k, 0]
    for j in range(rows.send_seconds.shape[1]):
        rows.send_seconds[row, j, k] = one.send_seconds[j, k, 0]


@leaf
def _compute(rule: int, groups: HostGroups, available: Availability, rows: SweepRows, row: int) -> float:
    """Compute the score of a row and the bounds that follow from it; returns its best completion time."""
    best, second, where, next_where = np.inf, np.inf, -1, -1
    send, held, run, back = (
        rows.send_seconds[row], rows.held[row], rows.run_seconds[row], rows.return_seconds[row],
    )  # fmt: skip
    for k in range(len(held)):
        arrival = rows.busy_until[k] + send[0, k]
        for j in range(1, send.shape[0]):
            arrival += send[j, k]
        arrival = max(arrival, held[k])
        rows.arrival[k] = arrival
        time, after = np.inf, np.inf
        for g in range(groups.place_group[k], groups.place_group[k + 1]):
            new = max(arrival, available.first[0, g]) + run[g] + back[k]
            if rule == SUFFERAGE:
                other = max(arrival, available.second[0, g]) + run[g] + back[k]
                after = min(min(after, other), max(new, time))
            time = min(time, new)
        if rule == SUFFERAGE:
            following = min(after, max(best, time))
            if following < second:
                second = following
                next_where = k if after <= max(best, time) or time >= best else where
        if time < best:
            best, where = time, k
    _store(rule, rows, row, best, second, where, next_where)
    return best


@leaf
def _store(
    rule: int, rows: SweepRows, row: int, best: float, second: float, where: int, next_where: int
) -> None:
    nowhere = len(rows.growth) - 1
    first = where if where >= 0 else nowhere
    other, loss = nowhere, -np.inf
    if rule == MINMIN:
        score = -best
        rise = score
    elif rule == MAXMIN:
        score = best
        rise = best - rows.growth[first]
    elif second < np.inf:
        score, other = second - best, next_where
        rise, loss = -score - rows.growth[first], score - rows.growth[other]
    else:
        score, first, rise, loss = 0.0, nowhere, -np.inf, 0.0
    rows.score[row] = score
    rows.place[row, 0], rows.place[row, 1] = first, other
    rows.base[row, 0], rows.base[row, 1] = rise, loss
    rows.computed[row] = rows.step[0]


@leaf
def _bound_block(rows: SweepRows, block: int) -> None:
    """The largest base of each place among the unplaced rows of a block."""
    top = rows.bound[block]
    top[:] = -np.inf
    for row in range(block * BLOCK, min((block + 1) * BLOCK, len(rows.score))):
        if rows.unplaced[row]:
            for j in range(2):
                top[rows.place[row, j]] = max(top[rows.place[row, j]], rows.base[row, j])


@leaf
def _is_exact(rows: SweepRows, row: int) -> bool:
    computed = rows.computed[row]
    return rows.changed[rows.place[row, 0]] <= computed and rows.changed[rows.place[row, 1]] <= computed


@leaf
def _least(best: float, tolerance: float) -> float:
    """The least score that can be chosen, given the best one; less by what rounding can do."""
    if abs(best) == np.inf:
        return best
    return best - max(tolerance, 0.0) * abs(best) - _SLACK * abs(best)


@leaf
def next_sweep_row(
    rule: int,
    tolerance: float,
    seed: int,
    groups: HostGroups,
    available: Availability,
    ready: ReadyTasks,
    rows: SweepRows,
) -> int:
    """The unplaced row with the largest score, ties: the first; or one drawn among those close to it.

    O(rows / BLOCK * places), and O(BLOCK + inputs * places + groups) for each row that is computed again.
    """
    blocks = rows.bound.shape[0]
    likely = 0
    for block in range(blocks):
        rows.most[block] = _most(rows, block)
        if rows.most[block] > rows.most[likely]:
            likely = block
    chosen = _compute_block(rule, tolerance, groups, available, rows, likely, -1)
    for block in range(blocks):
        best = rows.score[chosen] if chosen >= 0 else -np.inf
        if block != likely and rows.most[block] >= _least(best, tolerance):
            chosen = _compute_block(rule, tolerance, groups, available, rows, block, chosen)
    if tolerance < 0.0 or chosen < 0:
        return chosen
    return _drawn(tolerance, seed, ready, rows, chosen)


@leaf
def _most(rows: SweepRows, block: int) -> float:
    """An upper bound of the scores in a block."""
    top, growth, most = rows.bound[block], rows.growth, -np.inf
    for k in range(len(top)):
        if top[k] > -np.inf:
            most = max(
                most, top[k] + growth[k] + (0.0 if top[k] == np.inf else _SLACK * (abs(top[k]) + growth[k]))
            )
    return most


@leaf
def _compute_block(
    rule: int,
    tolerance: float,
    groups: HostGroups,
    available: Availability,
    rows: SweepRows,
    block: int,
    chosen: int,
) -> int:
    """Compute the rows of a block whose bound is large enough; returns the best row so far."""
    best = rows.score[chosen] if chosen >= 0 else -np.inf
    growth, place, base = rows.growth, rows.place, rows.base
    computed = False
    for row in range(block * BLOCK, min((block + 1) * BLOCK, len(rows.score))):
        if not rows.unplaced[row]:
            continue
        if not _is_exact(rows, row):
            most = max(base[row, 0] + growth[place[row, 0]], base[row, 1] + growth[place[row, 1]])
            around = growth[place[row, 0]] + growth[place[row, 1]] + abs(rows.score[row])
            if most + _SLACK * around < _least(best, tolerance):
                continue
            _compute(rule, groups, available, rows, row)
            computed = True
        score = rows.score[row]
        if chosen < 0 or score > best or (score == best and row < chosen):
            chosen, best = row, score
    if computed:
        _bound_block(rows, block)
    return chosen


@leaf
def _drawn(tolerance: float, seed: int, ready: ReadyTasks, rows: SweepRows, chosen: int) -> int:
    """A row drawn among those whose score is within tolerance of the best."""
    best = rows.score[chosen]
    limit = best - tolerance * abs(best)
    least, drawn = np.uint64(0xFFFFFFFFFFFFFFFF), chosen
    for block in range(rows.bound.shape[0]):
        if _most(rows, block) < _least(best, tolerance):
            continue
        for row in range(block * BLOCK, min((block + 1) * BLOCK, len(rows.score))):
            if rows.unplaced[row] and rows.score[row] >= limit and _is_exact(rows, row):
                number = lot(seed, ready.steps[0], ready.task[row])
                if number < least:
                    drawn, least = row, number
    return drawn


@leaf
def best_host_of_row(
    rule: int, groups: HostGroups, available: Availability, rows: SweepRows, row: int
) -> int:
    """The lowest-numbered host with the best completion time of a row; -1 if no host can run it: O(hosts)."""
    best = _compute(rule, groups, available, rows, row)
    for host in range(available.host.shape[1] if best < np.inf else 0):
        k = groups.host_place[host]
        start = max(rows.arrival[k], available.host[0, host])
        if start + rows.run_seconds[row, groups.host_group[host]] + rows.return_seconds[row, k] == best:
            return host
    return -1


@leaf
def remove_sweep_row(ready: ReadyTasks, rows: SweepRows, row: int) -> None:
    """Remove the row of a placed task."""
    rows.unplaced[row] = False
    ready.row[ready.task[row]] = -1
    ready.steps[0] += 1
    _bound_block(rows, row // BLOCK)


@leaf
def note_before(groups: HostGroups, available: Availability, rows: SweepRows, k: int) -> None:
    """Remember when the hosts of place k are free, before one of them takes a task."""
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        rows.was_free[g, 0], rows.was_free[g, 1] = available.first[0, g], available.second[0, g]


@leaf
def update_place(
    rule: int, groups: HostGroups, available: Availability, rows: SweepRows, links: Calendar, k: int
) -> None:
    """Note that a task was placed at k: by how much times there can have grown."""
    end = packed_until(links, groups.in_link[k])
    grown = end - rows.busy_until[k]
    rows.busy_until[k] = end
    for g in range(groups.place_group[k], groups.place_group[k + 1]):
        grown = max(grown, available.first[0, g] - rows.was_free[g, 0])
        if rule == SUFFERAGE and available.second[0, g] < np.inf:
            grown = max(grown, available.second[0, g] - rows.was_free[g, 1])
    if rule != MINMIN:
        rows.growth[k] += grown
    rows.step[0] += 1
    rows.changed[k] = rows.step[0]


@inner
def compute_readers(
    rule: int,
    tasks: TaskArrays,
    groups: HostGroups,
    inputs: TaskInputs,
    available: Availability,
    ready: ReadyTasks,
    one: SweepMatrix,
    rows: SweepRows,
    transfers: Transfers,
    k: int,
    sent: int,
) -> None:
    """Compute the rows that read items sent to place k by transfers from number `sent` on: they need them no more."""
    for transfer in range(sent, transfers.used[0]):
        item = transfers.item[transfer]
        last = -1
        for i in range(tasks.reader_ptr[item], tasks.reader_ptr[item + 1]):
            reader = tasks.readers[i]
            row = ready.row[reader]
            if row < 0:
                continue
            _fill_sends(tasks, groups, inputs, one, rows, reader, row, k)
            _compute(rule, groups, available, rows, row)
            if last >= 0 and row // BLOCK != last:
                _bound_block(rows, last)
            last = row // BLOCK
        if last >= 0:
            _bound_block(rows, last)
