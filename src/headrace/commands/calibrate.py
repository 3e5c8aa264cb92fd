"""`headrace calibrate`: a platform file fitted to a recorded run, with its prediction error."""

from __future__ import annotations

from contextlib import chdir
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.calibrating import Calibration
from headrace.calibrating import calibrate as fit
from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption, read_program
from headrace.formats.platform_toml import write_platform
from headrace.formats.wfformat import write_program
from headrace.model.errors import UsageError
from headrace.model.program import Program
from headrace.model.units import plural, show_time
from headrace.record import Record
from headrace.record.launch import Launch

RunArg = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or `last`.", show_default="last")]
RunProgramArg = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM", help="The program that was run.", show_default="where the run found it"
    ),
]


@dataclass(frozen=True)
class CalibrateOptions:
    """What to write."""

    output: Path = option(
        Path("platform.toml"), "--output", "Platform file to write.", short="-o", metavar="FILE"
    )
    program_output: Path | None = option(
        None,
        "--program-output",
        "Also write the program with measured run times and sizes, as WfFormat.",
        metavar="FILE",
        default_text="not written",
    )
    traces: bool = option(
        False, "--traces", "Attribute unusually long run times to the load of hosts, as traces."
    )


def calibrate(
    options: CalibrateOptions, run: RunArg = "last", program: RunProgramArg = "", as_json: JsonOption = False
) -> None:
    """Write a platform as a run has shown it, and print how well a simulation with it predicts that run."""
    files = [path for path in (options.output, options.program_output) if path is not None]
    require_outputs(*files, inputs=(program or None,))
    with Record.open() as record:
        base = read_program(program) if program else _program_of(record, run)
        found = fit(base, run, record, traces=options.traces)
    write_platform(found.platform, options.output)
    if options.program_output is not None:
        write_program(found.program(base), options.program_output)
    with results_beside(*files):
        if as_json:
            print_json(facts(found))
            return
        taken = found.overheads
        rows = [
            ["run", found.run],
            ["makespan", show_time(found.happened)],
            ["simulated", f"{show_time(found.simulated)} with the same decisions, {found.error:+.1%}"],
            ["what if", f"{show_time(found.without_overheads)} if the engine took no time"],
            ["", f"{show_time(found.with_instant_links)} if transfers took no time"],
            ["fitted", f"{plural(found.tasks, 'run time')}, {plural(found.links, 'link')}"],
            ["engine", f"{show_time(taken.task)} a task, {show_time(taken.transfer)} a transfer"],
        ]
        named = [("platform", options.output), ("program", options.program_output)]
        print_table([], rows + file_rows(named))


def _program_of(record: Record, run: str) -> Program:
    """The program of a run, from where it was."""
    row = record.run(run)
    launch = Launch.parse(record.launch(row.id))
    if launch.source is None:
        raise UsageError(
            f"run {row.id!r} was not started from a file",
            where="calibrate",
            hint="give the program as the second argument",
        )
    with chdir(launch.folder):  # the program may read files beside it
        return launch.load()


def facts(found: Calibration) -> dict[str, Any]:
    """For JSON."""
    return {
        "run": found.run,
        "makespan": found.happened,
        "simulated": found.simulated,
        "error": found.error,
        "tasks": found.tasks,
        "links": found.links,
        "overheads": asdict(found.overheads),
        "what_if": {
            "no_overhead": found.without_overheads,
            "instant_links": found.with_instant_links,
        },
    }
