"""Tables for the terminal, and a summary of a plan."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from headrace.model.bound import bound_name
from headrace.model.plan import Plan
from headrace.model.units import plural, show_size, show_time
from headrace.model.usage import usage_of_plan
from headrace.report.resources import by_resource, resource_rows
from headrace.report.text import clean
from headrace.report.usage import usage_rows

WIDE = 160
"""Width in columns when the output is not a terminal: lines in files and pipes are not wrapped early."""


def summary(plan: Plan) -> list[tuple[str, str]]:
    """The summary of a plan, as (name, value)."""
    hosts = len(plan.platform.hosts)
    rows = [
        ("scheduler", plan.scheduler),
        ("makespan", show_time(plan.makespan)),
        ("lower bound", show_bound(plan.bound) if plan.bound > 0 else "none known"),
        ("ratio", f"{plan.ratio:.3f}" if plan.bound > 0 else "unknown"),
        ("tasks", f"{plan.graph.n_tasks:,}"),
        ("hosts used", f"{plan.hosts_used} of {hosts}"),
        ("data moved", f"{show_size(plan.bytes_moved)} in {plural(len(plan.move_item), 'transfer')}"),
        *usage_rows(usage_of_plan(plan)),
        ("planning time", show_time(plan.seconds)),
    ]
    if by_resource(plan):
        rows += resource_rows(plan)
    return rows + [("note", note) for note in plan.notes]


def show_bound(bound: float) -> str:
    """A bound with what proves it.

    >>> from headrace.model.bound import Bound
    >>> show_bound(Bound(12.0, "chain of tasks"))
    '12 s: chain of tasks'
    """
    name = bound_name(bound)
    return f"{show_time(bound)}: {name}" if name else show_time(bound)


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", stream: TextIO | None = None
) -> None:
    """Print rows under headers, to stdout unless a stream is given; without headers, no header line is printed.

    Cells are shown literally: markup and control characters in names have no effect.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[Text(clean(cell)) for cell in row] for row in rows]
    columns = max([len(headers), *(len(row) for row in cells)])
    table = Table(title=Text(clean(title)) if title else None, box=box.SIMPLE_HEAD, show_header=bool(headers))
    for i in range(columns):
        table.add_column(Text(clean(headers[i])) if i < len(headers) else "", overflow="fold")
    for row in cells:
        table.add_row(*row)
    plain = bool(os.environ.get("NO_COLOR"))  # which asks for no bold headers either
    target = sys.stdout if stream is None else stream
    console = Console(file=target, highlight=False, emoji=False, color_system=None if plain else "auto")
    if console.is_terminal:
        console.print(table)
        return
    text = io.StringIO()
    Console(file=text, width=WIDE, highlight=False, emoji=False, color_system=None).print(table)
    target.write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()))
