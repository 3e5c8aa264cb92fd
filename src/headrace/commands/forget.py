"""`headrace forget`: delete an experiment or a run, and what only it has kept."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.commands.keep import YesOption, show_deletion
from headrace.commands.options import JsonOption
from headrace.record import Record
from headrace.record.forgetting import delete, plan_forgetting


def forget(
    target: Annotated[
        str, typer.Argument(metavar="EXPERIMENT|RUN", help="An experiment's name, or a run's id.")
    ],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """List what would be deleted, and delete it with --yes; timings stay, they feed predictions."""
    with Record.open() as record:
        deletion = plan_forgetting(record, target)
        show_deletion(deletion, yes, as_json)
        if yes:
            delete(record, deletion)
