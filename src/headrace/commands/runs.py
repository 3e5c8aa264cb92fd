"""`headrace runs`: what the record holds, and whether it is intact."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.names import scheduler_name, scheduler_names
from headrace.commands.options import JsonOption, Pictures
from headrace.model.errors import UsageError
from headrace.model.units import plural, quantity, show_size, show_time
from headrace.record import Record
from headrace.record.rows import RunRow
from headrace.record.verify import Verified, verify
from headrace.report.table_files import require_table, write_table

_TIMES = ("makespan", "bound", "start", "finish")
_SIZES = ("read", "written", "size")


@dataclass(frozen=True)
class RunFilters:
    """Which runs to list."""

    program: str | None = option(
        None, "--program", "Only runs of this program.", metavar="NAME", default_text="any"
    )
    platform: str | None = option(
        None, "--platform", "Only runs on this platform.", metavar="NAME", default_text="any"
    )
    scheduler: str | None = option(
        None,
        "--scheduler",
        "Only runs under this scheduler.",
        short="-s",
        metavar="NAME",
        parse=scheduler_name,
        complete=scheduler_names,
        default_text="any",
    )
    status: Literal["running", "done", "failed", "stopped", "lost"] | None = option(
        None, "--status", "Only runs that are in this state.", default_text="any"
    )
    since: float | None = option(
        None,
        "--since",
        "Only runs started within this time, such as 2h or 7d.",
        metavar="TIME",
        parse=partial(quantity, what="time", where="--since"),
        default_text="any time",
    )
    limit: int | None = option(
        None, "--limit", "Only the newest of these.", short="-n", metavar="N", min=1, default_text="all"
    )

    @property
    def given(self) -> bool:
        return self != RunFilters()

    def choose(self, rows: list[RunRow]) -> list[RunRow]:
        """The rows that pass, in their order."""
        earliest = -math.inf if self.since is None else time.time() - self.since
        wanted = {
            name: value.casefold()
            for name in ("program", "platform", "scheduler", "status")
            if (value := getattr(self, name)) is not None
        }
        passing = [
            row
            for row in rows
            if row.started >= earliest
            and all(getattr(row, name).casefold() == value for name, value in wanted.items())
        ]
        return passing if self.limit is None else passing[-self.limit :]


def runs(
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Show the tasks of this run, or of the `last`, their errors, and what was kept.",
            show_default=False,
        ),
    ] = None,
    *,
    filters: RunFilters,
    pictures: Pictures,
    verified: Annotated[
        bool, typer.Option("--verify", help="Compute the checksums of the run's files again.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the table as .csv or .parquet."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the runs of the record, or what it has of one."""
    files = (output, *pictures.files)
    require_outputs(output, pictures.trace, drawn=(pictures.gantt,))
    if output is not None:
        require_table(output)
    if run_id is None and (verified or any(pictures.files)):
        asked = "--verify needs" if verified else "--gantt and --trace need"
        raise UsageError(f"{asked} a run", hint="headrace runs last, with these options")
    if run_id is not None and filters.given:
        raise UsageError("filters select runs of the list, and a run is named", hint="leave one of them out")
    if verified and run_id is not None:
        _verify(run_id, as_json)
        return
    headers, rows = runs_rows(filters) if run_id is None else run_rows(run_id)
    if output is not None:
        write_table(output, headers, rows)
    if run_id is not None:
        _draw(run_id, pictures)
    if run_id is None and not rows and not as_json:
        typer.echo("no such runs" if filters.given else "no runs yet", err=True)
        return
    with results_beside(*files):
        _print(run_id, headers, rows, as_json, [("table", output), *pictures.named])


def _draw(run: str, pictures: Pictures) -> None:
    """Write the requested files."""
    if not any(pictures.files):
        return
    from headrace.report.chrome_trace import write_trace
    from headrace.report.picture import drawn
    from headrace.report.recorded import recorded_chart, recorded_trace

    with Record.open() as record:
        if pictures.gantt is not None:
            drawn(recorded_chart(record, run), pictures.gantt)
        if pictures.trace is not None:
            write_trace(recorded_trace(record, run), pictures.trace)


def _print(
    run_id: str | None,
    headers: list[str],
    rows: list[list[Any]],
    as_json: bool,
    files: list[tuple[str, Path | None]],
) -> None:
    facts = {} if run_id is None else run_facts(run_id)
    report = {} if run_id is None else run_report(run_id)
    if as_json:
        print_json({"rows": [dict(zip(headers, row, strict=True)) for row in rows], **facts, **report})
        return
    if run_id is not None:
        _print_run(run_id)
    shown = [h for h in headers if h != "error"]
    print_table(
        shown, [[_shown(h, v) for h, v in zip(headers, row, strict=True) if h != "error"] for row in rows]
    )
    for row in rows:
        told = dict(zip(headers, row, strict=True))
        if told.get("error"):
            place = f" on {told['host']}" if told["host"] else ""
            error = told["error"].removeprefix(f"task {told['task']!r}: ")
            typer.echo(f"task {told['task']!r} failed{place}: {error}")
    if facts:
        _print_facts(facts)
    if report:
        typer.echo("\n".join(report_lines(report)))
    for name, path in file_rows(files):
        typer.echo(f"{name}: {path}")


def _print_run(run: str) -> None:
    """A line on the run as a whole."""
    with Record.open() as record:
        row = record.run(run)
    took = "" if row.makespan is None else f", makespan {show_time(row.makespan)}"
    bound = "" if _bound(row) is None else f", lower bound {show_time(row.bound or 0)}"
    typer.echo(
        f"run {row.id}: {row.program} on {row.platform} by {row.scheduler}, {row.status}, "
        f"started {_date(row.started)}{took}{bound}"
    )


def runs_rows(filters: RunFilters) -> tuple[list[str], list[list[Any]]]:
    """The chosen runs, newest last; times in seconds."""
    headers = ["run", "program", "platform", "scheduler", "status", "started", "makespan", "bound"]
    with Record.open() as record:
        rows = [
            [r.id, r.program, r.platform, r.scheduler, r.status, _date(r.started), r.makespan, _bound(r)]
            for r in filters.choose(record.runs())
        ]
    return headers, rows


def _bound(row: RunRow) -> float | None:
    """The lower bound of a complete run: one that was stopped may be shorter than it."""
    return row.bound if row.status == "done" else None


def run_rows(run: str) -> tuple[list[str], list[list[Any]]]:
    """The executions of one run, in the order they ended; times in seconds, sizes in bytes."""
    headers = ["task", "kind", "host", "start", "finish", "read", "written", "status", "session"]
    with Record.open() as record:
        rows = [
            [
                *(t.task, t.kind, t.host, t.start, t.finish),
                *(t.input_bytes, t.output_bytes, t.status, t.session, t.location, t.error),
            ]
            for t in record.tasks(run)
        ]
    return [*headers, "result", "error"], rows


def run_facts(run: str) -> dict[str, Any]:
    """The sessions of a run, its result files with their checksums, and what it has kept."""
    with Record.open() as record:
        return {
            "sessions": [
                {"number": s.number, "started": _date(s.started), "host": s.host}
                for s in record.sessions(run)
            ],
            "results": [asdict(row) for row in record.results(run)],
            "kept": [
                {"item": k.item, "size": k.size, "file": k.file, "checksum": k.checksum}
                for k in record.kept(run)
            ],
        }


def _print_facts(facts: dict[str, Any]) -> None:
    if facts["results"]:
        print_table(
            ["result", "file", "size", "checksum (BLAKE2b-256)"],
            [
                [r["item"], r["location"], show_size(r["size"]), r["checksum"] or "none"]
                for r in facts["results"]
            ],
        )
    kept = facts["kept"]
    size = show_size(float(sum(k["size"] for k in kept)))
    typer.echo(f"kept: {plural(len(kept), 'item')}, {size}; sessions: {len(facts['sessions'])}")


def _verify(run: str, as_json: bool) -> None:
    with Record.open() as record:
        found = verify(record, run)
    if as_json:
        print_json({"run": found.run, "intact": found.intact, "problems": found.problems})
    else:
        _print_verified(found)
    if found.problems:
        raise typer.Exit(1)


def _print_verified(found: Verified) -> None:
    if found.problems:
        print_table(
            ["what", "name", "problem"], [[p["what"], p["name"], p["problem"]] for p in found.problems]
        )
    typer.echo(f"run {found.run}: {found.intact} intact, {len(found.problems)} not")


def run_report(run: str) -> dict[str, Any]:
    """Where the figures of a run came from, and its makespan by cause; empty if that is not recorded."""
    from headrace.record.run_reports import report_of

    with Record.open() as record:
        report = report_of(record, run)
    return {key: report[key] for key in ("sources", "deviations") if key in report}


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """The report of a run as text.

    >>> report_lines({"sources": {"links": "as given", "engine": "not known"}, "deviations": None})
    ['links: as given']
    """
    from headrace.report.deviations import Deviations, Split
    from headrace.run_platform import UNKNOWN

    sources = report.get("sources") or {}
    lines = [f"{what.replace('_', ' ')}: {text}" for what, text in sources.items() if text != UNKNOWN]
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
