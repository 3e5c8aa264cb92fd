"""`headrace calibrate`: a platform file fitted to a recorded run, with its prediction error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.calibrating import Calibration
from headrace.calibrating import calibrate as fit
from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption, ProgramArg, read_program
from headrace.formats.platform_toml import write_platform
from headrace.formats.wfformat import write_program
from headrace.model.units import show_time
from headrace.record import Record


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
        False, "--traces", "Put times longer than usual down to the load of hosts, as traces."
    )


def calibrate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A recorded run.", show_default=False)],
    program: ProgramArg,
    options: CalibrateOptions,
    as_json: JsonOption = False,
) -> None:
    """Write a platform as a run has shown it, and print how well a simulation with it predicts that run."""
    files = [path for path in (options.output, options.program_output) if path is not None]
    require_outputs(*files)
    base = read_program(program)
    with Record.open() as record:
        found = fit(base, run, record, traces=options.traces)
    write_platform(found.platform, options.output)
    if options.program_output is not None:
        write_program(found.program(base), options.program_output)
    with results_beside(*files):
        if as_json:
            print_json(facts(found))
            return
        rows = [
            ["run", found.run],
            ["makespan", show_time(found.happened)],
            ["simulated", f"{show_time(found.simulated)} with the same decisions, {found.error:+.1%}"],
            ["fitted", f"{found.tasks} run times, {found.links} links"],
        ]
        named = [("platform", options.output), ("program", options.program_output)]
        print_table([], rows + file_rows(named))


def facts(found: Calibration) -> dict[str, Any]:
    """For JSON."""
    return {
        "run": found.run,
        "makespan": found.happened,
        "simulated": found.simulated,
        "error": found.error,
        "tasks": found.tasks,
        "links": found.links,
    }
