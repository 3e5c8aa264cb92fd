"""`headrace results`: the results of an experiment, selected, exported and drawn."""

from __future__ import annotations

import csv
import io
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.console import print_json, print_table, require_outputs
from headrace.commands.options import JsonOption
from headrace.model.errors import UsageError
from headrace.record import Record

_SHOWN = 1_000
"""Rows of a table that are printed."""


def results(
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="EXPERIMENT", help="Its name; omit it to list all.", show_default=False),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Only these rows, such as \"detect = 'canny' and sigma < 1\"."
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Parquet file; needs pyarrow.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="X:Y", help="Draw one column over another as SVG.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --plot: a curve for each value of this column.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File of the plot.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="Read-only SQL over the views experiments, points, parameters, tasks, results, timings.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List experiments, or print, export or draw the results of one."""
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other", hint="leave one out")
    if sql is not None:
        if experiment or where or plot or parquet or by or output:
            raise UsageError("--sql goes with --json or --csv only", hint="put the rest into the query")
        _query(sql, as_json, as_csv)
        return
    if experiment is None:
        if where or plot or parquet or by or output:
            raise UsageError("these options need an experiment", hint="headrace results lists them")
        _list(as_json, as_csv)
        return
    if plot is None and (by or output):
        raise UsageError("--by and --output need --plot", hint="add --plot X:Y")
    _of_experiment(experiment, where, plot, by, output, parquet, as_json, as_csv)


def _of_experiment(
    experiment: str,
    where: str | None,
    plot: str | None,
    by: str | None,
    output: Path | None,
    parquet: Path | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    from headrace.experiment_results import PlotSpec, diagram, table

    target = output or (Path(f"{experiment}.svg") if plot else None)
    require_outputs(target, parquet)
    if parquet is not None and find_spec("pyarrow") is None:
        raise UsageError(
            "--parquet needs pyarrow, which is not installed", hint="pip install pyarrow, or use --csv"
        )
    found = table(experiment, where=where, say=lambda text: typer.echo(text, err=True))
    if plot is not None and target is not None:
        from headrace.report.curves import write_curves

        write_curves(target, [diagram(found, PlotSpec.parse(plot, by))])
        typer.echo(f"picture: {target}", err=True)
    if parquet is not None:
        _write_parquet(parquet, found.rows, list(found.columns))
        typer.echo(f"written: {parquet}", err=True)
    if as_json:
        print_json({"experiment": experiment, "columns": list(found.columns), "rows": found.rows})
    elif as_csv or (plot is None and parquet is None):
        _print(list(found.columns), [[row[c] for c in found.columns] for row in found.rows], as_csv)


def _list(as_json: bool, as_csv: bool) -> None:
    from headrace.record.experiments import experiments

    with Record.open() as record:
        rows = experiments(record)
    from headrace.record.identity import time_stamp

    columns = ["experiment", "started", "combinations", "tasks alone", "distinct tasks", "reused", "run"]
    listed: list[list[Any]] = [
        [row.name, time_stamp(row.started), row.points, row.alone, row.tasks, row.reused, row.run]
        for row in rows
    ]
    if as_json:
        print_json({"experiments": [dict(zip(columns, row, strict=True)) for row in listed]})
    else:
        _print(columns, listed, as_csv)


def _query(sql: str, as_json: bool, as_csv: bool) -> None:
    from headrace.record.views import query

    with Record.open() as record:
        columns, rows = query(record, sql)
    plain = [[each.hex() if isinstance(each, bytes) else each for each in row] for row in rows]
    if as_json:
        print_json({"columns": columns, "rows": [dict(zip(columns, row, strict=True)) for row in plain]})
    else:
        _print(columns, plain, as_csv)


def _print(columns: list[str], rows: list[list[Any]], as_csv: bool) -> None:
    if as_csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        sys.stdout.write(text.getvalue())
        return
    print_table(columns, [[_shown(value) for value in row] for row in rows[:_SHOWN]])
    if len(rows) > _SHOWN:
        typer.echo(f"and {len(rows) - _SHOWN} more rows: use --csv or --json", err=True)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _write_parquet(path: Path, rows: list[dict[str, Any]], columns: list[str]) -> None:
    import pyarrow  # type: ignore[import-not-found,unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]

    data = {}
    for column in columns:
        values = [row[column] for row in rows]
        mixed = len({str if isinstance(v, str) else float for v in values if v is not None}) > 1
        data[column] = [None if v is None else str(v) for v in values] if mixed else values
    pyarrow.parquet.write_table(pyarrow.table(data), str(path))
