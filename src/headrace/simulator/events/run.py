"""What a simulated run under an online scheduler is given and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headrace.core import state as d
from headrace.core.online import Command
from headrace.model.events import Event
from headrace.model.graph import Floats, Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.simulator.events.trace import executed_plan

LINK_ORDERS = {"in-order": d.IN_ORDER, "out-of-order": d.OUT_OF_ORDER, "hybrid": d.HYBRID}


class Scheduler(Protocol):
    """A scheduler; `wake` and `next_time` are looked at if it has them."""

    name: str

    def react(self, state: Any, events: Sequence[Event]) -> Sequence[Command]: ...


@dataclass(frozen=True)
class ExecutionPolicy:
    """How the coordinator carries out what the scheduler decides."""

    link_order: str = "out-of-order"
    """in-order, out-of-order (a file that is not ready is passed over) or hybrid."""
    ahead: int = 2
    """Inputs are sent for so many tasks of each host's queue; planned deliveries are sent in any problem."""
    steal: bool = False
    duplicate: bool = False
    replicate: int = 0
    """Copy what every n-th level makes to a host that is not busy; 0: never."""
    strict: bool = False
    """Only the head of a queue may start."""


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What happened."""

    graph: Graph
    platform: Platform
    scheduler: str
    makespan: float
    log_time: Floats
    log_kind: Any
    log_a: Any
    log_b: Any
    log_c: Any
    seconds: float
    """Time it took to simulate, planning included."""
    deciding: float
    """Of that, time spent in the scheduler."""
    asked: int
    """How often the scheduler was asked."""
    plans: int
    redone: int
    """Executions that had to be repeated because their data was lost."""
    stolen: int
    copied: int
    replicas: int
    bytes_moved: float
    bound: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def events(self) -> int:
        return len(self.log_time)

    @property
    def happened(self) -> Plan:
        """The executions that counted and the transfers that arrived, as a plan to draw and to save."""
        return executed_plan(self)

    def gantt(self, path: str | Path) -> None:
        """Draw the run as an SVG picture, with executions that were stopped and hosts that were away."""
        from headrace.report.grid_gantt import write_grid_gantt

        write_grid_gantt(self, path)

    def log_lines(self) -> list[str]:
        """The whole log as text, one line an event: the same for the same seed."""
        from headrace.simulator.events.trace import log_lines

        return log_lines(self)
