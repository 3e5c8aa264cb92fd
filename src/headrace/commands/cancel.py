"""`headrace cancel`: end a run that another process carries out."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from headrace.commands.console import print_json
from headrace.commands.options import JsonOption, number_parser
from headrace.model.errors import HeadraceError
from headrace.record import Record

RunArg = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or `last`.", show_default="last")]

_wait = number_parser(float, "--wait", 0)


def cancel(
    run_id: RunArg = "last",
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            help="How long to wait until it has ended.",
            parser=_wait,
        ),
    ] = 60,
    as_json: JsonOption = False,
) -> None:
    """Ask the process of a run to end it, and wait until it has."""
    with Record.open() as record:
        run = record.run(run_id).id
        record.cancel(run)
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            # Opened again: this is how the end of a process that was killed is noticed.
            with Record.open(record.folder) as fresh:
                status = fresh.run(run).status
            if status != "running":
                if as_json:
                    print_json({"run": run, "status": status})
                else:
                    typer.echo(f"run {run}: {status}")
                if status != "done":
                    typer.echo(f"to continue from what is committed: headrace resume {run}", err=True)
                return
            time.sleep(0.1)
    raise HeadraceError(
        f"run {run} has not ended within {wait:g} s", hint="wait, or end its process; it can be resumed then"
    )
