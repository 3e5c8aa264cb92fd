"""Events that back ends report to the coordinator during a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Started:
    """The run begins."""

    time: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task finished successfully on a host; its outputs are now available there."""

    time: float
    task: str
    host: str
    start: float
    """When its body started; its inputs had arrived by then."""
    sizes: tuple[tuple[str, float], ...] = ()
    """Measured sizes of its outputs in bytes."""


@dataclass(frozen=True, slots=True)
class TaskErred:
    """An attempt to execute a task failed; the message is for the user."""

    time: float
    task: str
    host: str
    error: str
    attempt: int = 1
    again: bool = False
    """Whether it will be tried again."""


@dataclass(frozen=True, slots=True)
class TaskReleased:
    """The release time of a task has passed: work that arrives during a run."""

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
    """A host failed or was removed, and all data held only by it is lost."""

    time: float
    host: str


@dataclass(frozen=True, slots=True)
class HostPaused:
    """A host takes no more tasks, for instance because its memory is full; its data can still be read.

    `HostJoined` ends the pause, `HostLeft` the host.
    """

    time: float
    host: str


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host joined (or rejoined) without data, or takes tasks again."""

    time: float
    host: str


@dataclass(frozen=True, slots=True)
class CopyLost:
    """A host that is still there no longer has a copy of an item."""

    time: float
    item: str
    place: str


@dataclass(frozen=True, slots=True)
class LinkLeft:
    """A link is down; transfers over it are aborted."""

    time: float
    link: str


@dataclass(frozen=True, slots=True)
class LinkJoined:
    """A link is up again."""

    time: float
    link: str


@dataclass(frozen=True, slots=True)
class StorageLeft:
    """The shared storage of a site is unreachable, with its contents intact."""

    time: float
    place: str


@dataclass(frozen=True, slots=True)
class StorageJoined:
    """The shared storage of a site is reachable again."""

    time: float
    place: str


@dataclass(frozen=True, slots=True)
class RuleDropped:
    """From now on a run leaves out a rule, because it cannot be kept any more.

    >>> print(RuleDropped(4.0, "fft-on-lillith", "host 'lillith' left at 4 s"))
    rule 'fft-on-lillith' left out at 4 s: host 'lillith' left at 4 s
    """

    time: float
    rule: str
    why: str

    def __str__(self) -> str:
        return f"rule {self.rule!r} left out at {self.time:.6g} s: {self.why}"


Event: TypeAlias = (
    Started
    | TaskFinished
    | TaskErred
    | TaskReleased
    | DataMoved
    | HostLeft
    | HostPaused
    | HostJoined
    | CopyLost
    | LinkLeft
    | LinkJoined
    | StorageLeft
    | StorageJoined
    | RuleDropped
)
