"""What the record has: results of runs, two runs side by side, experiments, and files to keep."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.model.errors import UsageError
from headrace.record import Record
from headrace.record.rows import TaskRow
from headrace.ui.endpoint import Endpoint, text_of
from headrace.ui.previews import preview
from headrace.ui.workspace import Workspace

MOST_ROWS = 5_000
Body = Mapping[str, Any]


def results_of(run: str) -> list[dict[str, Any]]:
    """The results of a run that were written to files."""
    with Record.open() as record:
        rows = record.results(record.run(run).id)
    return [
        {"item": row.item, "task": row.task, "size": row.size, "name": Path(row.location).name}
        for row in rows[:MOST_ROWS]
    ]


def preview_of(run: str, item: str) -> dict[str, Any]:
    """A result as the page shows it."""
    with Record.open() as record:
        rows = record.results(record.run(run).id)
    row = next((one for one in rows if one.item == item), None)
    if row is None:
        raise UsageError(f"run {run} has no result {item[:100]!r}", hint="choose another")
    return {"item": row.item, "location": row.location, **preview(Path(row.location))}


def compared(first: str, second: str) -> dict[str, Any]:
    """Two runs task by task, the largest differences first: O(n log n)."""
    with Record.open() as record:
        runs = [record.run(first), record.run(second)]
        sides = [_done(record.tasks(run.id)) for run in runs]
    rows = [
        _difference(name, *(side.get(name) for side in sides))
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    rows.sort(key=lambda row: (-abs(row["difference"] or 0.0), row["task"]))
    return {"runs": [asdict(run) for run in runs], "rows": rows[:MOST_ROWS], "tasks": len(rows)}


def _done(rows: list[TaskRow]) -> dict[str, TaskRow]:
    """The execution of each task that gave its result."""
    return {row.task: row for row in rows if row.status == "done"}


def _difference(name: str, one: TaskRow | None, other: TaskRow | None) -> dict[str, Any]:
    seconds = [None if row is None or row.start is None else row.finish - row.start for row in (one, other)]
    both = seconds[0] is not None and seconds[1] is not None
    return {
        "task": name,
        "hosts": [None if row is None else row.host for row in (one, other)],
        "starts": [None if row is None else row.start for row in (one, other)],
        "seconds": seconds,
        "difference": seconds[1] - seconds[0] if both else None,  # type: ignore[operator]
    }


def experiments() -> list[dict[str, Any]]:
    """Experiments of the record, newest first."""
    from headrace.record.experiments import experiments as listed

    with Record.open() as record:
        return [asdict(row) for row in listed(record)[::-1]]


def experiment_table(name: str, where: str) -> dict[str, Any]:
    """Parameters and results of an experiment: a row for each combination that satisfies the condition."""
    from headrace.experiment_results import table

    found = table(name, where=where or None)
    rows = [[row[column] for column in found.columns] for row in found.rows]
    return {
        "columns": list(found.columns),
        "parameters": list(found.parameters),
        "rows": [[_plain(cell) for cell in row] for row in rows[:MOST_ROWS]],
        "total": len(rows),
        "csv": _csv(list(found.columns), rows),
    }


def experiment_plot(name: str, where: str, columns: tuple[str, str, str]) -> dict[str, str]:
    """A diagram of results over a parameter, as SVG."""
    from headrace.experiment_results import PlotSpec, diagram, table
    from headrace.report.curves import curves_svg

    found = table(name, where=where or None)
    return {"svg": curves_svg([diagram(found, PlotSpec(columns[0], columns[1], columns[2] or None))])}


def _plain(cell: Any) -> str | float | None:
    if cell is None or isinstance(cell, str):
        return cell if cell is None else cell[:300]
    return cell if isinstance(cell, int | float) and abs(cell) < 1e300 else str(cell)[:300]


def _csv(headers: list[str], rows: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return text.getvalue()


def report_of(run: str) -> dict[str, str]:
    """The page of `headrace report`, to keep or to send."""
    from headrace.commands.report import recorded_run
    from headrace.report.interactive import run_report

    finished, rules = recorded_run(run)
    return {"name": f"{run}.html", "html": run_report(finished, rules)}


def _compare(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return compared(text_of(body, "first"), text_of(body, "second"))


def _preview(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return preview_of(path["run"], text_of(body, "item"))


def _table(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return experiment_table(text_of(body, "name"), text_of(body, "where"))


def _plot(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    columns = (text_of(body, "x"), text_of(body, "y"), text_of(body, "by"))
    return experiment_plot(text_of(body, "name"), text_of(body, "where"), columns)


_TABLE = {"name": "string", "where": "string"}
LOOK_BACK_ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/compare",
        "Two runs task by task",
        _compare,
        {"first": "string", "second": "string"},
    ),
    Endpoint("GET", "/api/runs/{run}/results", "Results of a run", lambda s, p, b: results_of(p["run"])),
    Endpoint("POST", "/api/runs/{run}/preview", "A result, to be looked at", _preview, {"item": "string"}),
    Endpoint("GET", "/api/runs/{run}/report", "A run as one HTML file", lambda s, p, b: report_of(p["run"])),
    Endpoint("GET", "/api/experiments", "Experiments of the record", lambda s, p, b: experiments()),
    Endpoint("POST", "/api/experiments/table", "Parameters and results", _table, _TABLE),
    Endpoint(
        "POST",
        "/api/experiments/plot",
        "Results over a parameter",
        _plot,
        {**_TABLE, "x": "string", "y": "string", "by": "string"},
    ),
)
