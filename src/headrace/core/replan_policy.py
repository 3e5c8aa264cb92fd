"""When a planner plans again during a run, for which tasks, and how far ahead work is handed out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from headrace.core.task_window import Reduction
from headrace.model.errors import UsageError

PlanningEvents = Literal["once", "S1", "S2", "S3"]
GridChanges = Literal["joins", "losses", "both", "neither"]


def _option(default: object, option: str, text: str) -> object:
    return field(default=default, metadata={"option": option, "help": text})


@dataclass(frozen=True)
class ReplanPolicy:
    """When a planner plans during a run, and how far ahead it hands out work.

    By default it plans at the start, hands out the whole plan, and plans what is left again when hosts join or leave.
    """

    events: PlanningEvents = _option(  # type: ignore[assignment]
        "once",
        "--events",
        "Planning events: once (at the start); S1 (every --interval seconds); S2 (the interval grows while the run goes "
        "as predicted and shrinks when it does not); S3 (as S2, unpredictable hosts count less).",
    )
    interval: float | None = _option(  # type: ignore[assignment]
        None, "--interval", "Seconds between the first two planning events of S1, S2, S3 (default: 4 mean run times)."
    )
    every: float = 0.0
    """Plan again after this share of the first plan's makespan, in place of `interval`; 0: use `interval`."""
    horizon: float | Literal["tuned"] = _option(  # type: ignore[assignment]
        "tuned",
        "--horizon",
        "How far beyond the next planning event of S1, S2, S3 hosts are given work, in intervals; tuned: as far as needed "
        "to keep hosts busy.",
    )
    keep: int = _option(  # type: ignore[assignment]
        1, "--keep", "Tasks that stay in each host's queue while a plan is made."
    )
    hold: bool = False
    """Leave queues as they are until the new plan is ready, and plan everything that has not started."""
    planning: float = _option(  # type: ignore[assignment]
        0.0, "--planning", "Virtual seconds that a plan takes, for each thousand tasks times hosts; work goes on meanwhile."
    )
    planning_fixed: float = 0.0
    """Virtual seconds that any plan takes."""
    subset: int = _option(  # type: ignore[assignment]
        0, "--subset", "Plan for at most this many tasks at once; 0: for all."
    )
    reduce: Reduction = _option(  # type: ignore[assignment]
        "shared-file", "--reduce", "Which tasks --subset takes first: those that share files, or random ones."
    )
    replan: GridChanges = _option(  # type: ignore[assignment]
        "both", "--replan", "Changes of the grid after which a plan is made at once; or a share of the planned time such as 10%."
    )
    misprediction: float = _option(  # type: ignore[assignment]
        math.inf, "--misprediction", "Plan again when a task takes this many times its predicted time, or less than that part of it."
    )
    pause: float = 0.0
    """Least seconds between a plan and one that a misprediction asks for."""
    idle: bool = True
    """Plan again when a host has nothing to do while ready tasks have no host."""
    threshold: float = 0.3
    """Share of wrong predictions above which the interval of S2 and S3 shrinks. Predictions say which tasks will run on
    which hosts at the next planning event, and which items will move over which links."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("interval", self.interval, 0.0),
            ("every", self.every, 0.0),
            ("planning", self.planning, 0.0),
            ("planning_fixed", self.planning_fixed, 0.0),
            ("keep", self.keep, 0),
            ("subset", self.subset, 0),
        ):
            if value is not None and not least <= value < math.inf:
                raise UsageError(f"{what} is {value}", where="replan policy", hint=f"give {least} or more")
        if self.interval == 0:
            raise UsageError("interval is 0", where="replan policy", hint="give seconds above 0, or leave it out")
        if self.horizon != "tuned" and not (isinstance(self.horizon, int | float) and self.horizon >= 0):
            raise UsageError(f"horizon is {self.horizon!r}", hint="use tuned, or a number of 0 or more")
        if not self.misprediction > 1:
            raise UsageError(f"misprediction is {self.misprediction}", hint="give a factor above 1, such as 2")
        for what, chosen, known in (
            ("events", self.events, ("once", "S1", "S2", "S3")),
            ("reduce", self.reduce, ("shared-file", "random")),
            ("replan", self.replan, ("joins", "losses", "both", "neither")),
        ):
            if chosen not in known:
                raise UsageError(f"{what} is {chosen!r}", hint=f"use one of {', '.join(known)}")
