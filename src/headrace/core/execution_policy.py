"""How the coordinator carries out what a scheduler decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from headrace.model.errors import UsageError

LINK_ORDERS = {"in-order": 0, "out-of-order": 1, "hybrid": 2, "planned": 3}
LinkOrder = Literal["planned", "in-order", "out-of-order", "hybrid"]
Routes = Literal["planned", "nearest"]
TaskOrder = Literal["planned", "ready"]


@dataclass(frozen=True)
class ExecutionPolicy:
    """How the queues of hosts and links are processed, in addition to the scheduler's commands.

    The defaults execute a plan as it was made: hosts, task order on each host, and the source, relays and order of its
    transfers. `task_order`, `routes` and `link_order` "planned" have no effect on schedulers that make no plan.

    Raises UsageError for an unknown choice or a negative number.

    >>> ExecutionPolicy(steal=True, prefetch_depth=4).task_order
    'planned'
    >>> ExecutionPolicy(link_order="random")
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: ...
    """

    task_order: TaskOrder = field(
        default="planned",
        metadata={
            "option": "--order",
            "help": "Which queued task a host starts next: the next one of the plan, or any that is ready.",
        },
    )
    link_order: LinkOrder = field(
        default="planned",
        metadata={
            "option": "--links",
            "help": "Order of transfers on fifo links: planned; out-of-order (skip files that are not ready), "
            "in-order, or hybrid (wait for a file that is due soon).",
        },
    )
    routes: Routes = field(
        default="planned",
        metadata={
            "option": "--routes",
            "help": "Where data is fetched from: the sources and relays of the plan, or the nearest copy.",
        },
    )
    prefetch_depth: int = field(
        default=2,
        metadata={
            "option": "--ahead",
            "metavar": "N",
            "min": 1,
            "help": "Prefetch inputs for the first N tasks in each host's queue; planned transfers always go.",
        },
    )
    steal: bool = field(
        default=False,
        metadata={"option": "--steal", "help": "Idle hosts take tasks from hosts that share their storage."},
    )
    duplicate: bool = field(
        default=False,
        metadata={"option": "--duplicate", "help": "Idle hosts start copies of tasks that are far behind."},
    )
    replicate: int = field(
        default=0,
        metadata={
            "option": "--replicate",
            "help": "Copy data that crosses every N-th level to a host that is not busy; 0: never.",
            "metavar": "N",
            "min": 0,
        },
    )
    strict: bool = False
    """Only the head of a queue may start, even if the scheduler did not request it."""

    def __post_init__(self) -> None:
        for what, value, known in (
            ("task order", self.task_order, ("planned", "ready")),
            ("link order", self.link_order, tuple(LINK_ORDERS)),
            ("routes", self.routes, ("planned", "nearest")),
        ):
            if value not in known:
                raise UsageError(f"{what} is {value!r}", hint=f"use one of {', '.join(known)}")
        if self.replicate < 0:
            raise UsageError(f"replicate is {self.replicate}", hint="use 0 or more levels")
