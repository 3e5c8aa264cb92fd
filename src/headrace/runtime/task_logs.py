"""What tasks print: standard output, standard error and logging, kept for each execution of a task.

`sys.stdout` and `sys.stderr` of a worker become streams that also write to the log of the task that this thread
executes. Python's logging writes to them unless the program sends it elsewhere. What a thread prints that a task
started belongs to the task if no other runs in the process. Nothing is created for a task that prints nothing.

A local worker writes to a file in the run's folder as it goes, so that it can be followed and survives a crash. Others
keep the log in memory and send it to the client when the task ends.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from headrace.runtime.crash_notes import digest_of

LIMIT = 1_000_000
"""Bytes kept of what one execution prints: the first half of them, and the last."""
SHIPPED = 100_000
"""The same for logs that are sent through the engine's scheduler."""
_NAME = 150
_MOST = 100_000

_current = threading.local()
_active: list[TaskLog] = []
_installing = threading.Lock()


@dataclass(frozen=True, slots=True)
class CommandLog:
    """The log of a running command."""

    file: int
    """A descriptor with which all writes go to the end."""
    path: Path
    header: int
    """Bytes before what is printed."""
    limit: int

    def keep_small(self) -> None:
        """Cut the middle out when the file has become much larger than it may be."""
        _trim(self.path, self.header, self.limit, 4 * self.limit)

    def end(self, size: int) -> bytes:
        """The last bytes that were printed."""
        with self.path.open("rb") as file:
            file.seek(max(self.header, file.seek(0, os.SEEK_END) - size))
            return file.read()


class TaskLog:
    """The log of one execution: the first half of `limit` bytes, a note of what was left out, and the last half.

    >>> log = TaskLog("t", limit=20)
    >>> log.write(b"0123456789abcdefghijklmnopqrstuvwxyz")
    >>> log.close()
    b'0123456789\\n[16 bytes left out]\\nqrstuvwxyz'
    """

    __slots__ = (
        "_dropped", "_file", "_half", "_head", "_lock", "_tail", "_written", "attempt", "folder", "host", "task",
    )  # fmt: skip

    def __init__(
        self, task: str, folder: str = "", host: str = "", attempt: int = 1, limit: int = LIMIT
    ) -> None:
        self.task = task
        self.folder = folder
        self.host = host
        self.attempt = attempt
        self._half = limit // 2
        self._head = bytearray()
        """What is not in a file."""
        self._tail = bytearray()
        self._written = self._dropped = 0
        self._file: int | None = None
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Add bytes; thread-safe. O(len(data))."""
        with self._lock:
            room = max(0, self._half - self._written)
            if room and data:
                self._keep(data[:room])
                self._written += len(data[:room])
            self._tail += data[room:]
            if len(self._tail) > 2 * self._half:
                self._drop_middle()

    def _drop_middle(self) -> None:
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def _keep(self, data: bytes) -> None:
        if self.folder and self._file is None:
            with suppress(OSError):
                self._file, _ = create_log(Path(self.folder), self.task, self.host, self.attempt)
        if self._file is None:
            self._head += data
        else:
            with suppress(OSError):  # a full disk must not fail the task
                os.write(self._file, data)

    @contextmanager
    def file(self) -> Iterator[CommandLog | None]:
        """The log as a file for a command to print to; None if it is in memory."""
        if not self.folder:
            yield None
            return
        file, path = create_log(Path(self.folder), self.task, self.host, self.attempt)
        header = path.stat().st_size
        try:
            yield CommandLog(file, path, header, 2 * self._half)
        finally:
            os.close(file)
            _trim(path, header, 2 * self._half, 2 * self._half)
            if path.stat().st_size == header:
                path.unlink()

    def close(self) -> bytes:
        """Complete the log; returns what is not in a file."""
        with self._lock:
            self._drop_middle()
            if self._dropped:
                self._keep(f"\n[{self._dropped} bytes left out]\n".encode())
            if self._tail:
                self._keep(bytes(self._tail))
                self._tail.clear()
            if self._file is not None:
                os.close(self._file)
                self._file = None
            return bytes(self._head)


class _TaskStream(io.TextIOBase):
    """A standard stream that also writes to the log of the task of this thread."""

    def __init__(self, original: Any) -> None:
        self._original = original
        self.buffer = _TaskBuffer(original)

    def write(self, text: str) -> int:
        log = _log_here()
        if log is not None:
            log.write(text.encode("utf-8", "backslashreplace"))
        try:
            self._original.write(text)
        except UnicodeEncodeError:
            self._original.write(text.encode("ascii", "backslashreplace").decode())
        return len(text)

    def flush(self) -> None:
        self._original.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return int(self._original.fileno())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


class _TaskBuffer(io.RawIOBase):
    """The same for bytes."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def write(self, data: Any) -> int:
        log = _log_here()
        if log is not None:
            log.write(bytes(data))
        self._original.buffer.write(data)
        return len(data)

    def flush(self) -> None:
        self._original.flush()

    def writable(self) -> bool:
        return True


def _log_here() -> TaskLog | None:
    log: TaskLog | None = getattr(_current, "log", None)
    if log is None and len(_active) == 1:
        with suppress(IndexError):  # it may just have ended
            return _active[0]
    return log


class captured:  # noqa: N801 - used like a function
    """Context in which what this thread prints goes to a log as well.

    >>> log = TaskLog("t")
    >>> with captured(log):
    ...     print("hello")
    hello
    >>> log.close()
    b'hello\\n'
    """

    __slots__ = ("_before", "_log")

    def __init__(self, log: TaskLog) -> None:
        self._log = log

    def __enter__(self) -> None:
        if not isinstance(sys.stdout, _TaskStream) or not isinstance(sys.stderr, _TaskStream):
            _install()
        self._before = getattr(_current, "log", None)
        _current.log = self._log
        _active.append(self._log)

    def __exit__(self, *_: object) -> None:
        _active.remove(self._log)
        _current.log = self._before


def join_log(log: TaskLog | None) -> None:
    """In a thread that works for a task: what it prints belongs to the task."""
    _current.log = log


def current_log() -> TaskLog | None:
    """The log of the task that this thread executes."""
    return getattr(_current, "log", None)


def _install() -> None:
    with _installing:
        if not isinstance(sys.stdout, _TaskStream):
            sys.stdout = _TaskStream(sys.stdout)
        if not isinstance(sys.stderr, _TaskStream):
            sys.stderr = _TaskStream(sys.stderr)


@dataclass(frozen=True, slots=True)
class LogFile:
    """The log of one execution of a task."""

    path: Path
    task: str
    attempt: int

    @property
    def host(self) -> str:
        """Where it ran: the first line of the file."""
        with self.path.open("rb") as file:
            return file.readline(1000).decode("utf-8", "replace").strip()

    def read(self, start: int = 0) -> bytes:
        """What was printed, from this position on."""
        with self.path.open("rb") as file:
            file.readline(1000)
            file.seek(start, os.SEEK_CUR)
            return file.read(4 * LIMIT)


def create_log(folder: Path, task: str, host: str, attempt: int = 1) -> tuple[int, Path]:
    """Create the file of an execution, readable only by this user; a further one takes the next number.

    Returns its descriptor, with which all writes go to the end, and its path.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    stem = log_stem(task)
    for number in range(attempt, attempt + _MOST):
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            path = folder / f"{stem}.{number}.log"
            file = os.open(path, flags, 0o600)
            os.write(file, quote(host, safe=" :/")[:500].encode() + b"\n")
            return file, path
    raise OSError(f"{task!r} has too many logs")


def store_log(folder: Path, task: str, host: str, attempt: int, content: bytes) -> None:
    """Write a log that a worker has sent."""
    with os.fdopen(create_log(folder, task, host, attempt)[0], "wb") as file:
        file.write(content[: 2 * LIMIT])


def _trim(path: Path, header: int, limit: int, allowed: int) -> None:
    """Cut the middle out of a log of more than `allowed` bytes; a command may still be adding to its end."""
    if path.stat().st_size - header <= allowed:
        return
    with path.open("r+b") as file:
        head = file.read(header + limit // 2)
        size = file.seek(-(limit // 2), os.SEEK_END) + limit // 2
        tail = file.read()
        file.truncate(len(head))
        file.seek(0, os.SEEK_END)
        file.write(f"\n[{size - len(head) - limit // 2} bytes left out]\n".encode() + tail)


def log_stem(task: str) -> str:
    """A file name for a task, whatever its name; names too long end in a digest.

    >>> log_stem("a/../b.c"), len(log_stem("x" * 1000))
    ('a%2F%2E%2E%2Fb%2Ec', 150)
    """
    stem = quote(task.encode("utf-8", "surrogatepass"), safe="").replace(".", "%2E")
    if len(stem) <= _NAME:
        return stem
    return f"{stem[: _NAME - 33]}~{digest_of(task)}"


def find_logs(folder: Path, task: str) -> list[LogFile]:
    """The logs of a task in a run's folder, in the order of its attempts."""
    stem = log_stem(task)
    numbers = [path.name[len(stem) + 1 : -4] for path in folder.glob(f"{stem}.*.log")]
    return [
        LogFile(folder / f"{stem}.{number}.log", task, number)
        for number in sorted(int(text) for text in numbers if text.isdecimal())
    ]


def all_logs(folder: Path) -> list[LogFile]:
    """The logs of a run, by task and attempt. Names of tasks that are too long end in a digest."""
    found = []
    for path in folder.glob("*.*.log"):
        stem, number, _ = path.name.split(".")
        if number.isdecimal():
            found.append(LogFile(path, unquote(stem), int(number)))
    return sorted(found, key=lambda log: (log.task, log.attempt))
