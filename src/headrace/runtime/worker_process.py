"""The main program of a local worker: `python -m headrace.runtime.worker_process`.

Its settings are the first line of its standard input: they contain a key, which a command line would expose. It runs
as long as its standard input is open: when the parent process ends, for whatever reason, the worker and the commands
it started end too.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

_CONFIGURATION = {
    # A paused worker would delay tasks pinned to it; spilling to disk stays on.
    "distributed.worker.memory.pause": False,
    "distributed.worker.http.routes": [],
}
_EXPENDABLE = "500"
"""When memory is short, the kernel ends a worker rather than the process that started it."""


def main() -> None:
    """Execute tasks until closed."""
    _load()
    settings = json.loads(read_settings())
    sys.path += [folder for folder in settings["path"] if folder not in sys.path]
    threading.Thread(target=end_with_parent, args=(settings["folder"],), daemon=True).start()
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the key, and delay the restart
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_EXPENDABLE)
    asyncio.run(_serve(settings))


def read_settings() -> bytes:
    """The settings. Unbuffered: `end_with_parent` reads the rest."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            sys.exit(1)
        line += part
    return line


def _load() -> None:
    """Load all code, which takes longer than anything else, before the settings are there."""
    import dask

    # Set before the engine is loaded, which then sets up its loggers.
    dask.config.set({"logging": {"distributed": "critical"}})
    import distributed.worker  # noqa: F401

    import headrace.runtime.commit  # noqa: F401 - all that tasks need
    from headrace.runtime.dask_sockets import register_sockets

    register_sockets()


async def _serve(settings: dict[str, Any]) -> None:
    import dask
    from distributed import Security, Worker

    from headrace.runtime.crash_notes import keep_notes

    security = settings["security"]
    keep_notes(Path(settings["folder"]), settings["name"])
    with dask.config.set(_CONFIGURATION | {"distributed.comm.timeouts.connect": settings["connect"]}):
        async with Worker(
            settings["scheduler"],
            name=settings["name"],
            nthreads=settings["threads"],
            memory_limit=settings["memory"],
            local_directory=settings["folder"],
            host=settings["host"],
            protocol=settings["host"].partition("://")[0],
            security=Security(require_encryption=bool(security), **security),
            dashboard=False,
        ) as worker:
            worker.http_server.stop()  # it has no pages, but others could connect to it
            await worker.finished()


def end_with_parent(folder: str) -> None:
    """Wait until standard input closes, then remove the folder and end this process and all it started."""
    # Unbuffered: a thread that holds the buffered reader's lock would block the interpreter's exit.
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    if os.getpgrp() == os.getpid():
        from headrace.runtime.local_workers import end_session

        end_session(os.getpid(), spare=os.getpid())
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
