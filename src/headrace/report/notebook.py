"""What a notebook shows of programs, platforms, plans and runs: a short table, and the chart of plans and runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.units import plural, show_size, show_time
from headrace.report.text import markup

if TYPE_CHECKING:
    from headrace.execution import Run
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program
    from headrace.simulator.events.run import SimulatedRun

_SHOWN = 12
"""Rows of a table at most."""


def table_html(title: str, rows: Iterable[Sequence[str]], headers: Sequence[str] = ()) -> str:
    """A table with a caption; all texts are escaped.

    >>> table_html("a & b", [["x", "1 s"]])
    '<table><caption>a &amp; b</caption><tr><td>x</td><td>1 s</td></tr></table>'
    """
    head = f"<tr>{''.join(f'<th>{markup(cell)}</th>' for cell in headers)}</tr>" if headers else ""
    body = "".join(f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{markup(title)}</caption>{head}{body}</table>"


def program_html(program: Program) -> str:
    """Number of tasks, their work and data, and the most frequent kinds."""
    sizes = [item.size for item in program.data.values() if item.size is not None]
    work = sum(task.work for task in program.tasks.values())
    kinds = Counter(task.kind or "(none)" for task in program.tasks.values()).most_common(_SHOWN)
    rows = [
        ["tasks", f"{len(program.tasks):,}"],
        ["work", f"{show_time(work)} at speed 1"],
        ["data", f"{show_size(float(sum(sizes)))} in {plural(len(program.data), 'item')}"],
        ["inputs, results", f"{len(program.inputs()):,}, {len(program.results()):,}"],
        *([f"kind {kind}", plural(count, "task")] for kind, count in kinds),
    ]
    return table_html(f"Program {program.name}", rows)


def platform_html(platform: Platform) -> str:
    """The hosts with their speeds, cores and load, and with memory and resources if any host has them."""
    headers = ["site", "host", "speed", "cores", "load"]
    rows = [
        [site.name, host.name, f"{host.speed:g}", str(host.cores), f"{host.load:.0%}"]
        for site in platform.sites
        for host in site.hosts
    ]
    if any(math.isfinite(host.memory) for host in platform.hosts):
        headers.append("memory")
        for row, host in zip(rows, platform.hosts, strict=True):
            row.append(show_size(host.memory) if math.isfinite(host.memory) else "unlimited")
    if any(host.resources for host in platform.hosts):
        headers.append("resources")
        for row, host in zip(rows, platform.hosts, strict=True):
            row.append(", ".join(f"{count} {name}" for name, count in host.resources.items()))
    title = f"Platform {platform.name}: {plural(len(rows), 'host')}, contention {platform.contention}"
    left = len(rows) - _SHOWN
    more = ["...", f"{left} more", *[""] * (len(headers) - 2)]
    return table_html(title, rows[:_SHOWN] + ([more] if left > 0 else []), headers)


def plan_html(plan: Plan) -> str:
    """The summary of a plan and its Gantt chart."""
    from headrace.report.picture import draw_plan
    from headrace.report.tables import summary

    return _with_chart(table_html(f"Plan of {plan.graph.name}", summary(plan)), draw_plan(plan).svg)


def run_html(run: Run) -> str:
    """The outcome of a real run and its Gantt chart."""
    rows = [["run", run.id], ["scheduler", run.scheduler], ["makespan", show_time(run.makespan)]]
    if run.plan is not None:
        rows.append(["planned", show_time(run.plan.makespan)])
    done = run.graph.n_tasks - len(run.outcome.not_run)
    rows.append(["tasks", f"{done:,} of {run.graph.n_tasks:,}"])
    if run.failure is not None:
        rows.append(["failure", str(run.failure)])
    rows += [["result", str(path)] for path in list(run.files.values())[:_SHOWN]]
    return _with_chart(table_html(f"Run of {run.graph.name}", rows), run.gantt().svg)


def simulated_html(run: SimulatedRun) -> str:
    """The outcome of a simulated run and its Gantt chart."""
    rows = [
        ["scheduler", run.scheduler],
        ["makespan", show_time(run.makespan)],
        ["lower bound", show_time(run.bound)],
        ["tasks", f"{run.graph.n_tasks:,}"],
        ["hosts used", f"{len(np.unique(run.executed.host))} of {len(run.platform.hosts)}"],
        ["data moved", show_size(run.bytes_moved)],
    ]
    return _with_chart(table_html(f"Simulated run of {run.graph.name}", rows), run.gantt().svg)


def _with_chart(table: str, svg: str) -> str:
    return (
        f'<div>{table}<div style="max-width: 1100px; overflow-x: auto">{svg[svg.index("<svg") :]}</div></div>'
    )
