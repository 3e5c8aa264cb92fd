"""Convert files: programs and platforms to other tools' formats, plans to traces and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from headrace.formats.detect import detect
from headrace.formats.plan_json import files_of_plan, read_plan
from headrace.formats.platform_toml import write_platform
from headrace.formats.pst_behaviour import read_behaviour, write_behaviour, write_trace
from headrace.formats.python_program import is_python_program, load_python_program
from headrace.formats.reading import read_any_platform, read_any_program, read_grid_or_platform
from headrace.formats.wfformat import write_program
from headrace.model.errors import BadPlatform, UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program

W = TypeVar("W")
_ENDINGS = {
    ".dot": "dot",
    ".gv": "dot",
    ".graphml": "graphml",
    ".nodelink.json": "node-link",
    ".trace.json": "chrome-trace",
    ".svg": "svg",
    ".json": "wfformat",
    ".json.gz": "wfformat",
    ".pst": "pst",
    ".trace": "trace",
    ".toml": "platform",
}


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="Program (also file.py:name), platform, behaviour or plan.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Its suffix selects the format.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Output format: wfformat, pst, dot, graphml, node-link, platform, trace, chrome-trace or svg.",
            show_default="from the suffix of OUT",
        ),
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", metavar="PROGRAM", help="Program of a plan file.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", metavar="PLATFORM", help="Platform of a plan file.")
    ] = None,
) -> None:
    """Convert one file and print the format written."""
    typer.echo(f"{target}: {convert_file(source, target, to, program, on)}")


def convert_file(source: str, target: Path, to: str | None, program: str | None, platform: str | None) -> str:
    """Write `source` in the format that `to`, or the target's ending, names; says what was written."""
    form = to or _by_ending(target)
    kind = "program" if is_python_program(source) else detect(source)
    if kind == "platform":
        _choose({"platform": _write_toml, "pst": _write_grid}, form, "a platform")(source, target)
    elif kind == "behaviour":
        writers_of_behaviours = {"pst": write_behaviour, "trace": write_trace}
        _choose(writers_of_behaviours, form, "a behaviour")(read_behaviour(source), target)
    elif kind in ("campaign", "pipeline", "deployment"):
        raise UsageError(
            f"a {kind} cannot be converted", where=source, hint="give a program, platform, behaviour or plan"
        )
    elif kind == "plan":
        writers = _plan_writers()
        if form == "wfformat" and to is None:
            form = "chrome-trace"
        _choose(writers, form, "a plan")(_read_plan(source, program, platform), target)
    else:
        writers_of_programs = _program_writers()
        read = load_python_program(source) if is_python_program(source) else read_any_program(source)
        _choose(writers_of_programs, form, "a program")(read, target)
        if read.reality is not None and form != "pst":
            return f"{form}, with the estimates; the real figures stay behind"
    return form


def _write_toml(source: str, target: Path) -> None:
    write_platform(read_any_platform(source), target)


def _write_grid(source: str, target: Path) -> None:
    """A grid description with all that happens in it; any other platform as a grid that stays as it is."""
    from headrace.formats.pst_grid import write_grid
    from headrace.formats.pst_platform import grid_of

    found = read_grid_or_platform(source)
    try:
        write_grid(grid_of(found) if isinstance(found, Platform) else found, target)
    except BadPlatform as error:
        raise error.at(source) from None


def _by_ending(target: Path) -> str:
    for ending, form in _ENDINGS.items():
        if target.name.endswith(ending):
            return form
    raise UsageError(
        f"the ending of {target.name!r} names no format",
        hint=f"use one of {', '.join(_ENDINGS)}, or --to FORMAT",
    )


def _choose(writers: dict[str, W], form: str, what: str) -> W:
    if form not in writers:
        raise UsageError(f"{what} cannot be written as {form!r}", hint=f"one of {', '.join(writers)}")
    return writers[form]


def _program_writers() -> dict[str, Callable[[Program, Path], None]]:
    from headrace.formats.dot import write_dot
    from headrace.formats.graphml import write_graphml
    from headrace.formats.node_link import write_node_link
    from headrace.formats.pst_work import write_work

    return {
        "wfformat": write_program,
        "dot": write_dot,
        "graphml": write_graphml,
        "node-link": write_node_link,
        "pst": write_work,
    }


def _plan_writers() -> dict[str, Callable[[Plan, Path], None]]:
    from headrace.report.chrome_trace import plan_trace, write_trace
    from headrace.report.gantt import write_gantt

    return {"chrome-trace": lambda plan, path: write_trace(plan_trace(plan), path), "svg": write_gantt}


def _read_plan(source: str, program: str | None, platform: str | None) -> Plan:
    named_program, named_platform = files_of_plan(source)
    if program is None and named_program is not None and not is_python_program(named_program):
        program = named_program  # a Python file is run only if the user names it
    platform = platform or named_platform
    if program is None or platform is None:
        raise UsageError(
            "a plan is read with its program and platform", where=source, hint="give --program FILE --on FILE"
        )
    where = Platform.local() if platform == "local" else read_any_platform(platform)
    read = load_python_program(program) if is_python_program(program) else read_any_program(program)
    return read_plan(source, read.graph, where)
