"""What online schedulers say besides assignments, and when they want to be asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from headrace.core.scheduler import Assign


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send this item from one place to another; on each link, lower ranks go first."""

    item: str
    source: str
    target: str
    rank: float


@dataclass(frozen=True, slots=True)
class RequeueTail:
    """Leave every host the first `keep` tasks of its queue and take the others back."""

    keep: int


Command: TypeAlias = Assign | Fetch | RequeueTail


@dataclass(frozen=True, slots=True)
class WakeConditions:
    """When a scheduler wants to be asked, besides the start and changes of the grid.

    `every`: after everything that happens. `ready`: when so many ready tasks have no host; with
    `idle`, also when there is one and a host has nothing to do, or will have nothing within `soon`
    seconds. `uneven`: when a host has nothing to do and another has tasks queued. `off_by`: when a task
    took this many times what was predicted, or that much less.
    """

    every: bool = False
    ready: int = 0
    idle: bool = False
    soon: float = 0.0
    uneven: bool = False
    off_by: float = math.inf


ON_GRID_CHANGES = WakeConditions()
EVERY_EVENT = WakeConditions(every=True)
