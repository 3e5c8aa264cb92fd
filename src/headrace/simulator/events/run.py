"""What a simulated run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """A program's run in virtual time: its log, and what it came to."""

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
    """Time it took to simulate, planning included, compiling not."""
    deciding: float
    """Of that, time spent in the scheduler."""
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
    """No run on this grid takes less, with every host there all the time and as fast as it ever is."""
    notes: tuple[str, ...] = field(default=())

    @property
    def events(self) -> int:
        """Lines of the log."""
        return len(self.log_time)

    @property
    def executed(self) -> Plan:
        """The executions that counted and the transfers that arrived, as a plan to draw, check and save."""
        from headrace.simulator.events.trace import executed_plan

        return executed_plan(self)

    def gantt(self, path: str | Path) -> None:
        """Draw the run as an SVG picture, with executions that were stopped and hosts that were away."""
        from headrace.report.grid_gantt import write_grid_gantt

        write_grid_gantt(self, path)

    def log_lines(self) -> list[str]:
        """The whole log as text, one line for each event: the same for the same seed."""
        from headrace.simulator.events.trace import log_lines

        return log_lines(self)
