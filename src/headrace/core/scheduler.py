"""The contracts: what a planner and a scheduler are given, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headrace.model.events import Event, HostJoined, HostLeft, Started
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.core.coordinator import State


@dataclass(frozen=True, eq=False)
class Problem:
    """A program to be placed on a platform, from scratch or in the middle of a run.

    `holders` says at which places an item from outside lies, for items that do not simply lie at the
    platform's origin (the homes that a program gives its items are added); `free_at` when each host can
    first be used (0 where nothing is said). In the middle of a run, `since` tells for an item that is on its
    way or being made when it will be at one of its holders, by (item, place), and `link_free_at` when each
    link has done what it is to do first. Nobody reads the lower bound of a plan that is made again and
    again in a run: with `bounded` false it is not computed.
    """

    graph: Graph
    platform: Platform
    holders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    free_at: Mapping[int, float] = field(default_factory=dict)
    seed: int = 0
    bounded: bool = True
    since: Mapping[tuple[int, int], float] = field(default_factory=dict)
    link_free_at: Mapping[int, float] = field(default_factory=dict)
    ahead: int | None = None
    """The run sends inputs for so many tasks of each queue; None: all that can be sent."""

    def __post_init__(self) -> None:
        if len(self.graph.homes.index):
            homes = self.graph.homes.places_by_item(self.graph, self.platform)
            object.__setattr__(self, "holders", homes | dict(self.holders))


class Planner(Protocol):
    """Answers a whole problem at once. Constructors only store parameters."""

    name: str

    def plan(self, problem: Problem) -> Plan: ...


@dataclass(frozen=True, slots=True)
class Assign:
    """Run this task on this host; among a host's tasks, lower ranks go first."""

    task: str
    host: str
    rank: float


class Scheduler(Protocol):
    """Sees what happened and the present state, answers with assignments (which may change earlier ones).

    It never sees the simulator or the engine.
    """

    name: str

    def react(self, state: State, events: Sequence[Event]) -> list[Assign]: ...


class Follow:
    """Any planner as a scheduler: plans at the start, and again when a host leaves or joins.

    `first` is a plan that was already made for the start.
    """

    def __init__(self, planner: Planner, first: list[Assign] | None = None) -> None:
        self.planner = planner
        self.first = first
        self.name = planner.name

    def react(self, state: State, events: Sequence[Event]) -> list[Assign]:
        changed = any(isinstance(e, HostLeft | HostJoined) for e in events)
        if changed or (self.first is None and any(isinstance(e, Started) for e in events)):
            return assignments_of(self.planner.plan(state.problem()))
        if self.first is not None and any(isinstance(e, Started) for e in events):
            return self.first
        return []


def assignments_of(plan: Plan) -> list[Assign]:
    """A plan as assignments, ranked by planned start; ties as the program orders its tasks."""
    return [Assign(row.id, row.host, rank) for rank, row in enumerate(plan.tasks())]
