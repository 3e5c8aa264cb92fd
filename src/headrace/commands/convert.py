"""`headrace convert`: the same content in another format; plans as traces and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.console import print_json, results_beside
from headrace.commands.options import JsonOption
from headrace.formats.format import Format, Kind
from headrace.formats.loading import load_platform
from headrace.formats.pst_platform import grid_of
from headrace.formats.registry import choose_format, detect, writable
from headrace.given import load_plan
from headrace.model.behaviour import GridScript
from headrace.model.errors import BadPlatform, UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Program (also file.py:name), platform, pipeline, behaviour or plan; - for stdin.",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write, or - for stdout (with --to).")
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="Output format: wfformat, csv, pst, dot, graphml or node-link for a program; toml, ini or pst "
            "for a platform; pst or trace for a behaviour; ini for a pipeline; chrome-trace, svg, csv or parquet "
            "for a plan.",
            show_default="from the suffix of OUT",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            "--program", metavar="PROGRAM", help="Program of a plan.", show_default="as the plan file says"
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="PLATFORM", help="Platform of a plan.", show_default="as the plan file says"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Convert one file and print the format written."""
    written = convert_file(source, target, to, program, on)
    with results_beside(target):
        if as_json:
            print_json(
                {"source": source, "kind": written.kind, "file": str(target), "format": written.format}
                | ({"note": written.note} if written.note else {})
            )
        else:
            typer.echo(f"{target}: {written}")


@dataclass(frozen=True)
class Written:
    """What a conversion has written."""

    kind: str
    format: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.format}, {self.note}" if self.note else self.format


def convert_file(
    source: str, target: Path, to: str | None = None, program: str | None = None, platform: str | None = None
) -> Written:
    """Write `source` in the format that `to`, or else the target's suffix, selects; returns what was written."""
    found = detect(source)
    choices = _choices(found.kind)
    if not choices:
        raise UsageError(
            f"a {found.kind} cannot be converted",
            where=source,
            hint="give a program, platform, pipeline, behaviour or plan",
        )
    chosen = choose_format(choices, target, to)
    if chosen is None:
        raise _no_format(found.kind, choices, target, to)
    assert found.read is not None
    assert chosen.write is not None
    content: Any = (
        load_plan(source, program, platform, hint="add --program FILE --on FILE")
        if found.kind == "plan"
        else found.read(source)
    )
    chosen.write(_as_kind(content, chosen.kind, source), target)
    if isinstance(content, Program) and content.reality is not None and chosen.name != "pst":
        note = "estimates only: this format cannot hold real run times and sizes"
        return Written(found.kind, chosen.name, note)
    return Written(found.kind, chosen.name)


def _choices(kind: Kind) -> list[Format]:
    """The formats that content of this kind can be written in, directly or as a related kind."""
    if kind == "plan":
        return plan_formats()
    if kind == "deployment":  # has no meaning without its pipeline and platform
        return []
    related: dict[Kind, Kind] = {"platform": "grid", "grid": "platform"}
    return [*writable(kind), *(writable(related[kind]) if kind in related else [])]


def plan_formats() -> list[Format]:
    """What a plan can be exported to."""
    from headrace.report.chrome_trace import plan_trace, write_trace
    from headrace.report.frames import plan_rows
    from headrace.report.picture import draw_plan
    from headrace.report.table_files import write_table

    def write_plan_trace(plan: Plan, path: Path) -> None:
        write_trace(plan_trace(plan), path)

    trace = Format(
        "chrome-trace", "plan", "Chrome trace", suffixes=(".trace.json", ".json"), write=write_plan_trace
    )

    def write_tasks(plan: Plan, path: Path) -> None:
        write_table(path, *plan_rows(plan))

    def draw(plan: Plan, path: Path) -> None:
        draw_plan(plan, path)

    return [
        trace,
        Format("svg", "plan", "Gantt chart", suffixes=(".svg",), write=draw, packed=False),
        Format("csv", "plan", "table of tasks", suffixes=(".csv",), write=write_tasks),
        Format("parquet", "plan", "table of tasks", suffixes=(".parquet",), write=write_tasks, packed=False),
    ]


def _no_format(kind: Kind, choices: list[Format], target: Path, to: str | None) -> UsageError:
    names = ", ".join(dict.fromkeys(choice.name for choice in choices))
    if to is not None:
        return UsageError(f"a {kind} cannot be written as {to!r}", hint=f"one of {names}")
    suffixes = ", ".join(dict.fromkeys(suffix for choice in choices for suffix in choice.suffixes))
    return UsageError(
        f"the suffix of {target.name!r} selects no format for a {kind}",
        hint=f"use one of {suffixes}, or --to with one of {names}",
    )


def _as_kind(content: Any, kind: Kind, source: str) -> Any:
    """A grid as the platform at time 0, or a platform as a grid that never changes, where the target needs it."""
    if isinstance(content, GridScript) and kind == "platform":
        return load_platform(source)
    if isinstance(content, Platform) and kind == "grid":
        try:
            return grid_of(content)
        except BadPlatform as error:
            raise error.at(source) from None
    return content
