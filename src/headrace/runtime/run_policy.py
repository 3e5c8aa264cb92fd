"""How a real run deals with failures: silence, standstill, replication, retries, and what it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from headrace.model.arguments import short, wrong_argument
from headrace.model.errors import UsageError
from headrace.model.units import as_seconds, quantity
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
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--suspect"),
            "help": "A worker that is silent for this long is suspected: its tasks run elsewhere too.",
        },
    )
    stall: float = field(
        default=60.0,
        metadata={
            "option": "--stall",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--stall"),
            "help": "End the run with a diagnosis when nothing has moved for this long and nothing runs.",
        },
    )
    replicate: Replication = field(
        default=0,
        metadata={
            "option": "--replicate",
            "metavar": "N|auto",
            "help": "Copy results and data that crosses each N-th level to another host; 0: never, auto: after losses.",
        },
    )
    retries: int = field(
        default=0,
        metadata={
            "option": "--retries",
            "metavar": "N",
            "help": "How often to retry a task that fails, on another host if there is one.",
            "min": 0,
        },
    )
    backoff: float = field(
        default=1.0,
        metadata={
            "option": "--backoff",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--backoff"),
            "help": "How long to wait before the first retry of a task; the wait doubles with each further one.",
        },
    )
    timeout: float | None = field(
        default=None,
        metadata={
            "option": "--timeout",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--timeout"),
            "help": "How long one attempt of a task may take.",
            "default_text": "no limit",
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
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--disk-wait"),
            "help": "How long to wait for free space when the disk is full.",
        },
    )

    failure_wait: float = field(
        default=600.0,
        metadata={
            "option": "--failure-wait",
            "metavar": "TIME",
            "parse": partial(quantity, what="time", where="--failure-wait"),
            "help": "After a failure, how long to wait for tasks that are running, so that their outputs are kept.",
        },
    )

    shared: tuple[str, ...] = field(
        default=(),
        metadata={
            "option": "--shared",
            "metavar": "FOLDER",
            "help": "A folder at the same path everywhere: inputs there are read in place. May be repeated.",
            "default_text": "none",
        },
    )

    def __post_init__(self) -> None:
        self._read_times("suspect", "stall", "timeout", above=True)
        self._read_times("backoff", "disk_wait", "failure_wait")
        if not (isinstance(self.retries, int) and self.retries >= 0):
            raise UsageError(f"retries is {self.retries!r}", hint="give a whole number, 0 or more")
        if self.keep not in get_args(Keep):
            raise UsageError(f"keep is {self.keep!r}", hint="use all, auto or results")
        object.__setattr__(self, "shared", _absolute(self.shared))
        if self.replicate != "auto" and not (isinstance(self.replicate, int) and self.replicate >= 0):
            raise UsageError(f"replicate is {self.replicate!r}", hint="use 0 or more levels, or auto")

    def _read_times(self, *names: str, above: bool = False) -> None:
        """Replace texts with units by seconds, in place; `above`: 0 is too little."""
        for name in names:
            given = getattr(self, name)
            if given is None and name == "timeout":
                continue
            seconds = as_seconds(given)
            if seconds is None or not 0 <= seconds < math.inf or (above and seconds == 0):
                hint = "give seconds above 0" if above else "give seconds, 0 or more"
                raise UsageError(f"{name} is {short(given)}", hint=hint)
            object.__setattr__(self, name, seconds)


def _absolute(folders: Sequence[str]) -> tuple[str, ...]:
    if isinstance(folders, str) or not all(str(each).startswith("/") for each in folders):
        raise UsageError(f"shared is {folders!r}", hint="give absolute paths of folders, such as /data")
    return tuple(str(each) for each in folders)


def levels_between_copies(elapsed: float, losses: int, levels: int, copying: float) -> int:
    """How many levels to run between copies with `replicate="auto"`: Young's rule for checkpoints.

    With a mean time between losses of M and c seconds to copy what one level produces, copies every sqrt(2 c M) seconds
    cost least. Both are those of the run so far: before the first loss nothing is copied.

    >>> levels_between_copies(elapsed=100.0, losses=1, levels=20, copying=1.0)
    3
    >>> levels_between_copies(elapsed=100.0, losses=0, levels=20, copying=1.0)
    0
    """
    if losses == 0 or elapsed <= 0 or levels == 0:
        return 0
    best = math.sqrt(2.0 * copying * elapsed / losses)
    return max(1, round(best * levels / elapsed))


DEFAULT_POLICY = RunPolicy()


def with_fields(policy: RunPolicy | None, given: Mapping[str, Any]) -> RunPolicy:
    """The policy, or the usual one, with these fields changed.

    >>> with_fields(None, {"replicate": 3}).replicate
    3
    >>> with_fields(None, {"stalling": 3})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: unknown parameter 'stalling' (try: one of suspect, ...)
    """
    if policy is not None and not isinstance(policy, RunPolicy):
        raise wrong_argument("policy", policy, "give its fields as keywords, such as keep='all'")
    known = [each.name for each in fields(RunPolicy)]
    for name in given:
        if name not in known:
            raise UsageError(f"unknown parameter {name!r}", hint=f"one of {', '.join(known)}")
    return replace(policy or RunPolicy(), **given)
