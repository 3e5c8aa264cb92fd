"""Identity of runs and programs: run ids, program digests, and liveness of runs."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from headrace.model.graph import Graph


def time_stamp(seconds: float) -> str:
    """The prefix of a run's id: its start time, so that ids sort by time.

    >>> time_stamp(0)
    '19700101-000000'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d-%H%M%S")


def program_digest(graph: Graph) -> str:
    """A digest of a program's tasks, kinds and data flow, independent of run times and sizes.

    O(tasks + reads).
    """
    digest = hashlib.sha256()
    for names in (graph.task_names, graph.item_names, graph.kinds):
        digest.update(json.dumps(list(names)).encode())
    for numbers in (graph.kind, graph.producer, graph.read_ptr, graph.reads):
        digest.update(numbers.astype("<i4").tobytes() + b";")
    digest.update(graph.result.tobytes())
    return digest.hexdigest()[:32]


class LifeSign:
    """A file lock held during a run; the operating system releases it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # left by a process that was killed
            self._stop.unlink()

    def end(self) -> None:
        for path in (self._stop, self.path):
            with suppress(FileNotFoundError):
                path.unlink()
        os.close(self._file)

    @property
    def asked_to_stop(self) -> bool:
        """Whether another process has called `ask_to_stop`."""
        return self._stop.exists()

    @property
    def _stop(self) -> Path:
        return _stop_sign(self.path)

    @staticmethod
    def ask_to_stop(path: Path) -> None:
        """Leave a sign for the process that holds the lock."""
        _stop_sign(path).touch(mode=0o600)

    @staticmethod
    def seen(path: Path) -> bool:
        """Whether a process holds the lock."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False


def _stop_sign(path: Path) -> Path:
    return path.with_name(f"{path.name}.stop")
