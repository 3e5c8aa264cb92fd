"""What happens while a program runs, as values: the words between back ends and the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Started:
    """The run begins: everything is known that will be known ahead."""

    time: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task ended well on a host; its outputs are now there."""

    time: float
    task: str
    host: str
    start: float
    """When its body began; inputs were there by then."""
    sizes: tuple[tuple[str, float], ...] = ()
    """Measured bytes of what it wrote."""


@dataclass(frozen=True, slots=True)
class TaskErred:
    """A task ended with an error; its text is for the user."""

    time: float
    task: str
    host: str
    error: str


@dataclass(frozen=True, slots=True)
class DataMoved:
    """A copy of an item arrived at a host."""

    time: float
    item: str
    source: str
    target: str
    start: float
    size: float


@dataclass(frozen=True, slots=True)
class HostLeft:
    """A host died or was taken away, with all that only it held."""

    time: float
    host: str


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host known to the platform is there (again), empty."""

    time: float
    host: str


Event: TypeAlias = Started | TaskFinished | TaskErred | DataMoved | HostLeft | HostJoined
