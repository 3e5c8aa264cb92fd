"""The back-end contract: a back end carries out a scheduler's decisions and reports events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace.core.scheduler import Scheduler
from headrace.model.events import Event
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.model.program import Program


class RunOutcome(Protocol):
    """The outcome of a run, independent of the back end."""

    @property
    def results(self) -> Mapping[str, Any]: ...

    @property
    def makespan(self) -> float: ...

    @property
    def events(self) -> Sequence[Event]: ...


class Backend(Protocol):
    """A simulated grid, local workers or a Dask cluster.

    Every back end drives a `core.coordinator.Coordinator`, so the same scheduler object runs on all of them. `computes`
    tells whether task bodies are executed and produce results.
    """

    platform: Platform
    computes: bool

    def execute(
        self, program: Program, scheduler: Scheduler | None, observe: Callable[[Event], None]
    ) -> RunOutcome: ...
