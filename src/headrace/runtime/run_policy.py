"""How a real run deals with failures: silence, standstill, replication."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from headrace.model.errors import UsageError
from headrace.model.units import quantity

Replication: TypeAlias = int | Literal["auto"]


@dataclass(frozen=True)
class RunPolicy:
    """How a real run deals with failures.

    >>> RunPolicy(suspect=5.0).stall
    60.0
    >>> RunPolicy(stall=0)
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: stall is 0 (try: give seconds above 0)
    """

    suspect: float = field(
        default=20.0,
        metadata={
            "option": "--suspect",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--suspect"),
            "help": "A worker that is silent for so long is suspected: its tasks run elsewhere too.",
        },
    )
    stall: float = field(
        default=60.0,
        metadata={
            "option": "--stall",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--stall"),
            "help": "End the run with a diagnosis when nothing has moved for so long and nothing runs.",
        },
    )
    replicate: Replication = field(
        default=0,
        metadata={
            "option": "--replicate",
            "metavar": "N|auto",
            "help": "Copy what every N-th level produces to a host that is not busy; 0: never; auto: by expected loss.",
        },
    )

    def __post_init__(self) -> None:
        for name in ("suspect", "stall"):
            seconds = getattr(self, name)
            if not 0 < seconds < math.inf:
                raise UsageError(f"{name} is {seconds}", hint="give seconds above 0")
        if self.replicate != "auto" and not (isinstance(self.replicate, int) and self.replicate >= 0):
            raise UsageError(f"replicate is {self.replicate!r}", hint="use 0 or more levels, or auto")


def with_fields(policy: RunPolicy | None, given: Mapping[str, Any]) -> RunPolicy:
    """The policy, or the usual one, with these fields changed.

    >>> with_fields(None, {"replicate": 3}).replicate
    3
    >>> with_fields(None, {"stalling": 3})
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: unknown parameter 'stalling' (try: one of suspect, stall, replicate)
    """
    known = [each.name for each in fields(RunPolicy)]
    for name in given:
        if name not in known:
            raise UsageError(f"unknown parameter {name!r}", hint=f"one of {', '.join(known)}")
    return replace(policy or RunPolicy(), **given)
