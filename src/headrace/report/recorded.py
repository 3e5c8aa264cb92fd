"""Charts, traces and rows of runs, from the record alone: the program is not needed any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.model.events import DataMoved, Event, TaskErred, TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.model.units import show_time
from headrace.report.chart import Bar, Chart, Mark
from headrace.report.gantt import core_lane, lanes_of, run_chart
from headrace.report.packing import pack

if TYPE_CHECKING:
    from headrace.record import Record
    from headrace.record.rows import PlanRow


def recorded_events(record: Record, run: str) -> list[Event]:
    """What the record has of a run, by time."""
    events: list[Event] = []
    for row in record.tasks(run):
        if row.status == "done" and row.start is not None:
            events.append(TaskFinished(row.finish, row.task, row.host, row.start))
        elif row.status != "done":
            events.append(TaskErred(row.finish, row.task, row.host, row.error))
    events += [
        DataMoved(m.finish, m.item, m.source, m.target, m.start, m.size) for m in record.transfers(run)
    ]
    return sorted(events, key=lambda event: event.time)


def recorded_chart(record: Record, run: str) -> Chart:
    """The Gantt chart of a run, with its plan as outlines: O(n log n)."""
    row, tasks, planned = record.run(run), record.tasks(run), record.planned(run)
    kinds = {task.task: task.kind for task in tasks}
    platform = hosts_of(record, run)
    chart = run_chart(
        None,
        recorded_events(record, run),
        platform,
        bound=row.bound or 0.0,
        kinds=kinds,
        title=f"{row.program} on {row.platform}, run {row.id}",
    )
    if not planned:
        return chart
    bars = (*_outlines(planned, kinds), *chart.bars)
    makespan = max(each.finish for each in planned)
    return replace(
        chart,
        bars=bars,
        lanes=lanes_of(platform, bars),
        end=max(chart.end, makespan),
        marks=(*chart.marks, Mark(makespan, f"planned {show_time(makespan)}", dashed=True)),
    )


def recorded_trace(record: Record, run: str) -> dict[str, Any]:
    """The Chrome trace of a run."""
    from headrace.report.chrome_trace import run_trace

    kinds = {task.task: task.kind for task in record.tasks(run)}
    return run_trace(recorded_events(record, run), hosts_of(record, run), None, kinds=kinds)


def hosts_of(record: Record, run: str) -> Platform:
    """The hosts that a run used or planned to use, by name, as a platform that can be drawn."""
    used = {row.host for row in record.tasks(run)} | {row.host for row in record.planned(run)}
    names = sorted(used) or ["none"]
    site = Site("hosts of the run", tuple(Host(name) for name in names))
    return Platform((site,), name=record.run(run).platform)


def _outlines(planned: Sequence[PlanRow], kinds: Mapping[str, str]) -> list[Bar]:
    by_host: dict[str, list[PlanRow]] = {}
    for row in planned:
        by_host.setdefault(row.host, []).append(row)
    return [
        Bar(core_lane(host, core), row.start, row.finish, row.task, kinds.get(row.task, ""), outline=True)
        for host, there in by_host.items()
        for row, core in zip(there, pack([(row.start, row.finish) for row in there]), strict=True)
    ]
