"""`headrace keep`: limit the age or size of what is kept for reuse."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption
from headrace.model.units import plural, quantity, show_size
from headrace.record import Record
from headrace.record.forgetting import Deletion, delete, plan_keeping
from headrace.record.identity import time_stamp

_SHOWN = 50
YesOption = Annotated[
    bool, typer.Option("--yes", help="Delete; without it, only list what would be deleted.")
]


def keep(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="TIME", help="Delete what has not been used for this long, such as 30d."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="SIZE", help="Delete what was used least recently, down to this size."
        ),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """List what would be deleted, and delete it with --yes."""
    age = None if older_than is None else quantity(older_than, "time", "--older-than")
    most = None if size is None else quantity(size, "size", "--size")
    with Record.open() as record:
        deletion = plan_keeping(record, age, most)
        show_deletion(deletion, yes, as_json)
        if yes:
            delete(record, deletion)


def show_deletion(deletion: Deletion, done: bool, as_json: bool) -> None:
    """Print what is, or would be, deleted."""
    if as_json:
        print_json(
            {
                "deleted": done,
                "values": [
                    {"run": v.run, "item": v.item, "bytes": v.size, "result": v.result}
                    for v in deletion.values
                ],
                "bytes": deletion.size,
                "needed": [{"run": v.run, "item": v.item} for v in deletion.needed],
                "left": deletion.left,
                "left_bytes": deletion.left_bytes,
            }
        )
        return
    rows = [
        [v.run, v.item, show_size(v.size), time_stamp(v.used), "result" if v.result else ""]
        for v in deletion.values[:_SHOWN]
    ]
    if rows:
        print_table(["run", "item", "size", "last used", ""], rows)
    if len(deletion.values) > _SHOWN:
        typer.echo(f"and {len(deletion.values) - _SHOWN} more")
    if deletion.needed:
        typer.echo(f"{plural(len(deletion.needed), 'value')} stay: other experiments or runs need them")
    verb = "deleted" if done else "would be deleted"
    typer.echo(f"{plural(len(deletion.values), 'value')} of {show_size(deletion.size)} {verb}; ", nl=False)
    typer.echo(f"{plural(deletion.left, 'value')} of {show_size(deletion.left_bytes)} left")
    if deletion.values and not done:
        typer.echo("add --yes to delete them")
