"""Run a program for real: workers, predictions, a plan, the record, and the result files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.model.check import require_valid
from headrace.model.errors import HeadraceError, TaskFailed, UsageError
from headrace.model.events import Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.online.adapter import accepted_policy, is_scheduler, make_scheduler
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import DEFAULT
from headrace.planners.timed import plan_with_bound
from headrace.predict.history import predict

if TYPE_CHECKING:
    from headrace.record import Record, RunRecord
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.execute import Outcome

ENGINE = "dask"
"""The scheduler name that leaves the placing to the engine."""

_PAUSE = 5.0
"""Seconds between plans of a real run that surprises ask for: handing a plan out takes time as well."""


@dataclass(frozen=True, eq=False)
class Run:
    """What came of a real run."""

    id: str
    """Its name in the record."""
    scheduler: str
    """The scheduler that decided; "dask" when the engine did."""
    plan: Plan | None
    """The plan the run started with; None for schedulers that make none."""
    outcome: Outcome
    graph: Graph
    """The program as it was estimated before the run."""
    platform: Platform
    files: dict[str, Path]
    """Where each result was written."""

    @cached_property
    def bound(self) -> float | None:
        """No placing of the tasks, as long as they were measured to be, takes less on these workers."""
        rate = self.platform.rates(self.graph)
        number = {name: t for t, name in enumerate(self.graph.task_names)}
        host_number = {host.name: i for i, host in enumerate(self.platform.hosts)}
        work = np.full(self.graph.n_tasks, np.nan)
        for event in self.outcome.events:
            if isinstance(event, TaskFinished) and event.host in host_number:
                t = number[event.task]
                work[t] = (event.time - event.start) * rate[
                    self.graph.speed_class[t], host_number[event.host]
                ]
        if np.isnan(work).any():
            return None
        return lower_bound(Problem(self.graph.with_work(np.maximum(work, 0.0)), self.platform))

    @property
    def makespan(self) -> float:
        return self.outcome.makespan

    @property
    def results(self) -> dict[str, Any]:
        return self.outcome.results

    @property
    def failure(self) -> TaskFailed | None:
        """Why the run ended early, as an error that can be raised."""
        return self.outcome.failure


def run(
    program: Program,
    on: str | Cluster = "local",
    scheduler: str | Planner | Scheduler = DEFAULT,
    *,
    workers: int | None = None,
    speeds: Sequence[float] | None = None,
    stretch: float = 1.0,
    tls: dict[str, Any] | None = None,
    record: str | Path | None = None,
    output: str | Path = ".",
    learn: bool = True,
    observe: Callable[[Event], None] = lambda event: None,
    planned: Callable[[Plan | None], None] = lambda plan: None,
) -> Run:
    """Run a program on local workers, on a cluster at `tls://host:port`, or on an open `Cluster`.

    The plan knows what earlier runs measured (`learn`), everything that happens goes to the record, and
    results with a path are written relative to `output`, the others to the record's folder. A task that fails
    does not raise: see `Run.failure`. `scheduler="dask"` leaves the placing to the engine. The
    scheduler decides while the program runs, as in a simulation; a planner's plan is made first, and again when
    hosts join or leave. `planned` hears the plan before the run, `observe` every event.
    """
    from headrace.record import Record
    from headrace.runtime.results import write_results

    with (
        Record.open(None if record is None else Path(record)) as book,
        _cluster(on, workers, speeds, stretch, tls) as cluster,
    ):
        graph, platform = _estimates(program, cluster.platform, book if learn else None)
        plan, policy, name = _policy(scheduler, graph, platform)
        planned(plan)
        with book.begin(program.name, graph, platform, name, plan) as entry:

            def both(event: Event) -> None:
                entry.observe(event)
                observe(event)

            outcome = cluster.execute(program, policy, both, graph=graph, platform=platform)
            files = write_results(program, outcome.results, output)
            files |= _keep(program, outcome.results, files, entry.results_folder)
            _note_locations(program, outcome, files, entry)
            done = Run(entry.id, name, plan, outcome, graph, platform, files)
            entry.finish("failed" if outcome.failure else "done", outcome.makespan, done.bound)
            return done


@contextmanager
def _cluster(
    on: str | Cluster,
    workers: int | None,
    speeds: Sequence[float] | None,
    stretch: float,
    tls: dict[str, Any] | None,
) -> Iterator[Cluster]:
    """Workers for one run; those that were given stay open."""
    from headrace.runtime.cluster import connect, open_local

    if not isinstance(on, str):
        yield on
    elif on == "local":
        with open_local(workers, speeds=speeds, stretch=stretch) as opened:
            yield opened
    elif "://" in on:
        if workers is not None or speeds is not None:
            raise UsageError("workers and speeds are for local runs", where=on, hint="leave them out")
        with connect(on, **(tls or {})) as joined:
            yield joined
    else:
        raise UsageError(f"cannot run on {on!r}", hint="`local`, tls://host:port, or tcp://127.0.0.1:port")


def _estimates(program: Program, platform: Platform, book: Record | None) -> tuple[Graph, Platform]:
    """Run times and sizes as earlier runs measured them, where there were any."""
    graph = program.graph
    if book is None:
        return graph, platform
    sizes = book.item_sizes(graph)
    if sizes:
        estimated = np.where(graph.unknown_size, np.nan, graph.size).tolist()
        graph = graph.with_size([sizes.get(n, s) for n, s in zip(graph.item_names, estimated, strict=True)])
    return predict(graph, platform, book.measurements(graph.kinds))


def _policy(
    scheduler: str | Planner | Scheduler, graph: Graph, platform: Platform
) -> tuple[Plan | None, Scheduler | None, str]:
    """The plan to start with, if the scheduler is a planner; the scheduler; and its name."""
    if scheduler == ENGINE:
        return None, None, ENGINE
    policy = ReplanPolicy(pause=_PAUSE)
    if isinstance(scheduler, str):
        policy = accepted_policy(scheduler, policy)
    elif is_scheduler(scheduler):
        policy = ReplanPolicy()
    made = make_scheduler(scheduler, policy)
    if not isinstance(made, Replan):
        return None, made, made.name
    plan = plan_with_bound(made.planner, Problem(graph, platform))
    require_valid(graph, platform, plan)
    made.first = plan
    return plan, made, made.name


def _keep(
    program: Program, results: dict[str, Any], written: dict[str, Path], folder: Path
) -> dict[str, Path]:
    """Results without a path of their own go to the run's folder, if they can be files at all."""
    from headrace.formats.files import write_file
    from headrace.runtime.results import encode

    kept = {}
    for item in program.results():
        if item.name in written or item.name not in results:
            continue
        try:
            content, suffix = encode(results[item.name], item.name)
        except HeadraceError:
            continue
        stem = quote(item.name, safe="")[:120]
        kept[item.name] = folder / (stem if Path(stem).suffix else stem + suffix)
        write_file(kept[item.name], content, compress=False, make_folder=True)
    return kept


def _note_locations(program: Program, outcome: Outcome, files: dict[str, Path], entry: RunRecord) -> None:
    for name, path in files.items():
        if name in program.producer:
            entry.stored(program.producer[name], str(path.absolute()))
