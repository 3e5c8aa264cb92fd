"""What each copy could take, estimated from its counters while a pipeline runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from headrace.runtime.filters import App
from headrace.runtime.streams.plan import StreamPlan

INTERVAL = 1.0
"""Seconds between two estimates."""
LEAST_BUFFERS = 4
"""Buffers from which a capacity is estimated."""
_LATEST = 3
"""The median of this many estimates counts: it ignores one outlier and follows a change after two."""

Counters = Mapping[int, Mapping[str, Any]]
Place = tuple[str, str]
"""A filter and a host."""


class Capacities:
    """Bytes for each second in the filter's own code: received ones, or for readers sent ones. No clock, no I/O."""

    def __init__(self, app: App, plan: StreamPlan) -> None:
        self._side = {copy.copy: "in" if app.into(copy.filter) else "out" for copy in plan.copies}
        self._place = {copy.copy: (copy.filter, copy.host) for copy in plan.copies}
        self._latest: dict[int, deque[float]] = {}
        self._before: dict[int, tuple[int, int, int]] = {}
        self._spent: dict[int, int] = {}
        self._since: float | None = None
        self.busy: dict[int, float] = {}
        """The share of the latest interval that each copy spent in the filter's own code."""

    def update(self, now: float, counters: Counters) -> bool:
        """Whether an interval has passed, so that there are new estimates."""
        if len(counters) < len(self._side) or (self._since is not None and now - self._since < INTERVAL):
            return False
        elapsed = None if self._since is None else now - self._since
        self._since = now
        for copy, found in counters.items():
            spent = found["busy_ns"]
            if elapsed is not None:
                self.busy[copy] = (spent - self._spent[copy]) / 1e9 / elapsed
            self._spent[copy] = spent
            self._estimate(copy, found)
        return elapsed is not None

    def _estimate(self, copy: int, found: Mapping[str, Any]) -> None:
        side = self._side[copy]
        values = (found[f"buffers_{side}"], found[f"bytes_{side}"], found["busy_ns"])
        before = self._before.setdefault(copy, values)
        buffers, size, spent = (a - b for a, b in zip(values, before, strict=True))
        if buffers >= LEAST_BUFFERS:
            self._before[copy] = values
            if spent > 0 and size > 0:
                self._latest.setdefault(copy, deque(maxlen=_LATEST)).append(size / spent * 1e9)

    def of(self, copy: int) -> float | None:
        """Bytes/s of a copy that is always busy; None if it is not known yet."""
        return median(self._latest[copy]) if copy in self._latest else None

    def by_place(self) -> dict[Place, float]:
        """Bytes/s of one copy of a filter on a host: the mean of the copies there, once there are enough estimates."""
        found: dict[Place, list[float]] = {}
        for copy, latest in self._latest.items():
            if len(latest) == _LATEST:
                found.setdefault(self._place[copy], []).append(median(latest))
        return {place: fmean(rates) for place, rates in found.items()}

    def busy_hosts(self) -> dict[str, float]:
        """For each host, how many of its copies were busy in the latest interval, on average."""
        busy: dict[str, float] = {}
        for copy, share in self.busy.items():
            host = self._place[copy][1]
            busy[host] = busy.get(host, 0.0) + share
        return busy
