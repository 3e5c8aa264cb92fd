"""Results of experiments as tables, for programs and for `headrace results`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headrace.experiment.diagram import Diagram
from headrace.experiment.sweep.condition import parse_condition, require_columns, select
from headrace.model.arguments import wrong_argument
from headrace.model.errors import UsageError
from headrace.record import Record
from headrace.record.experiments import Table, results_table


def results(
    experiment: str,
    *,
    where: str | None = None,
    record: str | Path | None = None,
    frame: str | None = None,
) -> Any:
    """The results of an experiment's latest execution: a row for each combination.

    Parameters
    ----------
    experiment
        Its name.
    where
        A condition over parameters and results, such as `"detect = 'canny' and sigma < 1"`.
    record
        As for `headrace.run`.
    frame
        `pandas`, `polars` or `rows`; by default a pandas or polars frame if one of them is installed.

    Returns
    -------
    A frame, or a list of dictionaries.
    """
    found = table(experiment, where=where, record=record)
    chosen = frame or next((name for name in ("pandas", "polars") if find_spec(name)), "rows")
    if chosen == "rows":
        return found.rows
    if chosen not in ("pandas", "polars"):
        raise UsageError(f"frame is {chosen!r}", hint="use pandas, polars or rows")
    if find_spec(chosen) is None:
        raise UsageError(f"{chosen} is not installed", hint=f"install {chosen}, or use frame='rows'")
    if chosen == "pandas":
        import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return pandas.DataFrame(found.rows, columns=list(found.columns))
    import polars  # type: ignore[import-not-found,unused-ignore]

    return polars.DataFrame(found.rows, schema=list(found.columns), infer_schema_length=None)


def table(
    experiment: str,
    *,
    where: str | None = None,
    record: str | Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Table:
    """The rows that satisfy a condition."""
    if not isinstance(experiment, str):
        raise wrong_argument("experiment", experiment, "give its name")
    with Record.open(record) as book:
        found = results_table(book, experiment, say)
    if where is None:
        return found
    condition = parse_condition(where, "--where")
    require_columns(condition, found.columns, "--where")
    flags = select(condition, {name: [row[name] for row in found.rows] for name in found.columns})
    return replace(
        found, rows=[row for row, wanted in zip(found.rows, flags.tolist(), strict=True) if wanted]
    )


@dataclass(frozen=True)
class PlotSpec:
    """What to draw: columns."""

    x: str
    y: str
    by: str | None = None

    @classmethod
    def parse(cls, text: str, by: str | None) -> PlotSpec:
        """
        >>> PlotSpec.parse("sigma:score", "detect")
        PlotSpec(x='sigma', y='score', by='detect')
        """
        x, colon, y = text.partition(":")
        if not (x and colon and y):
            raise UsageError(f"--plot is {text!r}", hint="give two columns: sigma:score")
        return cls(x, y, by)


def diagram(found: Table, spec: PlotSpec) -> Diagram:
    """A curve for each value of `by`: the mean of y over the rows with the same x."""
    for name in (spec.x, spec.y, *((spec.by,) if spec.by else ())):
        if name not in found.columns:
            raise UsageError(f"there is no column {name!r}", hint=f"use one of {', '.join(found.columns)}")
    sums: dict[str, dict[Any, list[float]]] = {}
    for row in found.rows:
        y = row[spec.y]
        if isinstance(y, int | float):
            curve = str(row[spec.by]) if spec.by else spec.y
            sums.setdefault(curve, {}).setdefault(row[spec.x], []).append(float(y))
    if not sums:
        raise UsageError(f"column {spec.y!r} has no numbers", hint="plot a column of numbers")
    places = {x for curve in sums.values() for x in curve if x is not None}
    numeric = all(isinstance(x, int | float) for x in places)
    order: list[Any] = sorted(places) if numeric else sorted(places, key=str)
    curves = {
        name: [sum(of[x]) / len(of[x]) if x in of else None for x in order]
        for name, of in sorted(sums.items())
    }
    averaged = any(len(of) > 1 for curve in sums.values() for of in curve.values())
    return Diagram(
        title=f"{found.experiment.name}: {spec.y} over {spec.x}" + (" (means)" if averaged else ""),
        x_label=spec.x,
        y_label=spec.y,
        x=order if numeric else [str(x) for x in order],
        curves=curves,
        shape="lines" if numeric else "bars",
    )
