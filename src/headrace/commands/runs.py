"""`headrace runs`: what the record holds, as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption
from headrace.record import Record


def runs_rows() -> tuple[list[str], list[list[Any]]]:
    """All runs, newest last."""
    headers = ["run", "program", "platform", "scheduler", "status", "started", "makespan", "bound"]
    with Record.open() as record:
        rows = [
            [r.id, r.program, r.platform, r.scheduler, r.status, _moment(r.started), r.makespan, r.bound]
            for r in record.runs()
        ]
    return headers, rows


def run_rows(run: str) -> tuple[list[str], list[list[Any]]]:
    """The tasks of one run, in the order they ended."""
    headers = ["task", "kind", "host", "start", "finish", "read", "written", "status", "result"]
    with Record.open() as record:
        rows = [
            [t.task, t.kind, t.host, t.start, t.finish, t.input_bytes, t.output_bytes, t.status, t.location]
            for t in record.tasks(run)
        ]
    return headers, rows


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def runs(
    run_id: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Show the tasks of this run.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the runs of the record, or the tasks of one."""
    headers, rows = runs_rows() if run_id is None else run_rows(run_id)
    if as_json:
        print_json({"rows": [dict(zip(headers, row, strict=True)) for row in rows]})
    else:
        print_table(headers, [[_shown(value) for value in row] for row in rows])
