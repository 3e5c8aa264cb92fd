"""`headrace runs`: what the record holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption
from headrace.model.units import show_size, show_time
from headrace.record import Record

_TIMES = ("makespan", "bound", "start", "finish")
_SIZES = ("read", "written")


def runs(
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="Show the tasks of this run and their errors.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the runs of the record, or the tasks of one."""
    headers, rows = runs_rows() if run_id is None else run_rows(run_id)
    report = {} if run_id is None else run_report(run_id)
    if as_json:
        print_json({"rows": [dict(zip(headers, row, strict=True)) for row in rows], **report})
        return
    shown = [h for h in headers if h != "error"]
    print_table(
        shown, [[_shown(h, v) for h, v in zip(headers, row, strict=True) if h != "error"] for row in rows]
    )
    for row in rows:
        told = dict(zip(headers, row, strict=True))
        if told.get("error"):
            typer.echo(f"task {told['task']!r} failed on {told['host']}: {told['error']}")
    if report:
        typer.echo("\n".join(report_lines(report)))


def runs_rows() -> tuple[list[str], list[list[Any]]]:
    """All runs, newest last; times in seconds."""
    headers = ["run", "program", "platform", "scheduler", "status", "started", "makespan", "bound"]
    with Record.open() as record:
        rows = [
            [r.id, r.program, r.platform, r.scheduler, r.status, _date(r.started), r.makespan, r.bound]
            for r in record.runs()
        ]
    return headers, rows


def run_rows(run: str) -> tuple[list[str], list[list[Any]]]:
    """The executions of one run, in the order they ended; times in seconds, sizes in bytes."""
    headers = ["task", "kind", "host", "start", "finish", "read", "written", "status", "result", "error"]
    with Record.open() as record:
        rows = [
            [
                *(t.task, t.kind, t.host, t.start, t.finish),
                *(t.input_bytes, t.output_bytes, t.status, t.location, t.error),
            ]
            for t in record.tasks(run)
        ]
    return headers, rows


def run_report(run: str) -> dict[str, Any]:
    """Where the figures of a run came from, and its makespan by cause; empty if that is not recorded."""
    from headrace.record.run_reports import report_of

    with Record.open() as record:
        report = report_of(record, run)
    return {key: report[key] for key in ("sources", "deviations") if key in report}


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """The report of a run as text.

    >>> report_lines({"sources": {"links": "as given"}, "deviations": None})
    ['links: as given']
    """
    from headrace.report.deviations import Deviations, Split

    lines = [f"{what.replace('_', ' ')}: {text}" for what, text in (report.get("sources") or {}).items()]
    split = report.get("deviations")
    if split:
        planned = None if split["planned"] is None else Split(**split["planned"])
        lines.append(f"difference: {Deviations(planned, Split(**split['happened'])).text()}")
    return lines


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


def _shown(header: str, value: object) -> str:
    """
    >>> _shown("read", 5.457e6), _shown("makespan", 0.2763), _shown("bound", None)
    ('5.46 MB', '276 ms', '')
    """
    if isinstance(value, float):
        return (
            show_time(value) if header in _TIMES else show_size(value) if header in _SIZES else f"{value:g}"
        )
    return "" if value is None else str(value)
