"""Change routing weights while a pipeline runs, when copies turn out faster or slower than planned.

The rule: every second the capacity of each copy is estimated. If the copies of a filter could take `GAIN` more with
other proportions, one of them is busy for most of the time, and both were so `PATIENCE` times in a row, the proportions
become those of the capacities.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.filters import App
from headrace.runtime.streams.capacities import Capacities
from headrace.runtime.streams.plan import StreamPlan

GAIN = 0.15
"""More than the noise of such estimates; a smaller gain is not worth a change."""
PATIENCE = 2
BUSY = 0.7
"""A filter whose busiest copy is less busy than this is not what limits the throughput."""
_ROUNDS = 50


class Adapter:
    """Decides on routing weights. It has no clock and does no I/O."""

    def __init__(self, app: App, plan: StreamPlan) -> None:
        self._app = app
        self._copies = {name: [c.copy for c in plan.copies if c.filter == name] for name in app.order}
        self._weights = {
            copy.copy: {s.target: plan.weights(copy, s.target) for s in app.out_of(copy.filter)}
            for copy in plan.copies
        }
        self._shares = {
            name: [copy.end - copy.begin for copy in plan.copies if copy.filter == name] for name in app.order
        }
        self._strikes = dict.fromkeys(app.order, 0)

    def observe(self, capacities: Capacities) -> dict[int, list[float]] | None:
        """New weights of all targets for each copy that sends to a filter whose proportions change; else None."""
        changed = [n for n in self._app.order if self._app.into(n) and self._should_change(n, capacities)]
        for name in changed:
            known = [capacities.of(copy) or 0.0 for copy in self._copies[name]]
            self._shares[name] = [rate / sum(known) for rate in known]
            self._strikes[name] = 0
            self._refit(name)
        if not changed:
            return None
        senders = {s.source for s in self._app.streams if s.target in changed}
        return {
            copy: [w for s in self._app.out_of(name) for w in self._weights[copy][s.target]]
            for name in self._app.order
            if name in senders
            for copy in self._copies[name]
        }

    def _should_change(self, name: str, capacities: Capacities) -> bool:
        copies = self._copies[name]
        known = [rate for copy in copies if (rate := capacities.of(copy)) is not None]
        if len(copies) < 2 or len(known) < len(copies):
            return False
        reached = min(
            rate / share for rate, share in zip(known, self._shares[name], strict=True) if share > 0
        )
        limits = max(capacities.busy[copy] for copy in copies) > BUSY
        pays = limits and sum(known) > (1 + GAIN) * reached
        self._strikes[name] = self._strikes[name] + 1 if pays else 0
        return self._strikes[name] >= PATIENCE

    def _refit(self, name: str) -> None:
        """Give the copies of a filter their new shares, whoever sends to them."""
        for source in {s.source: None for s in self._app.streams if s.target == name}:
            senders = self._copies[source]
            rows = [self._weights[copy][name] for copy in senders]
            fitted = refit(rows, self._shares[source], self._shares[name])
            for copy, row in zip(senders, fitted, strict=True):
                self._weights[copy][name] = row


def refit(
    weights: Sequence[Sequence[float]], parts: Sequence[float], shares: Sequence[float]
) -> list[list[float]]:
    """Weights for each sender such that the targets get these shares, as like the old ones as possible.

    `parts`: how much of the whole each sender sends. Rows and columns are scaled in turn (iterative proportional
    fitting), so that senders keep preferring the targets that they preferred, for instance near ones.
    O(rounds * senders * targets).

    >>> refit([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], [0.25, 0.75])
    [[0.25, 0.75], [0.25, 0.75]]
    >>> [[round(w, 3) for w in row] for row in refit([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], [0.25, 0.75])]
    [[0.488, 0.512], [0.012, 0.988]]
    """
    flows = [[part * w / sum(row) for w in row] for row, part in zip(weights, parts, strict=True)]
    for _ in range(_ROUNDS):
        got = [sum(column) for column in zip(*flows, strict=True)]
        scale = [share / amount if amount > 0 else 0.0 for share, amount in zip(shares, got, strict=True)]
        flows = [[flow * s for flow, s in zip(row, scale, strict=True)] for row in flows]
        flows = [_normalized(row, part) for row, part in zip(flows, parts, strict=True)]
    # A sender that had only targets whose share is now 0 takes all targets.
    whole = [row if sum(row) > 0 else list(shares) for row in flows]
    return [[flow / sum(row) for flow in row] for row in whole]


def _normalized(row: Sequence[float], total: float) -> list[float]:
    now = sum(row)
    return [flow * total / now for flow in row] if now > 0 else list(row)
