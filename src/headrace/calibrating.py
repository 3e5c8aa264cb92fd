"""Fit a platform and a program to a recorded run, so that simulations predict real runs, and say how well they do."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.core.scheduler import ON_GRID_CHANGES, Assign, WakeConditions
from headrace.core.view import RunView
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event, Started, TaskFinished
from headrace.model.graph import Floats, Graph
from headrace.model.platform import Host, Pairs, Platform
from headrace.model.program import Program
from headrace.model.trace import Trace
from headrace.predict.learning import Observed, learn
from headrace.predict.link_fit import fit_links
from headrace.predict.overheads import (
    Overheads,
    overheads,
    with_task_overhead,
    with_transfer_overhead,
)

if TYPE_CHECKING:
    from headrace.record import Record, TaskRow

_LEAST_SHARE = 0.05
_INSTANT = 1e18
"""Bytes/s at which every transfer takes no time."""
_STEADY = 0.1
"""A host whose shares vary less than this has no trace."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A platform and a program as a run has shown them, and what a simulation with them predicts."""

    run: str
    platform: Platform
    graph: Graph
    """The program with measured run times and sizes."""
    happened: float
    """The makespan of the run, in seconds."""
    simulated: float
    """The makespan of the simulation with the run's own decisions."""
    tasks: int
    links: int
    """How many links were fitted; the others are as the run was planned with."""
    overheads: Overheads = field(default_factory=Overheads)
    """Mean seconds that the engine took; they are part of the platform's speeds and latencies."""
    without_overheads: float = math.nan
    """The simulated makespan if the engine took no time."""
    with_instant_links: float = math.nan
    """The simulated makespan if transfers took no time."""

    @property
    def error(self) -> float:
        """The simulated makespan relative to the real one: 0.1 is 10 % too long."""
        return self.simulated / self.happened - 1.0

    def program(self, base: Program) -> Program:
        """The program with measured figures, for writing."""
        fitted = Program(base.name)
        work = dict(zip(self.graph.task_names, self.graph.work.tolist(), strict=True))
        size = dict(zip(self.graph.item_names, self.graph.size.tolist(), strict=True))
        fitted.tasks = {name: replace(task, work=work[name]) for name, task in base.tasks.items()}
        fitted.data = {
            name: replace(item, size=size.get(name, item.size)) for name, item in base.data.items()
        }
        fitted.producer = dict(base.producer)
        return fitted


def calibrate(program: Program, run: str, record: Record, *, traces: bool = False) -> Calibration:
    """Fit speeds, run times, sizes and links to a run of this program.

    The time that the engine took becomes part of speeds and latencies. With `traces`, times that a host took longer
    than usual are put down to its load, as an availability trace; otherwise to the task.
    """
    from headrace.record.probes import transfers_of

    row = record.run(run)
    base = _platform_of(record, row.id)
    graph = _with_sizes(program.graph, record, row.id, row.digest)
    rows = [task for task in record.tasks(row.id) if task.status == "done" and task.start is not None]
    if not rows or row.makespan is None:
        raise UsageError(f"no task of run {run!r} has finished", hint="use a run that ended")
    number = {name: t for t, name in enumerate(graph.task_names)}
    learned = learn(graph, base, [_observed(task, number) for task in rows])
    platform, links = fit_links(learned.platform, transfers_of(record, row.id))
    if traces:
        platform = _with_traces(platform, learned.graph, rows, number)
        fitted = learned.graph
    else:
        fitted = learned.graph.with_work(_measured_work(learned.graph, platform, rows, number))
    found = overheads(fitted, platform, _events(record, row.id, rows), typical=False)
    slowed = with_transfer_overhead(with_task_overhead(fitted, platform, found.task), found.transfer)
    return Calibration(
        row.id,
        slowed,
        fitted,
        row.makespan,
        _simulate(fitted, slowed, rows),
        len(rows),
        links,
        found,
        _simulate(fitted, platform, rows),
        _simulate(fitted, _with_instant_links(slowed), rows),
    )


@dataclass
class AsHappened:
    """A scheduler that decides what was decided in a run: hosts, and the order of tasks on them."""

    decisions: dict[str, tuple[str, float]]
    name: str = "as happened"
    wake: WakeConditions = ON_GRID_CHANGES

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        if not any(isinstance(event, Started) for event in events):
            return []
        return [Assign(task, host, start) for task, (host, start) in self.decisions.items()]


def _simulate(graph: Graph, platform: Platform, rows: Sequence[TaskRow]) -> float:
    from headrace.simulator.events.backend import simulate_scheduler

    last = {task.task: (task.host, task.start or 0.0) for task in rows}
    missing = next((name for name in graph.task_names if name not in last), None)
    if missing is not None:
        raise UsageError(f"task {missing!r} did not finish in this run", hint="use a run that completed")
    return simulate_scheduler(graph, platform, AsHappened(last)).executed.makespan


def _events(record: Record, run: str, rows: Sequence[TaskRow]) -> list[Event]:
    query = "SELECT finish, item, source, target, start, size FROM transfers WHERE run = ? ORDER BY seq"
    moved: list[Event] = [DataMoved(*row) for row in record.database.rows(query, (run,))]
    return moved + [TaskFinished(task.finish, task.task, task.host, task.start or 0.0) for task in rows]


def _with_instant_links(platform: Platform) -> Platform:
    names = [host.name for host in platform.hosts]
    if platform.pairs is not None:
        shape = (len(names), len(names))
        return replace(platform, pairs=Pairs(np.full(shape, _INSTANT), np.zeros(shape)))
    sites = tuple(
        replace(site, bandwidth=_INSTANT, latency=0.0, uplink=None if site.uplink is None else _INSTANT)
        for site in platform.sites
    )
    links = tuple(replace(link, bandwidth=_INSTANT, latency=0.0) for link in platform.links)
    return replace(platform, sites=sites, links=links)


def _platform_of(record: Record, run: str) -> Platform:
    from headrace.record.run_reports import report_of

    text = report_of(record, run).get("platform")
    if not isinstance(text, str):
        raise UsageError(
            f"the platform of run {run!r} is not recorded", hint="run the program again with this version"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "platform.toml"
        path.write_text(text, encoding="utf-8")
        return Platform.read(path)


def _with_sizes(graph: Graph, record: Record, run: str, digest: str) -> Graph:
    from headrace.record.identity import program_digest

    if program_digest(graph) != digest:
        raise UsageError(
            f"run {run!r} was of another program", hint="give the program that was run, unchanged"
        )
    sizes = dict(record.database.rows("SELECT item, size FROM items WHERE run = ?", (run,)))
    estimated = np.where(graph.unknown_size, np.nan, graph.size).tolist()
    return graph.with_size([sizes.get(n, s) for n, s in zip(graph.item_names, estimated, strict=True)])


def _observed(task: TaskRow, number: dict[str, int]) -> Observed:
    seconds = max(0.0, task.finish - (task.start or 0.0))
    return Observed(task.kind, number[task.task], task.host, seconds, task.input_bytes)


def _measured_work(
    graph: Graph, platform: Platform, rows: Sequence[TaskRow], number: dict[str, int]
) -> Floats:
    """The work of each task such that it takes as long on its host as it did."""
    work = graph.work.copy()
    host = {one.name: j for j, one in enumerate(platform.hosts)}
    rates = platform.rates(graph)
    for task in rows:
        t = number[task.task]
        if task.host in host:
            seconds = max(0.0, task.finish - (task.start or 0.0))
            work[t] = seconds * rates[graph.speed_class[t], host[task.host]]
    return work


def _with_traces(
    platform: Platform, graph: Graph, rows: Sequence[TaskRow], number: dict[str, int]
) -> Platform:
    """Hosts with the share of a core that explains how long each of their tasks took, relative to the usual."""
    at = {one.name: j for j, one in enumerate(platform.hosts)}
    rates = platform.rates(graph)
    shares: dict[str, list[tuple[float, float]]] = {}
    for task in rows:
        if task.host in at and task.start is not None and task.finish > task.start:
            t = number[task.task]
            usual = graph.work[t] / rates[graph.speed_class[t], at[task.host]]
            shares.setdefault(task.host, []).append((task.start, usual / (task.finish - task.start)))

    def changed(host: Host) -> Host:
        found = sorted(dict(shares.get(host.name, [])).items())
        value = np.array([share for _, share in found])
        if len(found) < 2 or float(np.ptp(value)) < _STEADY:
            return host
        peak = float(value.max())
        times = np.array([0.0, *(start for start, _ in found[1:])])
        series = Trace(times, np.clip(value / peak, _LEAST_SHARE, 1.0))
        speeds = {kind: speed * peak for kind, speed in host.kinds.items()}
        return replace(
            host, speed=host.speed * peak, kinds=speeds, trace=series, load=max(0.0, 1.0 - series.mean)
        )

    sites = tuple(replace(site, hosts=tuple(map(changed, site.hosts))) for site in platform.sites)
    return replace(platform, sites=sites)
