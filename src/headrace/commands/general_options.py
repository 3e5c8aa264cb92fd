"""What every command has: `-q`, `-v`, and options listed in groups by `--help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headrace.commands import console
from headrace.model.errors import HeadraceError

GENERAL = "General options"
OUTPUT = "Output"
OPTIONS = "Options"
"""The group of options that belong to no other."""

RECORD_GROUPS = {
    "Pictures": OUTPUT,
    "SimulateOutput": OUTPUT,
    "DeployOutput": OUTPUT,
    "RunPolicy": "Failures, limits and what is kept",
    "SweepPolicy": "Failures, limits and what is kept",
    "ReplanPolicy": "When to plan again",
    "ExecutionPolicy": "How hosts and links work",
    "SimulatedComparison": "Simulated makespans",
    "SimulationConfig": "How the run differs from the estimates",
    "PlaceOptions": "Platform and workers",
    "FlowOptions": "How buffers flow",
}
"""The group of the options of a dataclass."""

OPTION_GROUPS = {
    "--json": OUTPUT,
    "--csv": OUTPUT,
    "--parquet": OUTPUT,
    "--plot": OUTPUT,
    "--output": OUTPUT,
    "--on": "Platform and workers",
    "--workers": "Platform and workers",
    "--speeds": "Platform and workers",
    "--platform": "Platform and workers",
    "--tls-ca": "Certificates",
    "--tls-cert": "Certificates",
    "--tls-key": "Certificates",
    "--emulate": "Emulation",
    "--time-scale": "Emulation",
    "--size-scale": "Emulation",
    "--burn": "Emulation",
    "--help": GENERAL,
}
"""The group of an option, whichever command has it."""
LAST = (OUTPUT, GENERAL)
"""Groups that come at the end."""

QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show no progress, only results and errors.", rich_help_panel=GENERAL),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Say how long each step takes; show where an error was raised.",
        rich_help_panel=GENERAL,
    ),
]


def group_of(name: str, record: str = "") -> str:
    """The group of an option, by its name and the dataclass that declares it.

    >>> group_of("--tls-ca", "RunOptions"), group_of("--retries", "RunPolicy"), group_of("--seed")
    ('Certificates', 'Failures, limits and what is kept', 'Options')
    """
    return OPTION_GROUPS.get(name) or RECORD_GROUPS.get(record) or OPTIONS


def with_general_options(function: Callable[..., None]) -> Callable[..., None]:
    """The command with `--quiet` and `--verbose`, which hold for all that it does."""
    signature = inspect.signature(function)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", QuietOption), ("verbose", VerboseOption))
    ]

    def command(*, quiet: bool = False, verbose: bool = False, **given: Any) -> None:
        console.set_level(quiet=quiet, verbose=verbose)
        function(**given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    parameters = [*signature.parameters.values(), *added]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


class GroupedCommand(TyperCommand):
    """A command whose help lists options in groups, and arguments by their names alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; every error names this command."""
        try:
            return list(super().parse_args(ctx, args))
        except HeadraceError as error:
            raise error.at(ctx.command_path) from None
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # the parser of options does not know the command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        levels = [name for name in ("quiet", "verbose") if ctx.params.get(name)]
        in_file = [name for name in levels if ctx.get_parameter_source(name).name == "DEFAULT_MAP"]
        if len(levels) == 2 and len(in_file) == 1:  # the command line comes first
            ctx.params[in_file[0]] = False
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [
            re.sub(r"^\{(.*)\}", r"\1", piece).replace("......", "...")
            for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for name, records in self.grouped_options(ctx):
            with formatter.section(name):
                formatter.write_dl(records)

    def grouped_options(self, ctx: Any) -> list[tuple[str, list[tuple[str, str]]]]:
        """Arguments and options in groups, in the order of the help; each with what it does and its default."""
        groups: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for parameter in self.get_params(ctx):
            record = _with_default_of_file(parameter, ctx).get_help_record(ctx)
            if record is not None:
                if parameter.param_type_name == "argument":
                    record = (re.sub(r" <.*>$", "", record[0]), record[1])
                groups.setdefault(_group(parameter), []).append(record)
        first = [name for name in ("Arguments", OPTIONS) if groups.get(name)]
        last = [name for name in LAST if name in groups]
        names = [*first, *(n for n in groups if n not in (*first, *last, OPTIONS)), *last]
        return [(name, groups[name]) for name in names]


def _with_default_of_file(parameter: Any, ctx: Any) -> Any:
    """A parameter whose default is described in words shows the default of the configuration file, if it has one."""
    if parameter.name not in (ctx.default_map or {}) or not isinstance(parameter.show_default, str):
        return parameter
    shown = copy(parameter)
    shown.show_default = True
    return shown


def _group(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    named = getattr(parameter, "rich_help_panel", None)
    return named or group_of(next((o for o in parameter.opts if o.startswith("--")), ""))
