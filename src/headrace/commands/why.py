"""`headrace why`: why a task ran, was reused, or must run again."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.commands.console import print_json
from headrace.commands.options import JsonOption
from headrace.model.units import show_time
from headrace.record.identity import time_stamp


def why(
    target: Annotated[
        str, typer.Argument(metavar="EXPERIMENT|RUN", help="An experiment's name, a run's id, or `last`.")
    ],
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="The task's name, or NAME@LABEL,LABEL such as canny@region_b."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Compare the task as it is now with the record; the program's file is executed, no task is."""
    from headrace.explaining import why as explain

    answers = explain(target, task)
    if as_json:
        print_json({"target": target, "answers": [answer.facts() for answer in answers]})
        return
    for answer in answers:
        kept = "is kept and need not run" if answer.status == "kept" else "must run"
        typer.echo(f"{answer.task}: {kept}")
        if answer.ran:
            ran = answer.ran
            typer.echo(
                f"  ran in run {ran['run']} on {ran['host']} for {show_time(ran['seconds'])}, "
                f"finished {time_stamp(ran['finished'])} UTC"
            )
        for reason in answer.reasons:
            typer.echo(f"  because: {reason}")
        for place in answer.where:
            typer.echo(f"  bytes: {place}")
