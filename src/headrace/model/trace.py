"""A quantity that changes over time in steps: the availability of a host, the bandwidth of a link."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headrace.model.errors import BadPlatform
from headrace.model.graph import Floats, Ints


@dataclass(frozen=True, eq=False)
class Trace:
    """A piecewise-constant series: `value[i]` from `time[i]` up to `time[i + 1]`.

    With a finite `length` the series repeats with that period in seconds; otherwise its last value holds
    forever, and its first value applies before the start. `offset` is the position of time 0 in the series: the
    value at time t is that of the series at t + offset.

    Integrals are exact: sums of rectangles, not steps. at, between and finish take O(log n).

    >>> half = Trace([0.0, 5.0], [1.0, 0.5], length=10.0)
    >>> half.at(7.0), half.at(12.0), half.work_between(0.0, 20.0), half.finish(0.0, 6.0)
    (0.5, 1.0, 15.0, 7.0)
    """

    time: Floats
    value: Floats
    length: float = math.inf
    offset: float = 0.0
    area: Floats = field(init=False, repr=False)
    """Integral of the series from its start to each `time`."""
    peak: float = field(init=False, repr=False)
    """The largest value."""
    steady: bool = field(init=False, repr=False)
    """Whether it never changes."""

    def __post_init__(self) -> None:
        time = np.array(self.time, np.float64)
        value = np.array(self.value, np.float64)
        _check(time, value, self.length, self.offset)
        area = np.concatenate(([0.0], np.cumsum(np.diff(time) * value[:-1])))
        for name, array in (("time", time), ("value", value), ("area", area)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "peak", float(value.max()))
        object.__setattr__(self, "steady", float(value.min()) == self.peak)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.time)

    @staticmethod
    def constant(value: float) -> Trace:
        """
        >>> Trace.constant(0.7).finish(10.0, 7.0)
        20.0
        """
        return Trace(np.zeros(1), np.array([value]))

    @staticmethod
    def steps(values: Iterable[float], interval: float) -> Trace:
        """A periodic series with a constant interval between values.

        >>> Trace.steps([1.0, 0.0], 5.0).at(25.0)
        0.0
        """
        value = np.array(list(values), np.float64)
        return Trace(np.arange(len(value), dtype=np.float64) * interval, value, length=len(value) * interval)

    @property
    def repeats(self) -> bool:
        return math.isfinite(self.length)

    @property
    def total(self) -> float:
        """Integral of one period of a repeating series; inf or 0 for a non-repeating one."""
        last = float(self.value[-1])
        rest = self.length - float(self.time[-1])
        return float(self.area[-1]) + (last * rest if last > 0 else 0.0)

    @property
    def mean(self) -> float:
        """Mean over one period; for a non-repeating series, over the time before its last value."""
        if self.repeats:
            return self.total / self.length
        return float(self.area[-1] / self.time[-1]) if len(self.time) > 1 else float(self.value[0])

    def starting(self, moment: float, index: int = 0) -> Trace:
        """The same series, shifted so that value number `index` (modulo the period) starts at `moment`.

        >>> Trace.steps([1.0, 2.0, 3.0], 5.0).starting(100.0, 4).at(100.0)
        2.0
        """
        if self.steady:
            return Trace.constant(float(self.value[0]))
        moved = copy(self)  # shares the arrays, which are read-only
        object.__setattr__(moved, "offset", float(self.time[index % len(self.time)]) - moment)
        return moved

    def at(self, moment: float) -> float:
        """The value at a time; at a step, the new value."""
        where = self._where(moment)
        index = int(np.searchsorted(self.time, where, "right")) - 1
        return float(self.value[max(0, index)])

    def sample(self, moments: Floats) -> Floats:
        """The values at k times: O(k log n)."""
        where = np.asarray(moments, np.float64) + self.offset
        if self.repeats:
            where = where - np.floor(where / self.length) * self.length
            where[~((where >= 0.0) & (where < self.length))] = 0.0
        index = np.searchsorted(self.time, where, "right") - 1
        return self.value[np.maximum(index, 0)]

    def next_step(self, moment: float) -> float:
        """The time of the next step after `moment`; inf if there is none.

        Always strictly later than `moment`, if only by a rounding error, so stepping terminates.

        >>> Trace.steps([1.0, 0.0], 5.0).next_step(5.0)
        10.0
        """
        if self.steady:
            return math.inf
        where = self._where(moment)
        index = int(np.searchsorted(self.time, where, "right"))
        end = float(self.time[index]) if index < len(self.time) else self.length
        step = max(end - where, math.ulp(max(abs(moment), abs(self.offset))))
        return max(moment + step, math.nextafter(moment, math.inf))

    def work_between(self, start: float, end: float) -> float:
        """The integral from start to end: seconds of a whole core, or bytes."""
        if not end > start:
            return 0.0
        base = self._where(start)
        return self._upto(base + (end - start)) - self._upto(base)

    def finish(self, start: float, amount: float) -> float:
        """The earliest time at which the integral since `start` reaches `amount`; inf if it never does.

        >>> Trace([0.0, 5.0], [1.0, 0.0]).finish(0.0, 6.0)
        inf
        """
        if not amount > 0:
            return start
        base = self._where(start)
        target = self._upto(base) + amount
        whole_rounds = 0.0
        if self.repeats:
            total = self.total
            if not total > 0:
                return math.inf
            rounds = max(0.0, math.ceil(target / total) - 1.0)
            target -= rounds * total
            whole_rounds = rounds * self.length
        return max(start, start + (whole_rounds + (self._reached(target) - base)))

    def _where(self, moment: float) -> float:
        """The position in the series; within the first period if it repeats."""
        where = moment + self.offset
        if self.repeats:
            where -= math.floor(where / self.length) * self.length
            if not 0.0 <= where < self.length:  # rounding crossed the end of the period
                where = 0.0
        return where

    def _upto(self, where: float) -> float:
        """Integral from the start of the series to a position."""
        rounds = 0.0
        if self.repeats and where >= self.length:
            count = math.floor(where / self.length)
            rounds, where = count * self.total, where - count * self.length
        index = max(0, int(np.searchsorted(self.time, where, "right")) - 1)
        return rounds + float(self.area[index] + (where - self.time[index]) * self.value[index])

    def _reached(self, target: float) -> float:
        """The first position at which the integral reaches `target`; inverse of _upto."""
        index = max(0, int(np.searchsorted(self.area, target, "left")) - 1)
        rate = float(self.value[index])
        if rate == 0.0:
            return math.inf
        return float(self.time[index]) + (target - float(self.area[index])) / rate

    def _key(self) -> tuple[bytes, bytes, float, float]:
        return self.time.tobytes(), self.value.tobytes(), self.length, self.offset


class LinkTrace(NamedTuple):
    """A link over time: bandwidth in bytes/s, and latency in seconds."""

    bandwidth: Trace
    latency: Trace

    def starting(self, moment: float, index: int = 0) -> LinkTrace:
        """Both series, shifted so that value number `index` starts at `moment`."""
        return LinkTrace(self.bandwidth.starting(moment, index), self.latency.starting(moment, index))


class TraceTable(NamedTuple):
    """Many traces as arrays for compiled loops: trace k is time[ptr[k]:ptr[k + 1]], and so on."""

    ptr: Ints
    time: Floats
    value: Floats
    area: Floats
    total: Floats
    length: Floats
    offset: Floats


def pack(traces: Iterable[Trace]) -> TraceTable:
    """Pack traces into one table: O(total steps).

    >>> pack([Trace.constant(1.0), Trace.steps([1.0, 2.0], 5.0)]).ptr.tolist()
    [0, 1, 3]
    """
    rows = list(traces)
    empty = [np.empty(0)]
    return TraceTable(
        np.cumsum([0, *map(len, rows)], dtype=np.int32),
        np.concatenate([r.time for r in rows] or empty),
        np.concatenate([r.value for r in rows] or empty),
        np.concatenate([r.area for r in rows] or empty),
        np.array([r.total for r in rows], np.float64),
        np.array([r.length for r in rows], np.float64),
        np.array([r.offset for r in rows], np.float64),
    )


def _check(time: Floats, value: Floats, length: float, offset: float) -> None:
    def wrong(problem: str, hint: str) -> BadPlatform:
        return BadPlatform(problem, where="trace", hint=hint)

    if time.ndim != 1 or time.shape != value.shape or len(time) == 0:
        raise wrong(
            f"{time.shape} times and {value.shape} values", "give one value for each time, at least one"
        )
    if time[0] != 0.0 or not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0):
        raise wrong("times do not increase from 0", "start at 0 s, each time later than the one before")
    if not np.all(np.isfinite(value) & (value >= 0)):
        bad = int(np.flatnonzero(~(np.isfinite(value) & (value >= 0)))[0])
        raise wrong(f"value {bad} is {value[bad]}", "give finite values of 0 or more")
    if not length > time[-1]:
        raise wrong(
            f"it repeats after {length} s, before its last step at {time[-1]} s", "give a longer length"
        )
    if not math.isfinite(offset):
        raise wrong(f"offset is {offset}", "give a finite number of seconds")
