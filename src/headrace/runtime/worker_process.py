"""The main program of a local worker: `python -m headrace.runtime.worker_process '{...}'`.

It runs as long as its standard input is open: when the parent process ends, for whatever reason, the
worker and the commands it started end too.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import threading
from typing import Any

_CONFIGURATION = {
    # A paused worker would delay tasks pinned to it; spilling to disk stays on.
    "distributed.worker.memory.pause": False,
    "distributed.worker.http.routes": [],
    # A worker would retry fetching data from a dead one for 30 s; on one machine 3 s are enough.
    "distributed.comm.timeouts.connect": "3s",
}


def main() -> None:
    """Execute tasks until closed."""
    settings = json.loads(sys.argv[1])
    sys.path += [folder for folder in settings["path"] if folder not in sys.path]
    threading.Thread(target=end_with_parent, args=(settings["folder"],), daemon=True).start()
    asyncio.run(_serve(settings))


async def _serve(settings: dict[str, Any]) -> None:
    import dask

    # Set before the engine is loaded, which then sets up its loggers.
    dask.config.set({"logging": {"distributed": "critical"}})
    from distributed import Worker

    import headrace.runtime.bodies  # noqa: F401 - loaded before the first task needs it

    with dask.config.set(_CONFIGURATION):
        async with Worker(
            settings["scheduler"],
            name=settings["name"],
            nthreads=settings["threads"],
            memory_limit=settings["memory"],
            local_directory=settings["folder"],
            host="127.0.0.1",
            dashboard=False,
        ) as worker:
            await worker.finished()


def end_with_parent(folder: str) -> None:
    """Wait until standard input closes, then remove the folder and end this process and all it started."""
    # Unbuffered: a thread that holds the buffered reader's lock would block the interpreter's exit.
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
