"""The contract of a back end: what turns a scheduler's decisions into work, and work into events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace.core.scheduler import Scheduler
from headrace.model.events import Event
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.model.program import Program


class RunOutcome(Protocol):
    """What came of a run, whatever carried it out."""

    @property
    def results(self) -> Mapping[str, Any]: ...

    @property
    def makespan(self) -> float: ...

    @property
    def events(self) -> Sequence[Event]: ...


class Backend(Protocol):
    """A simulated grid, local workers or a Dask cluster.

    Each drives a `core.coordinator.Coordinator`; the same scheduler object runs on all of them. `computes` says whether
    the bodies of tasks run, so that there are results.
    """

    platform: Platform
    computes: bool

    def execute(
        self, program: Program, scheduler: Scheduler | None, observe: Callable[[Event], None]
    ) -> RunOutcome: ...
