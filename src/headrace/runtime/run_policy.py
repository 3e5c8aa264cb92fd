"""How a real run deals with failures: silence, standstill, replication, and what it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from headrace.model.errors import UsageError
from headrace.runtime.kept_files import Keep

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
            "metavar": "SECONDS",
            "help": "A worker that is silent for so long is suspected: its tasks run elsewhere too.",
        },
    )
    stall: float = field(
        default=60.0,
        metadata={
            "option": "--stall",
            "metavar": "SECONDS",
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

    keep: Keep = field(
        default="auto",
        metadata={
            "option": "--keep",
            "metavar": "all|auto|results",
            "help": "Which data to keep for `headrace resume`: all, what takes long to make again, or results only.",
        },
    )
    disk_wait: float = field(
        default=600.0,
        metadata={
            "option": "--disk-wait",
            "metavar": "SECONDS",
            "help": "How long to wait for room when the disk is full.",
        },
    )

    def __post_init__(self) -> None:
        for name in ("suspect", "stall"):
            seconds = getattr(self, name)
            if not 0 < seconds < math.inf:
                raise UsageError(f"{name} is {seconds}", hint="give seconds above 0")
        if self.keep not in get_args(Keep):
            raise UsageError(f"keep is {self.keep!r}", hint="use all, auto or results")
        if not 0 <= self.disk_wait < math.inf:
            raise UsageError(f"disk_wait is {self.disk_wait}", hint="give seconds, 0 or more")
        if self.replicate != "auto" and not (isinstance(self.replicate, int) and self.replicate >= 0):
            raise UsageError(f"replicate is {self.replicate!r}", hint="use 0 or more levels, or auto")


def run_policy(policy: RunPolicy | None, more: Mapping[str, Any]) -> RunPolicy:
    """A policy with some fields given as keywords.

    >>> run_policy(None, {"keep": "all"}).keep
    'all'
    """
    known = {declared.name for declared in fields(RunPolicy)}
    for name in more:
        if name not in known:
            raise UsageError(f"there is no parameter {name!r}", hint=f"use one of {', '.join(sorted(known))}")
    return replace(policy or RunPolicy(), **more)
