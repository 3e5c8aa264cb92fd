"""Speed emulation of this worker.

A worker of speed s with stretch F makes a task that used c CPU seconds last c * F / s seconds in total. With
F at least the largest speed, the ratios between workers are those of the speeds.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

SPEED_VARIABLE = "HEADRACE_SPEED"
STRETCH_VARIABLE = "HEADRACE_STRETCH"


@dataclass(slots=True)
class Pace:
    """The settings of one worker process."""

    speed: float = 1.0
    stretch: float = 1.0

    def rest(self, used: float, lasted: float) -> float:
        """Seconds to wait after a task that used `used` CPU seconds and lasted `lasted`.

        >>> Pace(speed=2.0, stretch=4.0).rest(used=1.0, lasted=1.5), Pace().rest(1.0, 1.0)
        (0.5, 0.0)
        """
        return max(0.0, used * self.stretch / self.speed - lasted)


PACE = Pace(
    float(os.environ.get(SPEED_VARIABLE, "1")),
    float(os.environ.get(STRETCH_VARIABLE, "1")),
)
"""The settings of this process: from its environment, or set later by `set_speed`."""


def set_speed(speed: float) -> None:
    """Run emulated tasks in this process at a measured speed."""
    PACE.speed = speed


def wait_out(used: float, lasted: float) -> None:
    """Sleep as long as this worker's emulated speed requires."""
    rest = PACE.rest(used, lasted)
    if rest > 0:
        time.sleep(rest)
