"""Run times of the tasks of a Dask cluster, as measured: by task, by key prefix and worker, by key prefix.

A time is kept as work, in seconds of a worker of speed 1. Most keys of Dask are new in every session, but their prefix
(the name of the function or of the layer) and, in collections, the index of their block are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_OLD = 2.0
"""What is known of a prefix on all workers counts as much as this many executions on one of them."""
_LEAST_WEIGHT = 0.1
"""Weight of the newest execution in the mean of many."""
_LATENCY = 0.005
"""Seconds of a small transfer until one was seen."""
_LEAST_AHEAD = 0.01
_LONGEST_DELAY = 0.25
GUESS = 0.02
"""Work in seconds of a task of which nothing is known: short, so that it runs where its inputs are."""
_NUMBERED = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-([0-9]+)$")


def index_of(key: Any) -> str:
    """What tells tasks of one prefix apart and is the same in another session: the block, or else the whole key.

    >>> index_of(("sum-5f2c", 0, 3)), index_of("load-5f2c")
    ('0,3', 'load-5f2c')
    >>> index_of("load-62a2a1c4-6c4f-4f0e-b7a8-d4c2e9f5a001-7")  # of a map of an impure function
    '7'
    """
    if isinstance(key, tuple):
        return ",".join(map(str, key[1:]))
    text = str(key)
    numbered = _NUMBERED.search(text) if text[-1:].isdigit() else None
    return numbered[1] if numbered else text


@dataclass(slots=True)
class Mean:
    """A mean in which old values fade."""

    value: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) * max(1.0 / self.count, _LEAST_WEIGHT)


@dataclass(slots=True)
class PrefixTimes:
    """What is known of the tasks of a prefix."""

    work: Mean = field(default_factory=Mean)
    on: dict[str, Mean] = field(default_factory=dict)
    """Seconds by worker."""
    size: Mean = field(default_factory=Mean)
    """Bytes of results."""


@dataclass(slots=True)
class Delays:
    """What the engine takes besides the work, in seconds.

    To tell a worker, to be told, to begin a transfer, and between two tasks of a worker that has enough of them.
    """

    send: Mean = field(default_factory=Mean)
    report: Mean = field(default_factory=Mean)
    transfer: Mean = field(default_factory=Mean)
    between: Mean = field(default_factory=Mean)

    def add(self, mean: Mean, seconds: float) -> None:
        """Note a delay; clocks of two machines may differ, and a machine may have been asleep."""
        mean.add(min(max(seconds, 0.0), _LONGEST_DELAY))

    @property
    def latency(self) -> float:
        """Seconds that a small transfer takes."""
        return self.transfer.value if self.transfer.count else _LATENCY

    @property
    def ahead(self) -> float:
        """A worker should have its next task this many seconds before it finishes the current one."""
        round_trip = self.send.value + self.report.value
        return min(max(2.0 * round_trip, _LEAST_AHEAD), _LONGEST_DELAY)


class Times:
    """Estimates of run times that follow what is observed; all operations are O(1)."""

    def __init__(self, speeds: Mapping[str, float]) -> None:
        self.speeds = dict(speeds)
        self.usual_speed = sorted(speeds.values())[len(speeds) // 2] if speeds else 1.0
        self.prefixes: dict[str, PrefixTimes] = {}
        self.tasks: dict[tuple[str, str], float] = {}
        """Work by prefix and index, from earlier sessions and this one."""
        self.observed: dict[tuple[str, str], tuple[float, float]] = {}
        """Work and bytes by prefix and index, of this session."""

    def speed(self, worker: str) -> float:
        return self.speeds.get(worker, self.usual_speed)

    def load(self, rows: Iterable[tuple[str, str, float, float]]) -> None:
        """Add what earlier sessions observed: prefix, index, work, bytes."""
        for prefix, index, work, size in rows:
            self.tasks[prefix, index] = work
            times = self.prefixes.setdefault(prefix, PrefixTimes())
            times.work.add(work)
            times.size.add(size)

    def observe(self, prefix: str, key: Any, worker: str, seconds: float, size: float) -> None:
        """Note an execution."""
        work = seconds * self.speed(worker)
        times = self.prefixes.setdefault(prefix, PrefixTimes())
        times.work.add(work)
        times.size.add(size)
        times.on.setdefault(worker, Mean()).add(seconds)
        self.tasks[prefix, index_of(key)] = work
        self.observed[prefix, index_of(key)] = (work, size)

    def knows(self, prefix: str) -> bool:
        return prefix in self.prefixes

    def work(self, prefix: str, key: Any) -> float:
        """Seconds on a worker of speed 1: of the same task, of its prefix, or a guess."""
        same = self.tasks.get((prefix, index_of(key)))
        if same is not None:
            return same
        times = self.prefixes.get(prefix)
        return GUESS if times is None else times.work.value

    def seconds(self, prefix: str, work: float, worker: str) -> float:
        """How long a task of this prefix and work lasts on a worker.

        >>> times = Times({"a": 2.0, "b": 1.0})
        >>> times.observe("load", "load-1", "a", 3.0, 8.0)
        >>> times.seconds("load", times.work("load", "load-2"), "b")
        6.0
        """
        expected = work / self.speed(worker)
        times = self.prefixes.get(prefix)
        own = times.on.get(worker) if times is not None else None
        if times is None or own is None or times.work.value <= 0:
            return expected
        usual = times.work.value / self.speed(worker)
        return expected * (_OLD * usual + own.count * own.value) / ((_OLD + own.count) * usual)

    def size(self, prefix: str) -> float:
        """Bytes of a result of this prefix; 0 if nothing is known."""
        times = self.prefixes.get(prefix)
        return 0.0 if times is None else times.size.value
