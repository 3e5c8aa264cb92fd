"""A plan: where and when each task runs, and when data is transferred."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from headrace.model.arguments import checked_path
from headrace.model.deferred import deferred
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.platform import Platform
from headrace.model.units import plural, show_time

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.model.program import Program


class PlannedTask(NamedTuple):
    id: str
    host: str
    core: int
    start: float
    finish: float


class PlannedTransfer(NamedTuple):
    data: str
    source: str
    target: str
    start: float
    finish: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule: arrays over tasks (host, core, start, finish) and over transfers (`move_...`).

    `bound` is a proven lower bound: no plan on this platform has a smaller makespan. `notes` are remarks for the
    user, such as inputs that were assumed to be available everywhere.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> first = program.task(None, outputs={"x": "1 MB"}, work=2.0)
    >>> second = program.task(None, inputs=[first], outputs=["y"], work=1.0)
    >>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), scheduler="heft")
    >>> [(task.host, task.start, task.finish) for task in plan.tasks()]
    [('h0', 0.0, 1.0), ('h0', 1.0, 1.5)]
    >>> plan.makespan, plan.ratio, list(plan.transfers())
    (1.5, 1.0, [])
    """

    graph: Graph
    platform: Platform
    scheduler: str
    host: Ints
    core: Ints
    start: Floats
    finish: Floats
    move_item: Ints
    move_source: Ints
    """Places, as numbered by platform.network."""
    move_target: Ints
    move_start: Floats
    move_finish: Floats
    bound: float = 0.0
    seconds: float = 0.0
    """Time spent planning."""
    notes: tuple[str, ...] = field(default=())
    in_turn: bool = False
    """On fair links: transfers take turns, in the planned order, on the slow links of their routes."""

    @property
    def makespan(self) -> float:
        """When the last task has finished and the last result has been delivered."""
        last = float(self.finish.max()) if len(self.finish) else 0.0
        return max(last, float(self.move_finish.max())) if len(self.move_finish) else last

    @property
    def ratio(self) -> float:
        """Makespan divided by the proven lower bound: 1 is optimal."""
        return self.makespan / self.bound if self.bound > 0 else 1.0

    @property
    def hosts_used(self) -> int:
        return len(np.unique(self.host))

    @property
    def bytes_moved(self) -> float:
        return float(self.graph.size[self.move_item].sum())

    def tasks(self) -> Iterator[PlannedTask]:
        """Tasks by start time, ties in program order."""
        names = [h.name for h in self.platform.hosts]
        for t in np.lexsort((np.arange(len(self.start)), self.start)).tolist():
            yield PlannedTask(
                self.graph.task_names[t],
                names[self.host[t]],
                int(self.core[t]),
                float(self.start[t]),
                float(self.finish[t]),
            )

    def transfers(self) -> Iterator[PlannedTransfer]:
        """Transfers by start time, ties by item."""
        places = self.platform.network.place_names
        for k in np.lexsort((self.move_item, self.move_start)).tolist():
            yield PlannedTransfer(
                self.graph.item_names[self.move_item[k]],
                places[self.move_source[k]],
                places[self.move_target[k]],
                float(self.move_start[k]),
                float(self.move_finish[k]),
            )

    @staticmethod
    def read(
        path: str | Path,
        program: Program | Graph | str | Path | None = None,
        platform: Platform | str | Path | None = None,
    ) -> Plan:
        """Read a plan that `write`, or `headrace plan -o`, has written as JSON; `headrace.check` says if it is valid.

        A plan has only the names of its tasks, items and hosts, so it is read together with the program and the
        platform that it was made for. By default they are read from the files that `headrace plan` notes in the plan; a
        Python file must be given.

        >>> import tempfile, headrace as hr
        >>> program = hr.Program()
        >>> done = program.task(None, work=1.0)
        >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.plan(program, lab, "heft").write(f"{folder}/plan.json")
        ...     hr.Plan.read(f"{folder}/plan.json", program, lab)
        <Plan of 'program' on 'platform' by heft: 1 task, makespan 500 ms>
        """
        plan: Plan = deferred("load_plan")(checked_path(path), program, platform)
        return plan

    def gantt(self, path: str | Path | None = None) -> Any:
        """The Gantt chart of the plan, written to an SVG file if a path is given; a notebook shows what is returned."""
        return deferred("draw_plan")(self, None if path is None else checked_path(path))

    def to_pandas(self, what: Literal["tasks", "transfers"] = "tasks") -> Any:
        """The tasks or the transfers as a `pandas.DataFrame`, by start time; times in seconds, sizes in bytes."""
        return deferred("plan_frame")(self, what)

    def write(self, path: str | Path) -> None:
        """Write the plan: .json can be read by `read`, .csv and .parquet list the tasks, .svg is the Gantt chart."""
        deferred("write_plan_as")(self, checked_path(path))

    def __repr__(self) -> str:
        return (
            f"<Plan of {self.graph.name!r} on {self.platform.name!r} by {self.scheduler}: "
            f"{plural(self.graph.n_tasks, 'task')}, makespan {show_time(self.makespan)}>"
        )

    def _repr_html_(self) -> str:
        html: str = deferred("plan_html")(self)
        return html


NO_MOVES: dict[str, Any] = {
    "move_item": np.empty(0, np.int32),
    "move_source": np.empty(0, np.int32),
    "move_target": np.empty(0, np.int32),
    "move_start": np.empty(0),
    "move_finish": np.empty(0),
}
