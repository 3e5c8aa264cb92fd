"""A plan or a run as plain values for the interactive Gantt chart of pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.model.events import Event
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import show_size
from headrace.report.causes import Cause, Causes
from headrace.report.chart import Bar, Chart
from headrace.report.gantt import plan_chart, run_chart
from headrace.report.link_lanes import link_lanes
from headrace.report.palette import OTHER, colours, key_name
from headrace.report.timeline import Activity, Timeline

FORMAT = "headrace-schedule-1"
_Key = tuple[str, float, float]


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run as the record or a simulation has it."""

    events: Sequence[Event]
    graph: Graph
    """The program with the estimates that the run was planned with."""
    platform: Platform
    plan: Plan | None = None
    bound: float | None = None
    title: str = ""
    causes: Causes | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "causes", None if self.plan is None else Causes(self.plan, self.events))

    @property
    def timeline(self) -> Timeline:
        if self.causes is not None:
            return self.causes.run
        return Timeline.of_events(self.events, self.graph, self.platform)


MOST_IDLE = 200
"""Platforms with more hosts are drawn without those that have nothing to do."""


def plan_data(plan: Plan, *, idle_hosts: bool = False) -> dict[str, Any]:
    """A plan with what each bar waited for and the critical path: O(n log n).

    With `idle_hosts`, hosts that have nothing to do get a lane too, so that bars can be dragged to them.

    >>> import headrace as hr
    >>> program = hr.Program()
    >>> done = program.task(None, name="a", work=2.0)
    >>> data = plan_data(hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6)))
    >>> data["names"], data["start"], data["finish"], data["critical"]
    (['a'], [0.0], [2.0], [0])
    >>> data["busy"]
    {'h0': 1.0}
    """
    data = _data("plan", plan_chart(plan), Timeline.of_plan(plan), None, sized=False)
    if idle_hosts and len(plan.platform.hosts) <= MOST_IDLE:
        used = {group for group, thin in data["lanes"] if not thin}
        data["lanes"] += [[host.name, False] for host in plan.platform.hosts if host.name not in used]
    return data


def run_data(run: FinishedRun) -> dict[str, Any]:
    """A run over the outlines of its plan, with the causes of late bars: O(n log n)."""
    chart = run_chart(run.plan, run.events, run.platform, graph=run.graph, bound=run.bound, title=run.title)
    return _data("run", chart, run.timeline, run.causes, sized=True)


def _data(
    kind: str, chart: Chart, timeline: Timeline, causes: Causes | None, *, sized: bool
) -> dict[str, Any]:
    lanes = {lane.key: number for number, lane in enumerate(chart.lanes)}
    chosen = colours(chart.bars)
    colour = {key: number for number, key in enumerate(chosen)}
    other = colour.get(OTHER, 0)
    number = _bars_of(chart.bars, timeline, sized)
    bars = chart.bars
    waits = [-1] * len(bars)
    kinds = [""] * len(bars)
    for i, wait in enumerate(timeline.waits):
        if wait.before >= 0:
            waits[number[i]], kinds[number[i]] = number[wait.before], wait.kind
    return {
        "format": FORMAT,
        "kind": kind,
        "title": chart.title,
        "end": chart.end,
        "marks": [list(mark) for mark in chart.marks],
        "notes": list(chart.notes),
        "links": [
            [name, carried, [_rounded(end) for end in ends]]
            for name, carried, ends in link_lanes(timeline, number)
        ],
        "busy": {host: round(share, 4) for host, share in timeline.busy().items()},
        "utilisation": round(timeline.utilisation(), 4),
        "lanes": [[lane.group, lane.thin] for lane in chart.lanes],
        "colours": [[key_name(key), value] for key, value in chosen.items()],
        "names": [bar.label for bar in bars],
        "lane": [lanes[bar.lane] for bar in bars],
        "start": [_rounded(bar.start) for bar in bars],
        "finish": [_rounded(bar.finish) for bar in bars],
        "colour": [colour.get(bar.colour_key, other) for bar in bars],
        "ghost": [int(bar.outline) for bar in bars],
        "wait": waits,
        "waitKind": kinds,
        "critical": [number[i] for i in timeline.critical_path()],
        "causes": {} if causes is None else _causes(causes, number),
    }


def _causes(causes: Causes, number: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Of each late bar, by its number: the step at it and the bar where the chain goes on."""

    def shown(i: int, cause: Cause) -> dict[str, Any]:
        step = cause.own if cause.inherited is None else cause.inherited
        return {
            "late": _rounded(cause.late),
            "reason": step.reason,
            "seconds": _rounded(step.seconds),
            "text": step.text,
            "next": -1 if cause.is_root else number[cause.before],
        }

    return {str(number[i]): shown(i, cause) for i, cause in enumerate(causes.causes) if cause is not None}


def _bars_of(bars: Sequence[Bar], timeline: Timeline, sized: bool) -> list[int]:
    """The number of the bar of each activity."""
    found: dict[tuple[_Key, str], int] = {}
    for number, bar in enumerate(bars):
        if not bar.outline:
            host = bar.lane.rpartition(" ")[0]
            found[(bar.label, bar.start, bar.finish), host] = number
    return [found[_key(activity, sized), activity.place] for activity in timeline.activities]


def _key(activity: Activity, sized: bool) -> _Key:
    label = activity.name
    if not activity.is_task:
        label = f"{activity.name} from {activity.source}"
        label += f", {show_size(activity.size)}" if sized else ""
    return label, activity.start, activity.finish


def _rounded(value: float) -> float:
    """Seven digits are enough for a picture and take half the space."""
    return float(f"{value:.7g}") if math.isfinite(value) else 0.0
