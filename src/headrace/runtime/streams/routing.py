"""Which copy gets the next buffer: in planned proportions, round-robin, or the least loaded.

A router belongs to one copy and one of its streams. It is deterministic: its choices depend only on the weights,
on the choices before, and, for `LeastLoaded` and work-conserving routing, on the credits left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol

from headrace.model.errors import UsageError

Routing = Literal["planned", "round-robin", "least-loaded"]
ROUTINGS: tuple[Routing, ...] = ("planned", "round-robin", "least-loaded")


class Router(Protocol):
    """Chooses targets, one buffer at a time."""

    def choose(self, credits: Sequence[int]) -> int:
        """The target of the next buffer, given the credits left for each target. It may have none: then wait."""

    def set_weights(self, weights: Sequence[float]) -> None:
        """Use other proportions from the next buffer on."""


class Planned:
    """Targets in proportion to their weights: the deviation is below one buffer at any moment.

    This is Tijdeman's solution of the chairman assignment problem: of n targets with weights that sum to 1, the
    number of buffers sent to target i after t buffers differs from weight i * t by at most 1 - 1 / (2n - 2),
    the smallest bound possible. O(n) for each buffer.

    With `work_conserving`, a target without credit is passed over if another has some. The bound then no longer
    holds; targets that were passed over are served first when they have credit again.

    >>> router = Planned([3, 1])
    >>> [router.choose([1, 1]) for _ in range(8)]
    [0, 0, 1, 0, 0, 0, 1, 0]
    """

    def __init__(self, weights: Sequence[float], *, skip: int = 0, work_conserving: bool = False) -> None:
        self._work_conserving = work_conserving
        self.set_weights(weights)
        for _ in range(skip):
            self.choose([1] * len(weights))

    def set_weights(self, weights: Sequence[float]) -> None:
        total = math.fsum(weights)
        if not (total > 0 and math.isfinite(total) and min(weights) >= 0):
            raise UsageError(
                f"routing weights {list(weights)}", hint="give numbers of 0 or more, and one above 0"
            )
        # Targets of weight 0 never get a buffer, and do not count in the bound.
        self._targets = [i for i, weight in enumerate(weights) if weight > 0]
        self._weights = [weights[i] / total for i in self._targets]
        self._sent = [0] * len(self._targets)
        self._steps = 0
        count = len(self._targets)
        self._margin = 1.0 / (2 * count - 2) if count > 1 else 0.0

    def choose(self, credits: Sequence[int]) -> int:
        if len(self._targets) == 1:
            return self._targets[0]
        best = self._most_urgent(credits if self._work_conserving and any(credits) else None)
        self._steps += 1
        self._sent[best] += 1
        return self._targets[best]

    def _most_urgent(self, credits: Sequence[int] | None) -> int:
        """Of the targets that may get a buffer without being too far ahead, the one that needs it first."""
        step, margin = self._steps + 1, self._margin
        best, best_due, behind, most_behind = -1, math.inf, 0, -math.inf
        for i, weight in enumerate(self._weights):
            if credits is not None and not credits[self._targets[i]]:
                continue
            lag = weight * step - self._sent[i]
            if lag > most_behind:
                behind, most_behind = i, lag
            due = (1.0 - margin - lag) / weight
            if lag >= margin - 1e-12 and due < best_due:
                best, best_due = i, due
        return best if best >= 0 else behind


class RoundRobin:
    """Every target in turn, whatever its weight.

    >>> router = RoundRobin(3, skip=1)
    >>> [router.choose([1, 1, 1]) for _ in range(4)]
    [1, 2, 0, 1]
    """

    def __init__(self, targets: int, *, skip: int = 0) -> None:
        self._targets = targets
        self._next = skip % targets

    def set_weights(self, weights: Sequence[float]) -> None:
        """Round-robin has no weights."""

    def choose(self, credits: Sequence[int]) -> int:
        chosen = self._next
        self._next = (chosen + 1) % self._targets
        return chosen


class LeastLoaded:
    """The target with the most credit left, that is the fewest buffers waiting; ties go round-robin.

    >>> LeastLoaded(3).choose([1, 3, 2])
    1
    """

    def __init__(self, targets: int, *, skip: int = 0) -> None:
        self._targets = targets
        self._next = skip % targets

    def set_weights(self, weights: Sequence[float]) -> None:
        """The load decides, not the plan."""

    def choose(self, credits: Sequence[int]) -> int:
        first = self._next
        chosen = max(range(self._targets), key=lambda i: (credits[i], -((i - first) % self._targets)))
        self._next = (chosen + 1) % self._targets
        return chosen


def make_router(
    routing: Routing, weights: Sequence[float], *, skip: int = 0, work_conserving: bool = False
) -> Router:
    """The router of this name. `skip`: where in its sequence it starts, so that producers do not move in step."""
    if routing == "planned":
        return Planned(weights, skip=skip, work_conserving=work_conserving)
    if routing == "round-robin":
        return RoundRobin(len(weights), skip=skip)
    if routing == "least-loaded":
        return LeastLoaded(len(weights), skip=skip)
    raise UsageError(f"routing {routing!r}", hint=f"use one of {', '.join(ROUTINGS)}")
