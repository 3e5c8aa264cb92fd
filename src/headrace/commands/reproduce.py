"""`headrace reproduce`: recompute a figure or table of a paper and compare with its claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.console import computing, print_json, print_table, require_outputs, results_beside
from headrace.commands.options import JsonOption, PlotOption, number_parser
from headrace.model.errors import UsageError
from headrace.report.curves import write_curves
from headrace.reproductions import FIGURES, Ask, Cell, Reproduction
from headrace.reproductions import reproduce as reproduce_named

_seeds = number_parser(int, "--seeds", 1)


def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(metavar="FIGURE", help="Name of the figure; omit it to list all.", show_default=False),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=_seeds,
            metavar="N",
            help="Seeds per cell.",
            show_default="depends on the figure",
        ),
    ] = None,
    real: Annotated[
        bool, typer.Option("--real", help="For lpsched: on real processes with emulated hosts.")
    ] = False,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the figures, or compute one and compare it with the paper."""
    if figure is None and (seeds is not None or plot is not None or real):
        raise UsageError(
            "--seeds, --plot and --real need a figure", hint="name it: headrace reproduce figure-11"
        )
    require_outputs(drawn=(plot,))
    if figure is None:
        _list_figures(as_json)
        return
    with computing(f"reproducing {figure}", 60) as say:
        made = reproduce_figure(figure, seeds, plot, say, real)
    with results_beside(plot):
        if as_json:
            print_json(to_json(figure, made))
            return
        _show(made)
        if plot is not None:
            typer.echo(f"picture: {plot}")


def _list_figures(as_json: bool) -> None:
    rows = figure_list()
    if as_json:
        print_json({"figures": rows})
    else:
        print_table(["figure", "what"], [list(row.values()) for row in rows])


def _show(made: Reproduction) -> None:
    typer.echo(f"{made.title} ({made.source})")
    print_table(list(made.headers), [[shown(cell) for cell in row] for row in made.rows])
    for claim in made.claims:
        typer.echo(f"paper says: {claim.paper}")
        typer.echo(f"  we measure: {claim.measured} ({'agrees' if claim.agrees else 'DISAGREES'})")
        if claim.why:
            typer.echo(f"  why: {claim.why}")
    for note in made.notes:
        typer.echo(note)


def figure_list() -> list[dict[str, str]]:
    """The figures that can be reproduced."""
    return [{"name": name, "what": line} for name, (_, line) in FIGURES.items()]


def reproduce_figure(
    name: str, seeds: int | None, plot: Path | None, tell: Callable[[str], None], real: bool = False
) -> Reproduction:
    """Compute the figure and draw its pictures to one file if requested."""
    made = reproduce_named(name, Ask(seeds=seeds, tell=tell), real)
    if plot is not None:
        write_curves(plot, made.pictures)
    return made


def to_json(name: str, made: Reproduction) -> dict[str, Any]:
    """The figure as JSON, with rows as objects."""
    return {
        "name": name,
        "title": made.title,
        "source": made.source,
        "rows": [dict(zip(made.headers, row, strict=True)) for row in made.rows],
        "claims": [
            {
                "paper": c.paper,
                "measured": c.measured,
                "agrees": c.agrees,
                "why": c.why,
                "rule": c.rule,
                "rule_chosen_afterwards": c.afterwards,
            }
            for c in made.claims
        ],
        "pictures": [
            {
                "title": p.title,
                "x_label": p.x_label,
                "y_label": p.y_label,
                "x": list(p.x),
                "curves": {k: list(v) for k, v in p.curves.items()},
                "errors": {k: list(v) for k, v in p.errors.items()},
            }
            for p in made.pictures
        ],
        "notes": list(made.notes),
    }


def shown(cell: Cell) -> str:
    """A cell of the table as text.

    >>> shown(10850.4), shown(0.12345), shown("H1")
    ('10,850', '0.1235', 'H1')
    """
    if not isinstance(cell, float):
        return "" if cell is None else str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
