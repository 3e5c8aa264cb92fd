"""`headrace ui`: the page, on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from headrace.commands.dataclass_options import option
from headrace.model.errors import UsageError


@dataclass(frozen=True)
class UiOptions:
    """Where the page is served."""

    host: str = option("127.0.0.1", "--host", "Address to serve on; others than loopback need --cert.")
    cert: Path | None = option(None, "--cert", "Certificate, to serve over TLS.", metavar="FILE")
    key: Path | None = option(None, "--key", "Key of the certificate.", metavar="FILE")
    port: int = option(0, "--port", "Port to serve on; 0: a free one.", metavar="N", min=0)


def ui(
    *,
    options: UiOptions,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Serve the page until interrupted; the first line on stdout is the address that opens it, once."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise UsageError(f"the page needs the package {package}", hint="pip install 'headrace[ui]'")
    from headrace.ui.server import Address, guarded, make_server

    address = Address(options.host, options.port, options.cert, options.key)
    with address.listen() as listening:
        gate = guarded(Path.cwd(), address.origin(listening.getsockname()[1]))
        link = gate.link
        typer.echo(link)
        typer.echo("press Ctrl-C to end", err=True)
        if not no_open:
            import webbrowser

            webbrowser.open(link)
        make_server(gate, address).run(sockets=[listening])
