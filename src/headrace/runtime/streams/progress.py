"""What is known of a stream run while it goes on, and the results of its units of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.runtime.streams.plan import StreamPlan


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The results of one unit of work."""

    number: int
    name: str
    results: Mapping[str, list[bytes]]
    """For each filter without outgoing streams, what it sent."""


@dataclass(slots=True)
class Progress:
    """What is known of a run while it goes on, and at its end."""

    plan: StreamPlan
    began: float = 0.0
    """When the readers were allowed to begin."""
    since: float = 0.0
    """The same for the present copies: later than `began` if the deployment was changed."""
    ended: float = 0.0
    copies: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The latest counters of each of the present copies."""
    retired: tuple[int, int] = (0, 0)
    """Bytes sent by readers, and received by all other filters, of copies before the present ones."""
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    """Moments, and the bytes that all readers had sent, and all other filters had received, by then."""
    committed: int = 0
    restarts: int = 0
    adaptations: int = 0
    """How often routing weights were changed."""
    redeployments: int = 0
    """How often copies were started and retired because another deployment was better."""
    plans: int = 0
    """How often another deployment was planned, whether or not it was better."""
    faults: list[str] = field(default_factory=list)

    def rate(self, seconds: float) -> float:
        """Bytes/s that readers sent in the latest seconds, or since the start."""
        if len(self.samples) < 2:
            return 0.0
        now, sent, _ = self.samples[-1]
        first = len(self.samples) - 1
        while first > 0 and self.samples[first][0] > now - seconds:
            first -= 1
        moment, before, _ = self.samples[first]
        return (sent - before) / (now - moment) if now > moment else 0.0
