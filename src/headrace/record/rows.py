"""Rows returned by queries on a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["running", "done", "failed", "stopped", "lost"]
ENDINGS: tuple[Status, ...] = ("done", "failed", "stopped")
"""How a run can end; `lost` is set by another process when the run's process is gone."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. Timestamps are wall-clock times; makespan and bound are in seconds."""

    id: str
    program: str
    digest: str
    """Equal for runs of the same program, whatever their estimates."""
    platform: str
    scheduler: str
    status: str
    started: float
    finished: float | None
    makespan: float | None
    bound: float | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One execution of a task, in seconds since the start of the run; a failed one has no known start."""

    task: str
    kind: str
    host: str
    start: float | None
    finish: float
    input_bytes: float
    output_bytes: float
    status: str
    error: str
    location: str
    """Where its first result is stored; "" if it has none."""
    session: int = 1
    """1, and one more each time that the run was resumed."""


@dataclass(frozen=True, slots=True)
class TransferRow:
    item: str
    source: str
    target: str
    start: float
    finish: float
    size: float


@dataclass(frozen=True, slots=True)
class PlanRow:
    task: str
    host: str
    start: float
    finish: float


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A result that was written to a file."""

    item: str
    task: str
    location: str
    checksum: str
    """BLAKE2b-256 of the file, in hexadecimal; "" in runs of older versions."""
    size: float


@dataclass(frozen=True, slots=True)
class Session:
    """A run from its begin, or from where it was resumed, to where it ended."""

    run: str
    number: int
    started: float
    """Wall-clock time."""
    host: str
    """The machine of the client."""
    offset: float = 0.0
    """Seconds that earlier sessions took."""
