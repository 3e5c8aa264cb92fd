"""`headrace certificates`: TLS certificates for a cluster of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption, number_parser
from headrace.runtime.certificates import write_certificates

_days = number_parser(int, "--days", 1)


def certificates(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A new folder for the files.", show_default=False)
    ],
    days: Annotated[
        int,
        typer.Option("--days", metavar="DAYS", help="How long they are valid.", parser=_days),
    ] = 365,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the certificate authority.")
    ] = "headrace",
    as_json: JsonOption = False,
) -> None:
    """Write ca.pem, and a certificate with its key for the scheduler, the workers and clients."""
    files = write_certificates(folder, days=days, name=name)
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    print_table([], [[file.stem, str(file)] for file in files])
    typer.echo(
        "Keep ca-key.pem here. Copy ca.pem and one pair to each machine, readable only by you.", err=True
    )
