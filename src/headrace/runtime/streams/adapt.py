"""Change routing weights while a pipeline runs, when copies turn out faster or slower than planned.

The rule: every `INTERVAL` seconds the capacity of each copy is estimated as bytes received for each second in the
filter's own code. If the copies of a filter could take `GAIN` more with other proportions, one of them is busy for
most of the time, and both were so `PATIENCE` times in a row, the proportions become those of the capacities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.runtime.filters import App
from headrace.runtime.streams.plan import StreamPlan

INTERVAL = 1.0
GAIN = 0.15
"""More than the noise of such estimates; a smaller gain is not worth a change."""
PATIENCE = 2
BUSY = 0.7
"""A filter whose busiest copy is less busy than this is not what limits the throughput."""
LEAST_BUFFERS = 4
"""Buffers from which a capacity is estimated."""
_SMOOTHING = 0.6
"""Weight of the newest estimate."""

Counters = Mapping[int, Mapping[str, Any]]


class Adapter:
    """Watches the counters of all copies. It has no clock and does no I/O."""

    def __init__(self, app: App, plan: StreamPlan) -> None:
        self._app = app
        self._copies = {name: [c for c in plan.copies if c.filter == name] for name in app.order}
        self._weights = {
            copy.copy: {s.target: plan.weights(copy, s.target) for s in app.out_of(copy.filter)}
            for copy in plan.copies
        }
        self._shares = {name: _shares(plan, name) for name in app.order if app.into(name)}
        self._capacity: dict[int, float] = {}
        self._strikes = dict.fromkeys(app.order, 0)
        self._before: dict[int, tuple[int, int, int]] = {}
        self._since = 0.0

    def observe(self, now: float, counters: Counters) -> dict[int, list[float]] | None:
        """New weights of all targets for each copy that sends to a filter whose proportions change; else None."""
        if now - self._since < INTERVAL or len(counters) < len(self._weights):
            return None
        busy = self._estimate(now, counters)
        changed = [name for name in self._shares if busy and self._should_change(name, busy)]
        for name in changed:
            total = sum(self._capacity[c.copy] for c in self._copies[name])
            self._shares[name] = [self._capacity[c.copy] / total for c in self._copies[name]]
            self._strikes[name] = 0
        if not changed:
            return None
        return self._new_weights(changed)

    def _estimate(self, now: float, counters: Counters) -> dict[int, float]:
        """Update the capacities; returns the busy share of each copy since the last time."""
        first, elapsed = not self._before, now - self._since
        busy: dict[int, float] = {}
        for copy, found in counters.items():
            values = (found["buffers_in"], found["bytes_in"], found["busy_ns"])
            buffers, size, spent = (
                a - b for a, b in zip(values, self._before.get(copy, values), strict=True)
            )
            busy[copy] = spent / 1e9 / elapsed if elapsed > 0 else 0.0
            if buffers >= LEAST_BUFFERS and spent > 0:
                newest = size / spent
                old = self._capacity.get(copy, newest)
                self._capacity[copy] = _SMOOTHING * newest + (1 - _SMOOTHING) * old
            if first or buffers >= LEAST_BUFFERS or not found["buffers_in"]:
                self._before[copy] = values
        self._since = now
        return {} if first else busy

    def _should_change(self, name: str, busy: Mapping[int, float]) -> bool:
        copies = self._copies[name]
        if len(copies) < 2 or any(copy.copy not in self._capacity for copy in copies):
            return False
        capacity = [self._capacity[copy.copy] for copy in copies]
        reached = min(c / share for c, share in zip(capacity, self._shares[name], strict=True) if share > 0)
        pays = sum(capacity) > (1 + GAIN) * reached and max(busy[copy.copy] for copy in copies) > BUSY
        self._strikes[name] = self._strikes[name] + 1 if pays else 0
        return self._strikes[name] >= PATIENCE

    def _new_weights(self, changed: list[str]) -> dict[int, list[float]]:
        senders: dict[int, list[float]] = {}
        for copy, targets in self._weights.items():
            for name in changed:
                if name in targets:
                    targets[name] = self._shares[name]
                    senders[copy] = []
        for name, copies in self._copies.items():
            streams = self._app.out_of(name)
            for number in (place.copy for place in copies if place.copy in senders):
                senders[number] = [w for s in streams for w in self._weights[number][s.target]]
        return senders


def _shares(plan: StreamPlan, name: str) -> list[float]:
    """The share of each copy in the work of its filter."""
    return [copy.end - copy.begin for copy in plan.copies if copy.filter == name]
