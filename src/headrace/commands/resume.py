"""`headrace resume`: go on with a run from what it has committed."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from headrace.commands.console import require_outputs
from headrace.commands.dataclass_options import option
from headrace.commands.names import scheduler_name, scheduler_names
from headrace.commands.options import JsonOption, Pictures
from headrace.commands.run import parse_speeds, report, show_preview
from headrace.commands.run_progress import watching
from headrace.model.events import Event
from headrace.record import Record
from headrace.record.launch import Launch
from headrace.resuming import preview_resume
from headrace.resuming import resume as go_on
from headrace.runtime.run_policy import RunPolicy

RunArg = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or `last`.", show_default="last")]


def _policy_changes() -> type:
    """`RunPolicy` with the same options, each of which may be left out."""
    hints = get_type_hints(RunPolicy)
    declared = [
        (
            f.name,
            hints[f.name] | None,
            field(default=None, metadata={**f.metadata, "default_text": "as before"}),
        )
        for f in fields(RunPolicy)
    ]
    return make_dataclass("PolicyChanges", declared, frozen=True)


PolicyChanges = _policy_changes()


@dataclass(frozen=True)
class ResumeOptions:
    """What is to be different from the run so far."""

    on: str | None = option(
        None, "--on", "Where to run, as for `headrace run`.", metavar="WHERE", default_text="as before"
    )
    scheduler: str | None = option(
        None,
        "--scheduler",
        "As for `headrace run`.",
        short="-s",
        metavar="NAME",
        parse=scheduler_name,
        complete=scheduler_names,
        default_text="as before",
    )
    workers: int | None = option(
        None, "--workers", "Number of local workers.", min=1, default_text="as before"
    )
    speeds: str | None = option(
        None,
        "--speeds",
        "Speeds of local workers, such as 4,2,1,1.",
        metavar="LIST",
        default_text="as before",
    )
    output: Path | None = option(
        None, "--output", "Folder for result files.", short="-o", metavar="FOLDER", default_text="as before"
    )
    tls_ca: Path | None = option(
        None,
        "--tls-ca",
        "Certificate authority of a tls:// cluster.",
        metavar="FILE",
        default_text="as before",
    )
    tls_cert: Path | None = option(
        None, "--tls-cert", "Client certificate.", metavar="FILE", default_text="as before"
    )
    tls_key: Path | None = option(None, "--tls-key", "Client key.", metavar="FILE", default_text="as before")
    anyway: bool = option(
        False,
        "--anyway",
        "Use what is committed although the code that made it, or an input, has changed since.",
    )
    dry_run: bool = option(
        False, "--dry-run", "Print what would run and what would be reused; execute nothing."
    )

    @property
    def tls(self) -> dict[str, str]:
        """The given files, by the parameter names of `connect`."""
        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        return {name: str(path.absolute()) for name, path in files.items() if path is not None}

    def changes(self) -> dict[str, Any]:
        """Parameters of `headrace.resume`."""
        given = {
            "on": self.on,
            "scheduler": self.scheduler,
            "workers": self.workers,
            "speeds": parse_speeds(self.speeds),
            "output": None if self.output is None else self.output.absolute(),
            "tls": self.tls or None,
        }
        return {name: value for name, value in given.items() if value is not None}


def resume(
    options: ResumeOptions,
    policy: PolicyChanges,  # type: ignore[valid-type]
    pictures: Pictures,
    run_id: RunArg = "last",
    as_json: JsonOption = False,
) -> None:
    """Go on with a run and print the outcome; the exit code is 1 if a task failed."""
    require_outputs(pictures.trace, drawn=(pictures.gantt,))
    with Record.open() as record:
        home, row = record.folder, record.run(run_id)
        launch = Launch.parse(record.launch(row.id))
    program = None
    if launch.source is not None:
        os.chdir(launch.folder)  # the program may read files beside it
        program = launch.load()
    other = {name: value for name, value in asdict(policy).items() if value is not None}
    common: dict[str, Any] = {"record": home, "anyway": options.anyway, **options.changes(), **other}
    if options.dry_run:
        code = show_preview(preview_resume(row.id, program, **common), pictures, as_json)
    else:
        events: list[Event] = []
        tasks = 0 if program is None else len(program.tasks)
        with watching(tasks, events, resumed=True) as listeners:
            done = go_on(row.id, program, **common, **listeners)
        code = report(done, events, tasks, pictures, as_json)
    if code:
        raise typer.Exit(code)
