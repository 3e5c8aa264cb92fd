"""Traces in compiled loops: the value at a time, the next step, and the time at which work is done."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import leaf
from headrace.model.trace import TraceTable


@leaf
def piece(table: TraceTable, trace: int, where: float) -> int:
    """The piece of a trace that holds at an offset into its series: O(log steps)."""
    low, high = table.ptr[trace], table.ptr[trace + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if table.time[middle] <= where:
            low = middle
        else:
            high = middle
    return int(low)


@leaf
def place_of(table: TraceTable, trace: int, moment: float) -> float:
    """The offset into its series at which a trace is at a given time; within one period if it repeats."""
    where = moment + table.offset[trace]
    length = table.length[trace]
    if length < np.inf:
        where -= np.floor(where / length) * length
    return float(where)


@leaf
def value_at(table: TraceTable, trace: int, moment: float) -> float:
    return float(table.value[piece(table, trace, place_of(table, trace, moment))])


@leaf
def next_step(table: TraceTable, trace: int, moment: float) -> float:
    """The first time after `moment` at which a piece ends; inf if none does."""
    where = place_of(table, trace, moment)
    at = piece(table, trace, where)
    if where < table.time[at]:
        end = table.time[at]
    elif at + 1 < table.ptr[trace + 1]:
        end = table.time[at + 1]
    else:
        end = table.length[trace]
    after = moment + (end - where)
    return float(after if after > moment else np.nextafter(moment, np.inf))


@leaf
def upto(table: TraceTable, trace: int, where: float) -> float:
    """Integral from the beginning of the series to an offset within its first period."""
    at = piece(table, trace, where)
    return float(table.area[at] + (where - table.time[at]) * table.value[at])


@leaf
def finish(table: TraceTable, trace: int, start: float, amount: float) -> float:
    """The earliest time by which `amount` has been done since `start`; inf if never."""
    if not amount > 0.0:
        return start
    base = place_of(table, trace, start)
    target = upto(table, trace, base) + amount
    rounds = 0.0
    length = table.length[trace]
    if length < np.inf:
        total = table.total[trace]
        if not total > 0.0:
            return np.inf
        whole = max(0.0, np.ceil(target / total) - 1.0)
        target -= whole * total
        rounds = whole * length
    low, high = table.ptr[trace], table.ptr[trace + 1]
    while high - low > 1:  # the first piece at whose end the integral reaches the target
        middle = (low + high) // 2
        if table.area[middle] < target:
            low = middle
        else:
            high = middle
    rate = table.value[low]
    if rate == 0.0:
        return np.inf
    return float(max(start, start + (rounds + (table.time[low] + (target - table.area[low]) / rate - base))))


@leaf
def done_between(table: TraceTable, trace: int, start: float, end: float) -> float:
    """The integral from start to end."""
    if not end > start:
        return 0.0
    base = place_of(table, trace, start)
    goal = base + (end - start)
    rounds = 0.0
    length = table.length[trace]
    if goal >= length:
        count = np.floor(goal / length)
        rounds = count * table.total[trace]
        goal -= count * length
    return rounds + upto(table, trace, goal) - upto(table, trace, base)
