"""What a record answers with: one value for each row of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["running", "done", "failed", "stopped", "lost"]
ENDINGS: tuple[Status, ...] = ("done", "failed", "stopped")
"""How a run can say it ended; `lost` is said by others of a run whose process is gone."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. Its times are those of a wall clock; makespan and bound are seconds."""

    id: str
    program: str
    digest: str
    """The same for two runs of one program, whatever their estimates."""
    platform: str
    scheduler: str
    status: str
    started: float
    finished: float | None
    makespan: float | None
    bound: float | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One execution of a task, in seconds since the run began; a failed one has no known start."""

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
    """Where its result lies; "" when it was not kept."""


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
