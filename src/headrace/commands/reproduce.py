"""`headrace reproduce`: a paper's figure or table done again, with 'paper says / we measure'."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.report.curves import write_curves
from headrace.reproductions import FIGURES, Ask, Cell, Reproduction, reproduce


def figure_list() -> list[dict[str, str]]:
    """What can be reproduced."""
    return [{"name": name, "what": line} for name, (_, line) in FIGURES.items()]


def reproduce_figure(
    name: str, seeds: int | None, plot: Path | None, tell: Callable[[str], None]
) -> Reproduction:
    """Compute the figure and draw its pictures, if wanted, into one file."""
    made = reproduce(name, Ask(seeds=seeds, tell=tell))
    if plot is not None:
        write_curves(plot, made.pictures)
    return made


def as_json(name: str, made: Reproduction) -> dict[str, Any]:
    """The same for machines: the rows as objects."""
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
