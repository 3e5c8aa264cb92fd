"""The contracts: what a planner and a scheduler are given, and what they answer.

A `Planner` answers a whole problem at once. A `Scheduler` decides while a program runs: it sees a read-only `RunView`
and the events since it was last asked, and answers with commands. It never sees the simulator, the engine or the
coordinator's own state, so the same object works on every back end. `core.replan.Replan` makes any planner a scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from headrace.model.events import Event
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.core.view import RunView


@dataclass(frozen=True, eq=False)
class Problem:
    """A program to be placed on a platform, from scratch or in the middle of a run.

    `holders` says at which places an item from outside lies, for items that do not simply lie at the
    platform's origin (the initial locations that a program names for its items are added); `free_at` when each host can
    first be used (0 where nothing is said). In the middle of a run, `since` tells for an item that is on its
    way or being made when it will be at one of its holders, by (item, place), and `link_free_at` when each
    link has done what it is to do first.
    """

    graph: Graph
    platform: Platform
    holders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    free_at: Mapping[int, float] = field(default_factory=dict)
    seed: int = 0
    since: Mapping[tuple[int, int], float] = field(default_factory=dict)
    link_free_at: Mapping[int, float] = field(default_factory=dict)
    prefetch_depth: int | None = None
    """The run sends inputs for this many tasks of each queue; None: all that can be sent."""

    def __post_init__(self) -> None:
        if len(self.graph.initial_locations.index):
            initial_locations = self.graph.initial_locations.places_by_item(self.graph, self.platform)
            object.__setattr__(self, "holders", initial_locations | dict(self.holders))


@runtime_checkable
class Planner(Protocol):
    """Answers a whole problem at once. Constructors only store parameters."""

    name: str

    def plan(self, problem: Problem) -> Plan: ...


# Commands.


@dataclass(frozen=True, slots=True)
class Assign:
    """Enqueue a task on a host, away from where it was queued; lower ranks start first.

    With `in_order` the task starts only as the head of its host's queue.
    """

    task: str
    host: str
    rank: float
    in_order: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AssignMany:
    """As `Assign`, for many tasks by their numbers: what compiled schedulers answer."""

    tasks: Ints
    hosts: Ints
    ranks: Floats
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send an item from one place to another; on each link, lower ranks go first.

    Places are hosts, or sites whose hosts share their storage. The item need not exist yet.
    """

    item: str
    source: str
    target: str
    rank: float


@dataclass(frozen=True, slots=True)
class Replicate:
    """Keep one more copy of an item at a place, sent when the links have nothing else to do."""

    item: str
    target: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a copy of an item from a place; refused for the last copy of an item that is still needed."""

    item: str
    place: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a task wherever it runs or is queued; it is ready again."""

    task: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Take a task that has not started off its queue; it is ready again."""

    task: str


@dataclass(frozen=True, slots=True)
class RequeueTail:
    """Leave every host the first `keep` tasks of its queue and take the others off.

    Transfers that were requested for them and have not started are withdrawn.
    """

    keep: int


Command: TypeAlias = Assign | AssignMany | Fetch | Replicate | Remove | Cancel | Requeue | RequeueTail


@dataclass(frozen=True, slots=True)
class WakeConditions:
    """When a scheduler wants to be asked, besides the start and changes of the grid."""

    every_event: bool = False
    """After everything that happens."""
    ready: int = 0
    """When this many ready tasks have no host; 0: never for that reason."""
    idle: bool = False
    """When a ready task has no host and a host has nothing to do."""
    idle_within: float = 0.0
    """With `idle`: also when a host is expected to have nothing to do within this many seconds."""
    imbalance: bool = False
    """When a host has nothing to do while another one has more tasks than cores, and by the estimates the last task of
    the longest queue would finish sooner there."""
    late_weight: float = 0.0
    """With `imbalance`: a running task that is late counts as needing this many times as long again as it is late."""
    misprediction: float = math.inf
    """When a task took this many times what was predicted, or less than that part of it."""
    at: float = math.inf
    """At this time."""


ON_GRID_CHANGES = WakeConditions()
EVERY_EVENT = WakeConditions(every_event=True)


@runtime_checkable
class Scheduler(Protocol):
    """Decides while a program runs.

    `wake` says when it wants to be asked next; it is read after every call of `react`, which may change it.
    """

    name: str

    @property
    def wake(self) -> WakeConditions: ...

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]: ...
