"""End what a run has left behind on workers: commands whose run was given up."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any


def end_commands(token: str, dask_worker: Any) -> int:
    """On a worker: kill the processes that tasks of a run have started; returns how many.

    The keys of a run end with its token in their first part. Linux only: elsewhere nothing is found.
    """
    native = {thread.ident: thread.native_id for thread in threading.enumerate()}
    ended = 0
    for ident, key in list(dask_worker.active_threads.items()):
        if not (isinstance(key, tuple) and str(key[0]).endswith(token)):
            continue
        for child in _children(native.get(ident)):
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(child) == child:
                    os.killpg(child, signal.SIGKILL)
                else:
                    os.kill(child, signal.SIGKILL)
                ended += 1
    return ended


def _children(thread: int | None) -> list[int]:
    """The processes that a thread of this process has started and that have not been waited for."""
    with suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/self/task/{thread}/children").read_text().split()]
    return []
