"""The record of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.model.events import RuleDropped
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform


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

    def gantt(self, path: str | Path) -> None:
        """Draw the run as an SVG Gantt chart, including stopped executions and absent hosts."""
        from headrace.report.grid_gantt import write_grid_gantt

        write_grid_gantt(self, path)

    def log_lines(self) -> list[str]:
        """The whole log as text, one line per event; identical for identical seeds."""
        from headrace.simulator.events.trace import log_lines

        return log_lines(self)
