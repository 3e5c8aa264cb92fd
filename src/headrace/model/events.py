"""What happens while a program runs: the events that back ends report to the coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Started:
    """The run begins."""

    time: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task ended well on a host; its outputs are now there."""

    time: float
    task: str
    host: str
    start: float
    """When its body began; its inputs were there by then."""
    sizes: tuple[tuple[str, float], ...] = ()
    """Measured bytes of its outputs."""


@dataclass(frozen=True, slots=True)
class TaskErred:
    """A task ended with an error; its text is for the user."""

    time: float
    task: str
    host: str
    error: str


@dataclass(frozen=True, slots=True)
class TaskReleased:
    """A task that was to start no sooner than now may start: work that arrives while a run goes on."""

    time: float
    task: str


@dataclass(frozen=True, slots=True)
class DataMoved:
    """A copy of an item arrived at a host or a site's storage."""

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


@dataclass(frozen=True, slots=True)
class LinkLeft:
    """A link is down; transfers over it are broken off."""

    time: float
    link: str


@dataclass(frozen=True, slots=True)
class LinkJoined:
    """A link is up again."""

    time: float
    link: str


@dataclass(frozen=True, slots=True)
class StorageLeft:
    """The shared storage of a site is out of reach, with its contents intact."""

    time: float
    place: str


@dataclass(frozen=True, slots=True)
class StorageJoined:
    """The shared storage of a site is within reach again."""

    time: float
    place: str


Event: TypeAlias = (
    Started
    | TaskFinished
    | TaskErred
    | TaskReleased
    | DataMoved
    | HostLeft
    | HostJoined
    | LinkLeft
    | LinkJoined
    | StorageLeft
    | StorageJoined
)
