"""The record of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headrace.model.deferred import deferred
from headrace.model.events import RuleDropped
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import plural, show_time


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """A program's run in virtual time: its log and its outcome."""

    graph: Graph
    platform: Platform
    scheduler: str
    makespan: float
    log_time: Floats
    log_kind: NDArray[np.int8]
    log_subject: Ints
    log_from: Ints
    log_to: Ints
    seconds: float
    """Wall-clock seconds for the simulation, including planning but not compiling."""
    deciding: float
    """The part of these seconds that was spent in the scheduler."""
    asked: int
    """Number of scheduler calls."""
    plans: int
    redone: int
    """Executions that were repeated because their data was lost."""
    stolen: int
    duplicates: int
    replicas: int
    bytes_moved: float
    bound: float = 0.0
    """Lower bound on the makespan, with every host always up and at its highest speed."""
    notes: tuple[str, ...] = field(default=())
    dropped: tuple[RuleDropped, ...] = ()
    """Rules that were left out during the run, because they could not be kept any more."""

    @property
    def events(self) -> int:
        """Number of log entries."""
        return len(self.log_time)

    @property
    def executed(self) -> Plan:
        """The effective executions and completed transfers as a plan that can be drawn, checked and saved."""
        from headrace.simulator.events.trace import executed_plan

        return executed_plan(self)

    def gantt(self, path: str | Path | None = None) -> Any:
        """The Gantt chart of the run, with stopped executions and absent hosts; written as SVG if a path is given."""
        return deferred("draw_simulated")(self, path)

    def to_pandas(self, what: Literal["tasks", "transfers"] = "tasks") -> Any:
        """The executions or transfers that counted as a `pandas.DataFrame`; times in seconds, sizes in bytes."""
        return self.executed.to_pandas(what)

    def __repr__(self) -> str:
        return (
            f"<SimulatedRun of {self.graph.name!r} on {self.platform.name!r} by {self.scheduler}: "
            f"{plural(self.graph.n_tasks, 'task')}, makespan {show_time(self.makespan)}>"
        )

    def _repr_html_(self) -> str:
        html: str = deferred("simulated_html")(self)
        return html

    def log_lines(self) -> list[str]:
        """The whole log as text, one line per event; identical for identical seeds."""
        from headrace.simulator.events.trace import log_lines

        return log_lines(self)
