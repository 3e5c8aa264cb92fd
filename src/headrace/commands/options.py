"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.commands.console import progress
from headrace.commands.dataclass_options import option, parse_value
from headrace.commands.names import complete_scheduler, scheduler_name

if TYPE_CHECKING:
    from headrace.model.plan import Plan
    from headrace.model.program import Program
    from headrace.rules.tree import RuleSet

ProgramArg = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="WfFormat JSON (also .gz), CSV jobs, GraphML, DOT, node-link JSON, PST (parameter-sweep template, "
        "Berman et al. 1999), file.py:name, or - for stdin.",
        show_default=False,
    ),
]
OnOption = Annotated[
    str,
    typer.Option(
        "--on", metavar="PLATFORM", help="Platform TOML or INI, a PST grid, or `local` for this machine."
    ),
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        "--scheduler",
        "-s",
        metavar="NAME",
        help="A name listed by `headrace schedulers`, or file.py:Class for your own.",
        callback=scheduler_name,
        autocompletion=complete_scheduler,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
RulesOption = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="Keep the rules of this file.", show_default="no rules"),
]


def number_parser(kind: type, name: str, least: float) -> Callable[[str], Any]:
    """The `parser` of an option that takes numbers from `least`: its errors name the value, as those of other options.

    >>> number_parser(int, "--workers", 1)("0")
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: --workers is '0' (try: a whole number of at least 1)
    """

    def parse(text: str) -> Any:
        return parse_value(kind, text, name=name, least=least)

    return parse


ProcessesOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        parser=number_parser(int, "--workers", 1),
        metavar="N",
        help="Number of processes.",
        show_default="one per core",
    ),
]
PlotOption = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the results as SVG.")]


@dataclass(frozen=True)
class Pictures:
    """Files that a plan or a run is drawn in."""

    gantt: Path | None = option(None, "--gantt", "Draw the Gantt chart as SVG.", metavar="FILE")
    trace: Path | None = option(None, "--trace", "Write a Chrome trace (JSON).", metavar="FILE")

    @property
    def files(self) -> tuple[Path | None, ...]:
        return self.gantt, self.trace

    @property
    def named(self) -> list[tuple[str, Path | None]]:
        return [("chart", self.gantt), ("trace", self.trace)]


def read_program(spec: str, *, commands: bool = False) -> Program:
    """The program of a file or of `file.py:name`, with its graph built and progress shown on a terminal.

    With `commands`, tasks of a WfFormat file execute its commands.
    """
    from headrace.formats.loading import load_program

    with progress(f"reading {spec}"):
        program = load_program(spec, commands=commands)
        _ = program.graph
    return program


def read_rule_file(path: Path | None) -> RuleSet | None:
    """The rules of a file; None without one, or if it has no rules."""
    if path is None:
        return None
    from headrace.rules.parser import read_rules

    rules = read_rules(path)
    return rules if len(rules) else None


def draw_plan(plan: Plan, pictures: Pictures) -> None:
    """Write the requested files."""
    if pictures.gantt is not None:
        plan.gantt(pictures.gantt)
    if pictures.trace is not None:
        from headrace.report.chrome_trace import plan_trace, write_trace

        write_trace(plan_trace(plan), pictures.trace)


def names_in(text: str) -> list[str]:
    """
    >>> names_in("heft, auto,")
    ['heft', 'auto']
    """
    return [name.strip() for name in text.split(",") if name.strip()]
