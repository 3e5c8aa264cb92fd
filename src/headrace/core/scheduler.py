"""The contracts of planners and schedulers: their inputs and the commands they return.

A `Planner` plans a whole problem at once. A `Scheduler` decides while a program runs: it receives a read-only `RunView`
and the events since its last call, and returns commands. It has no access to the simulator, the engine or the
coordinator's own state, so the same object works on every back end. `core.replan.Replan` makes any planner a scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from headrace.model.constraints import Constraints
from headrace.model.events import Event
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.need_limits import with_needs
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.rules.tree import RuleSet

if TYPE_CHECKING:
    from headrace.core.view import RunView


@dataclass(frozen=True, eq=False)
class Problem:
    """A program to be placed on a platform, from scratch or in the middle of a run.

    `holders` lists the places of items from outside that are not (only) at the platform's origin; the initial locations
    named by the program are added. `free_at` is the time at which each host becomes available (0 if not listed). In the
    middle of a run, `since` is the time at which an item in flight or in production will be at one of its holders, by
    (item, place), and `link_free_at` the time at which each link has worked off its backlog.
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
    rules: RuleSet | None = None
    """What users ask of a schedule; None: nothing."""
    constraints: Constraints | None = None
    """What the plan must satisfy besides the model's own rules; see `planners.obeying`. What tasks need of their hosts
    besides cores is added to it."""

    def __post_init__(self) -> None:
        if len(self.graph.initial_locations.index):
            initial_locations = self.graph.initial_locations.places_by_item(self.graph, self.platform)
            object.__setattr__(self, "holders", initial_locations | dict(self.holders))
        if self.graph.needs.names:
            bound = with_needs(self.constraints, self.graph, self.platform)
            object.__setattr__(self, "constraints", bound)


@runtime_checkable
class Planner(Protocol):
    """Plans a whole problem at once. Constructors only store parameters."""

    name: str

    def plan(self, problem: Problem) -> Plan: ...


Method = TypeVar("Method", bound=Callable[[Any, Problem], Plan])


def obeys(plan: Method) -> Method:
    """Decorate a planner's method `plan` so that it obeys the constraints of its problem.

    Without constraints the method is called as it is; with constraints, by `planners.obeying.plan_obeying`.

    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from headrace.planners.list.heft import Heft
    >>> from headrace.testing import random_platform, random_program
    >>> graph, platform = random_program(1).graph, random_platform(1)
    >>> last = replace(Constraints.none(graph.n_tasks, 4), allowed=np.array([[False, False, False, True]]))
    >>> set(Heft().plan(Problem(graph, platform, constraints=last)).host.tolist())
    {3}
    """

    @wraps(plan)
    def obeying(self: Any, problem: Problem) -> Plan:
        if problem.constraints is None:
            return plan(self, problem)
        obeying = import_module("headrace.planners.obeying")  # planners build on this module
        made: Plan = obeying.plan_obeying(lambda bound: plan(self, bound), problem, self.name)
        return made

    obeying.undecorated = plan  # type: ignore[attr-defined]
    return obeying  # type: ignore[return-value]


def undecorated(plan: Callable[[Problem], Plan]) -> Callable[[Problem], Plan]:
    """The method that `obeys` decorates, for callers that see to the constraints themselves; others as they are."""
    method = getattr(plan, "undecorated", None)
    return plan if method is None else partial(method, plan.__self__)  # type: ignore[attr-defined]


def tell_needs(scheduler: Any, graph: Graph, platform: Platform) -> None:
    """Make a scheduler that obeys constraints obey those that follow from what tasks need of these hosts."""
    known: Constraints | None = getattr(scheduler, "constraints", None)
    asked = None if known is not None and known.needs == "all" else known
    wanted = with_needs(asked, graph, platform)
    if hasattr(scheduler, "obey") and wanted is not known:
        scheduler.obey(wanted)


# Commands.


@dataclass(frozen=True, slots=True)
class Assign:
    """Enqueue a task on a host and remove it from any other queue; lower ranks start first.

    With `in_order` the task starts only when it is the head of its host's queue.
    """

    task: str
    host: str
    rank: float
    in_order: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AssignMany:
    """As `Assign`, for many tasks by number; used by compiled schedulers."""

    tasks: Ints
    hosts: Ints
    ranks: Floats
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send an item from one place to another; on each link, lower ranks go first.

    Places are hosts, or sites whose hosts share their storage. The item need not exist yet. With `prefetch`, a transfer
    on fair links starts only when a task that reads the item is among those whose inputs are prefetched; otherwise
    as soon as the source has the item. `in_turn`: on fair links, it waits until it is first by rank on the slow links
    of its route and the turn of the transfer before it is over.
    """

    item: str
    source: str
    target: str
    rank: float
    prefetch: bool = False
    in_turn: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Deliver:
    """Deliver results that may go to one of several places to these, by number; without it, to the first of them."""

    items: Ints
    places: Ints


@dataclass(frozen=True, slots=True, eq=False)
class DiskOrder:
    """The order in which tasks and transfers take up the storage of sites, by number; nothing overtakes.

    A task takes up room for its outputs when it starts, a transfer room for its item at its target. What is not named
    here is not affected, and what has been withdrawn does not count.
    """

    tasks: Ints
    """-1 where an item is named,"""
    items: Ints
    """and the other way round;"""
    places: Ints
    """where each takes up storage."""


@dataclass(frozen=True, slots=True)
class Replicate:
    """Keep one more copy of an item at a place; it is sent after the transfers that are already requested."""

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
    """Remove a task that has not started from its queue; it is ready again."""

    task: str


@dataclass(frozen=True, slots=True)
class RequeueTail:
    """Keep the first `keep` tasks of every host's queue and remove the others.

    Transfers requested for the removed tasks are withdrawn if they have not started.
    """

    keep: int


Command: TypeAlias = (
    Assign | AssignMany | Fetch | Deliver | DiskOrder | Replicate | Remove | Cancel | Requeue | RequeueTail
)


@dataclass(frozen=True, slots=True)
class WakeConditions:
    """When a scheduler is called, in addition to the start and changes of the grid.

    >>> WakeConditions(idle=True, at=60.0).at
    60.0
    """

    every_event: bool = False
    """After every event."""
    ready: int = 0
    """When this many ready tasks have no host; 0: disabled."""
    idle: bool = False
    """When a ready task has no host and a host is idle."""
    idle_within: float = 0.0
    """With `idle`: also when a host is expected to become idle within this many seconds."""
    imbalance: bool = False
    """When a host is idle while another has more tasks than cores, and according to the estimates the last task of the
    longest queue would finish sooner on the idle host."""
    late_weight: float = 0.0
    """With `imbalance`: the remaining time of an overdue task is this many times its delay so far."""
    misprediction: float = math.inf
    """When a run time exceeds the prediction by this factor, or is shorter by this factor."""
    at: float = math.inf
    """At this time."""


ON_GRID_CHANGES = WakeConditions()
EVERY_EVENT = WakeConditions(every_event=True)


@runtime_checkable
class Scheduler(Protocol):
    """Decides while a program runs.

    `wake` holds the conditions for the next call of `react`; it is read after every call, which may change it.

    >>> class FirstHost:
    ...     name = "first-host"
    ...     wake = WakeConditions(idle=True)
    ...     def react(self, view, events):
    ...         names = view.graph.task_names
    ...         return [Assign(names[task], view.platform.hosts[0].name, rank=task) for task in view.ready()]
    >>> import headrace as hr
    >>> program = hr.Program()
    >>> tasks = [program.task(None, work=1.0) for _ in range(3)]
    >>> hr.simulate(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), FirstHost()).makespan
    1.5
    """

    name: str

    @property
    def wake(self) -> WakeConditions: ...

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]: ...
