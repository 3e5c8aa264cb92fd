"""Charts as objects: a notebook shows them, and they can be saved as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.formats.files import require_svg, write_file
from headrace.report.svg import chart_svg

if TYPE_CHECKING:
    from headrace.model.events import Event
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.report.chart import Chart
    from headrace.simulator.events.run import SimulatedRun


@dataclass(frozen=True)
class Picture:
    """A drawn chart.

    >>> Picture("plan of two tasks", "<svg/>")
    <Picture: plan of two tasks>
    """

    title: str
    svg: str

    def save(self, path: str | Path) -> None:
        """Write it to an SVG file."""
        require_svg(path)
        write_file(path, self.svg.encode())

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg


def drawn(chart: Chart, path: str | Path | None = None) -> Picture:
    """A chart as a picture, saved if a path is given."""
    if path is not None:
        require_svg(path)
    picture = Picture(chart.title, chart_svg(chart))
    if path is not None:
        picture.save(path)
    return picture


def draw_plan(plan: Plan, path: str | Path | None = None) -> Picture:
    """The Gantt chart of a plan: by core, or by pool, link and disk where files have sites."""
    from headrace.report.gantt import plan_chart
    from headrace.report.resources import by_resource, resource_chart

    return drawn(resource_chart(plan) if by_resource(plan) else plan_chart(plan), path)


def draw_run(
    plan: Plan | None,
    events: Sequence[Event],
    platform: Platform,
    path: str | Path | None = None,
    *,
    graph: Graph | None = None,
    bound: float | None = None,
) -> Picture:
    """The Gantt chart of a real run, with its plan behind it."""
    from headrace.report.gantt import run_chart

    return drawn(run_chart(plan, events, platform, graph=graph, bound=bound), path)


def draw_simulated(run: SimulatedRun, path: str | Path | None = None) -> Picture:
    """The Gantt chart of a simulated run: by core, or by pool, link and disk where files have sites."""
    from headrace.report.grid_gantt import grid_chart
    from headrace.report.resources import by_resource, resource_chart

    happened = run.executed
    return drawn(resource_chart(happened) if by_resource(happened) else grid_chart(run), path)
