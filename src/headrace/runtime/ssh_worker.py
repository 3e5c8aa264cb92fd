"""The main program on a host that is reached by ssh: `python -m headrace.runtime.ssh_worker`.

It says which versions it has, reads its settings from standard input, and starts the workers of this host. It runs as
long as its standard input is open: when the connection ends, for whatever reason, the workers end too. Answers are
lines on standard output that begin with `MARK`; whatever a login shell prints before them is skipped.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from typing import Any
from urllib.parse import urlsplit

MARK = "headrace-ssh:"
_PATIENCE = 10.0
_CONNECT = "10s"


def main() -> None:
    """Start the workers of this host, and end them when the connection ends."""
    from headrace.runtime.installed import own_version
    from headrace.runtime.worker_process import read_settings

    answer(headrace=own_version(), python=list(sys.version_info[:2]))
    settings = json.loads(read_settings())
    try:
        address = address_towards(settings["scheduler"])
    except OSError as error:
        answer(problem="unreachable", text=error.strerror or str(error))
        sys.exit(1)
    try:
        folder = tempfile.mkdtemp(prefix="headrace-workers-", dir=settings["folder"])
    except OSError as error:
        answer(problem="folder", text=f"{error.filename}: {error.strerror}")
        sys.exit(1)
    _serve(settings, address, folder)


def answer(**facts: Any) -> None:
    """Tell something to the other end of the connection."""
    print(MARK + json.dumps(facts), flush=True)


def address_towards(scheduler: str) -> str:
    """The address of this machine from which it reaches the scheduler: the one at which other hosts reach it."""
    parts = urlsplit(scheduler)
    with socket.create_connection((parts.hostname, parts.port), _PATIENCE) as connection:
        return str(connection.getsockname()[0])


def _serve(settings: dict[str, Any], address: str, folder: str) -> None:
    from dask.system import CPU_COUNT

    from headrace.model.platform import Host, Platform, Site
    from headrace.runtime.local_workers import start_workers
    from headrace.runtime.transport import Transport

    names = settings["names"]
    threads = settings["threads"] or max(1, CPU_COUNT // len(names))
    platform = Platform((Site("ssh", tuple(Host(name, cores=threads) for name in names)),))
    literal = f"[{address}]" if ":" in address else address
    transport = Transport(folder, f"tls://{literal}", settings["security"])
    workers = start_workers(platform, None, transport)
    try:
        workers.join(settings["scheduler"], settings["memory"], _CONNECT)
        workers.supervise(restart=True)
        while os.read(0, 4096):
            pass
    finally:
        workers.end()


if __name__ == "__main__":
    main()
