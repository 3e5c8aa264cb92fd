"""When a planner replans during a run, for which tasks, and how far ahead tasks are dispatched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from headrace.core.task_window import Reduction
from headrace.model.arguments import as_float, as_whole, short
from headrace.model.errors import UsageError
from headrace.model.units import as_seconds, quantity

PlanningEvents = Literal["once", "S1", "S2", "S3"]
WhenImpossible = Literal["stop", "drop"]
GRID_CHANGES = ("joins", "losses", "both", "neither")


@dataclass(frozen=True)
class ReplanPolicy:
    """When a planner replans during a run, and how far ahead it dispatches tasks.

    By default it plans at the start, dispatches the whole plan, and replans the remaining tasks when hosts join or
    leave.

    Raises UsageError for an unknown choice or a number out of range.

    >>> ReplanPolicy(events="S2", interval=30.0, replan="10%").periodic
    True
    >>> ReplanPolicy(misprediction=0.5)
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: misprediction is 0.5 (try: use a factor above 1, such as 2)
    """

    events: PlanningEvents = field(
        default="once",
        metadata={
            "option": "--events",
            "help": "When to plan: once (at the start), S1 (every --interval seconds), S2 (more often when the run "
            "strays from its prediction), S3 (as S2, with less work for unpredictable hosts).",
        },
    )
    interval: float | None = field(
        default=None,
        metadata={
            "option": "--interval",
            "help": "Time between the first two plans of S1, S2 and S3.",
            "default_text": "4 mean run times",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--interval"),
        },
    )
    horizon: float | Literal["tuned"] = field(
        default="tuned",
        metadata={
            "option": "--horizon",
            "help": "How far past the next plan of S1, S2 and S3 hosts are given work, in intervals; tuned: as far as "
            "keeps them busy.",
        },
    )
    keep: int = field(
        default=1,
        metadata={
            "option": "--keep",
            "help": "Tasks that stay in each host's queue while a plan is made.",
            "min": 0,
        },
    )
    hold: bool = False
    """Leave queues unchanged until the new plan is ready, and plan all tasks that have not started."""
    planning: float = field(
        default=0.0,
        metadata={
            "option": "--planning",
            "help": "Virtual seconds of planning per 1,000 task-host pairs; hosts keep working meanwhile.",
            "metavar": "SECONDS",
        },
    )
    planning_fixed: float = 0.0
    """Fixed planning time of every plan, in virtual seconds."""
    subset: int = field(
        default=0,
        metadata={
            "option": "--subset",
            "help": "Plan for at most this many tasks at once; 0: all.",
            "min": 0,
        },
    )
    reduce: Reduction = field(
        default="shared-file",
        metadata={
            "option": "--reduce",
            "help": "With --subset, tasks that share files first, or random ones.",
        },
    )
    replan: str = field(
        default="both",
        metadata={
            "option": "--replan",
            "help": "Plan again at once when hosts join (joins), on losses, on both or on neither; 10%: on both, and "
            "after each 10% of the planned time.",
        },
    )
    misprediction: float = field(
        default=math.inf,
        metadata={
            "option": "--misprediction",
            "help": "Plan again when a task takes this many times its predicted time, or less than 1/this.",
            "metavar": "FACTOR",
        },
    )
    pause: float = 0.0
    """Minimum seconds between a plan and one triggered by a misprediction."""
    idle: bool = True
    """Replan when a host is idle while ready tasks have no host."""
    when_impossible: WhenImpossible = field(
        default="stop",
        metadata={
            "option": "--when-impossible",
            "help": "When a loss makes it impossible to keep a rule: stop the run, or drop the rule and continue.",
        },
    )
    threshold: float = 0.3
    """Share of wrong predictions above which the interval of S2 and S3 shrinks. A prediction lists which tasks will run
    on which hosts at the next planning event, and which items will be in flight on which links."""

    def __post_init__(self) -> None:
        for what in ("interval", "planning", "planning_fixed", "pause"):
            given = getattr(self, what)
            if given is None and what == "interval":
                continue
            seconds = as_seconds(given)
            if seconds is None or not 0.0 <= seconds < math.inf:
                raise UsageError(f"{what} is {short(given)}", where="replan policy", hint="use 0.0 or more")
            object.__setattr__(self, what, seconds)
        for what in ("keep", "subset"):
            given = getattr(self, what)
            number = as_whole(given)
            if number is None or number < 0:
                raise UsageError(f"{what} is {short(given)}", where="replan policy", hint="use 0 or more")
        for what in ("misprediction", "threshold"):
            if as_float(getattr(self, what)) is None:
                raise UsageError(f"{what} is {short(getattr(self, what))}", hint="use a number")
        if self.interval == 0:
            raise UsageError(
                "interval is 0", where="replan policy", hint="use a number of seconds above 0, or omit it"
            )
        if self.horizon != "tuned" and not (isinstance(self.horizon, int | float) and self.horizon >= 0):
            raise UsageError(f"horizon is {self.horizon!r}", hint="use tuned, or a number that is 0 or more")
        if not self.misprediction > 1:
            raise UsageError(f"misprediction is {self.misprediction}", hint="use a factor above 1, such as 2")
        for what, chosen, known in (
            ("events", self.events, ("once", "S1", "S2", "S3")),
            ("reduce", self.reduce, ("shared-file", "random")),
            ("when_impossible", self.when_impossible, ("stop", "drop")),
        ):
            if chosen not in known:
                raise UsageError(f"{what} is {chosen!r}", hint=f"use one of {', '.join(known)}")
        if not isinstance(self.replan, str) or (
            self.replan not in GRID_CHANGES and not 0 < self.share < math.inf
        ):
            known_changes = ", ".join(GRID_CHANGES)
            raise UsageError(
                f"replan is {self.replan!r}", hint=f"use one of {known_changes}, or a share such as 10%"
            )

    @property
    def share(self) -> float:
        """The share of the planned time after which the program is replanned; 0 if `replan` is not a share.

        >>> ReplanPolicy(replan="10%").share, ReplanPolicy().share
        (0.1, 0.0)
        """
        if not self.replan.endswith("%"):
            return 0.0
        try:
            return float(self.replan.removesuffix("%")) / 100.0
        except ValueError:
            return 0.0

    @property
    def periodic(self) -> bool:
        """Whether plans are made at intervals."""
        return self.events != "once" or self.share > 0
