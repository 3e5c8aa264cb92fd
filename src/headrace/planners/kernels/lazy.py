"""Min-min and max-min for sweeps on a STAR: rows are brought up to date only when they may be next.

While every task of a wave takes its inputs from the origin, completion times at a place only grow, except for
tasks that read an item which has just come there. So a row as it was last seen, with what its places have
grown since, bounds its key from below; rows whose bound is above a key that is known are left alone. (For the
rules of sufferage the bounds are too weak to be worth it.)
"""

from __future__ import annotations

from headrace.planners.kernels.batch_arrays import MAXMIN, STAR
from headrace.planners.kernels.batch_arrivals import append_all, is_packed, packed_until
from headrace.planners.kernels.jit import inner
from headrace.planners.kernels.jumps import SLACK
from headrace.planners.kernels.renewal import renew

ROUNDING = 1e-12


@inner
def can_wait(rule, grid, inputs, wave, calendar, first, last):
    """Whether the tasks first .. last - 1 are a wave for which this is exact."""
    if grid.network != STAR or rule > MAXMIN:
        return False
    for k in range(len(grid.places)):
        if not is_packed(calendar, grid.in_link[k]):
            return False
    plain = 0
    for i in range(first, last):
        plain += inputs.plain[wave.task[i]]
    return plain == last - first


@inner
def begin(grid, free, wave, lazy, calendar, count):
    """All rows are up to date."""
    for k in range(len(grid.places)):
        lazy.growth[k], lazy.changed[k] = 0.0, 0
        _note_state(grid, free, lazy, calendar, k)
    for row in range(count):
        wave.here[row] = row
    _remember(wave, lazy, wave.here, count, 0)


@inner
def _note_state(grid, free, lazy, calendar, k):
    """Keep what completion times at place k depend on; returns the most that any of it has grown."""
    end = packed_until(calendar, grid.in_link[k])
    grown = end - lazy.end[k]
    lazy.end[k] = end
    for g in range(grid.place_group[k], grid.place_group[k + 1]):
        grown = max(grown, free.first[g] - lazy.first[g])
        lazy.first[g] = free.first[g]
    return grown


@inner
def after_placing(rule, grid, tasks, inputs, free, wave, lazy, calendar, moves, first, k, made, step):
    """A task went to place k with transfers from `made` on: note growth, renew readers of what came."""
    grown = _note_state(grid, free, lazy, calendar, k)
    if grown > 0.0:
        lazy.growth[k] += grown
        lazy.changed[k] = step
    count = 0
    for move in range(made, moves.count[0]):
        item = moves.item[move]
        for i in range(inputs.reader_ptr[item], inputs.reader_ptr[item + 1]):
            row = wave.row[inputs.readers[i]]
            if row >= 0 and lazy.seen[row] >= 0:
                lazy.seen[row] = -1
                wave.rest[count] = row
                count += 1
    if count > 0:
        _bring_up(rule, grid, tasks, inputs, free, wave, lazy, wave.rest, count, first, step)


@inner
def candidates(rule, tolerance, grid, tasks, inputs, free, wave, lazy, first, left, step):
    """Bring up to date all rows that may be next; writes them to `wave.rest`, ascending, returns how many."""
    live, key = wave.live, wave.key
    likely = live[0]
    for i in range(1, left):
        if key[live[i]] < key[likely]:
            likely = live[i]
    wave.rest[0] = likely
    _bring_up(rule, grid, tasks, inputs, free, wave, lazy, wave.rest, 1, first, step)
    limit = key[likely] + max(tolerance, 0.0) * abs(key[likely])
    count = _within(rule, wave, lazy, left, limit, likely)
    _bring_up(rule, grid, tasks, inputs, free, wave, lazy, wave.rest, count, first, step)
    return count


@inner
def _within(rule, wave, lazy, left, limit, likely):
    """Write the rows that may have a key of at most `limit` to `wave.rest`, ascending; returns how many."""
    live, best, rest = wave.live, wave.best, wave.rest
    growth, place, mark = lazy.growth, lazy.place, lazy.mark
    count = 0
    for i in range(left):
        row = live[i]
        least = best[row]
        if rule == MAXMIN:
            grown = growth[place[row]] - mark[row]
            least = -(best[row] * (1.0 + ROUNDING) + grown * (1.0 + SLACK))
        if least <= limit or row == likely:
            rest[count] = row
            count += 1
    return count


@inner
def _bring_up(rule, grid, tasks, inputs, free, wave, lazy, rows, count, first, step):
    """Renew these rows at every place that has changed since they were last seen."""
    seen, some = lazy.seen, wave.here
    for k in range(len(grid.places)):
        changed = lazy.changed[k]
        stale = 0
        for i in range(count):
            if seen[rows[i]] < changed:
                some[stale] = rows[i]
                stale += 1
        if stale > 0:
            append_all(tasks, inputs, wave, some, stale, first, k, lazy.end[k], grid)
            renew(rule, grid, tasks, inputs, free, wave, some, stale, first, k)
    _remember(wave, lazy, rows, count, step)


@inner
def _remember(wave, lazy, rows, count, step):
    """The place of each row's best host bounds how much its best time grows from now on."""
    times, best, places = wave.time, wave.best, wave.time.shape[1]
    for i in range(count):
        row = rows[i]
        place = 0
        while place < places - 1 and times[row, place] != best[row]:
            place += 1
        lazy.seen[row], lazy.place[row], lazy.mark[row] = step, place, lazy.growth[place]
