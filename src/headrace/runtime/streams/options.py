"""Options of a stream run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headrace.model.errors import UsageError
from headrace.runtime.streams.routing import ROUTINGS, Routing

LEAST_STALL = 1.0
"""Seconds; agents report four times a second."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a plan is carried out."""

    credits: int | None = None
    """Buffers that may be on their way to a copy, or wait there, for each of its senders; None: 4, and as many as
    make 4 MB if buffers are small, up to 64."""
    routing: Routing = "planned"
    work_conserving: bool = False
    """Send to another copy if the one whose turn it is has no credit."""
    duration: float | None = None
    """Repeat the units of work for this many seconds; None: each unit once."""
    restarts: int = 0
    """How often units are replayed after a fault."""
    adapt: bool = False
    """Change proportions and copies while it runs, when hosts turn out faster or slower than planned."""
    stall: float = 60.0
    """Seconds without a sign of life after which a host, a process or a link counts as lost."""

    def __post_init__(self) -> None:
        for name, value, least in (
            ("credits", self.credits, 1),
            ("restarts", self.restarts, 0),
            ("duration", self.duration, 0.0),
            ("stall", self.stall, LEAST_STALL),
        ):
            if value is not None and not least <= value < math.inf:
                raise UsageError(f"{name} is {value:g}", where="stream", hint=f"give {least:g} or more")
        if self.routing not in ROUTINGS:
            raise UsageError(
                f"routing {self.routing!r}", where="stream", hint=f"use one of {', '.join(ROUTINGS)}"
            )

    def window(self, buffer: int) -> int:
        """The credits for buffers of this size.

        >>> StreamOptions().window(1_000_000), StreamOptions().window(64_000), StreamOptions(credits=2).window(1)
        (4, 62, 2)
        """
        return max(4, min(64, 4_000_000 // buffer)) if self.credits is None else self.credits
