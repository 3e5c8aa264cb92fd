"""Runs that the page starts, and runs of the record that it watches."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError, UsageError
from headrace.ui.feed import Feed

PAUSE = 0.3
"""Seconds between two looks at the record, while a page is open."""
SAMPLE = 1.0
"""Seconds between two samples of the CPU and memory of workers."""
MOST_RUNS = 4
_ATTEMPTS = 20
_PIECE = 200_000
"""Bytes of a log that are sent at once."""
_TOLD = 2_000
"""Characters of what a failed command said that are passed on."""


@dataclass(frozen=True)
class RunRequest:
    """What to run; files are relative to the folder of the page."""

    program: str
    scheduler: str = "auto"
    execute: bool = False
    """The page has said what will be executed, and the user has agreed."""
    emulate: bool = False
    time_scale: float = 1.0


class Launcher:
    """Starts `headrace run` in processes of their own, which go on if the page ends."""

    def __init__(self, root: Path, path: Callable[[str], Path], feed: Feed) -> None:
        self._root, self._path, self._feed = root, path, feed
        self._running: set[int] = set()

    def start(self, request: RunRequest) -> dict[str, Any]:
        """Start a run; its end is an event, and its progress is in the record."""
        command = self._command(request)
        if len(self._running) >= MOST_RUNS:
            raise UsageError(f"{MOST_RUNS} runs have been started here", hint="wait for one of them")
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        # Of a session of its own: Ctrl-C in the terminal of the page does not end it.
        process = subprocess.Popen(
            command,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        self._running.add(process.pid)
        threading.Thread(target=self._wait, args=(process, said), daemon=True).start()
        threading.Thread(target=self._sample, args=(process,), daemon=True).start()
        return {"process": process.pid, "command": command[3:]}

    def _command(self, request: RunRequest) -> list[str]:
        from headrace.planners.registry import ENTRIES

        if not request.execute:
            raise UsageError(f"the tasks of {request.program} would be executed", hint="allow it")
        if request.scheduler not in {"dask", *(entry.name for entry in ENTRIES)}:
            raise UsageError(f"there is no scheduler {request.scheduler!r}", hint="headrace schedulers")
        if not 0 < request.time_scale <= 1e6:
            raise UsageError(f"the factor on run times is {request.time_scale}", hint="such as 0.1")
        file, colon, name = request.program.partition(":")
        # An absolute path cannot be taken for an option.
        spec = f"{self._path(file)}{colon}{name}"
        command = [sys.executable, "-m", "headrace.cli", "run", spec, "--scheduler", request.scheduler]
        return command + (["--emulate", "--time-scale", str(request.time_scale)] if request.emulate else [])

    def _sample(self, process: subprocess.Popen[bytes]) -> None:
        """Publish what the workers of a run take, as long as it lasts."""
        from headrace.ui.worker_load import WorkerLoad

        load = WorkerLoad(process.pid)
        while process.poll() is None:
            workers, changes = load.look()
            if workers or changes:
                values = {"process": process.pid, "workers": workers, "changes": changes}
                self._feed.publish("load", values)
            time.sleep(SAMPLE)

    def _wait(self, process: subprocess.Popen[bytes], said: Any) -> None:
        code = process.wait()
        self._running.discard(process.pid)
        with said:
            said.seek(0)
            text = said.read().decode(errors="replace")[-_TOLD:]
        told = text if code else ""
        self._feed.publish("ended", {"process": process.pid, "code": code, "said": told})


class Watch:
    """Looks at the record and publishes what has changed in runs, as long as a page listens.

    An event names a run and how many executions and transfers of it are recorded; pages ask for the rest.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._seen: dict[str, tuple[str, int, int]] = {}
        self._looked = False
        self._listening = 0
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def listened(self) -> AsyncIterator[None]:
        """Look at the record for as long as the block lasts; one look serves all pages."""
        self._listening += 1
        if self._task is None:
            self._task = asyncio.create_task(self._loop())
        try:
            yield
        finally:
            self._listening -= 1
            if self._listening == 0 and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _loop(self) -> None:
        while True:
            with contextlib.suppress(HeadraceError):  # a record that is busy or broken: shown when asked for
                await asyncio.to_thread(self.look)
            await asyncio.sleep(PAUSE)

    def look(self) -> None:
        """Compare the latest runs with what was published: O(log of the record + rows of running runs)."""
        from headrace.record import Record

        with Record.open() as record:
            latest = record.database.rows(
                "SELECT id, status,"
                " CASE status WHEN 'running' THEN (SELECT count(*) FROM tasks WHERE run = id) ELSE -1 END,"
                " CASE status WHEN 'running' THEN (SELECT count(*) FROM transfers WHERE run = id) ELSE -1 END"
                " FROM runs ORDER BY started DESC, id DESC LIMIT 20"
            )
        first, self._looked = not self._looked, True
        for run, status, tasks, transfers in latest[::-1]:
            now = (str(status), int(tasks), int(transfers))
            if self._seen.get(run) != now and not (first and status != "running"):
                values = {"run": run, "status": now[0], "tasks": now[1], "transfers": now[2]}
                self._feed.publish("run", values)
            self._seen[run] = now


def stop_run(run: str) -> dict[str, str]:
    """Ask the process of a run to end it."""
    from headrace.record import Record

    with Record.open() as record:
        name = record.run(run).id
        record.cancel(name)
    return {"run": name}


def finished_since(run: str, after: int) -> dict[str, Any]:
    """The executions of a run that were recorded after a row: O(rows of the run), without reading its plan."""
    from headrace.record import Record

    with Record.open() as record:
        row = record.run(run)
        found = record.database.rows(
            "SELECT seq, task, host, start, finish FROM tasks WHERE run = ? AND seq > ? AND status = 'done'"
            " AND start IS NOT NULL ORDER BY seq LIMIT 20000",
            (row.id, after),
        )
    last = int(found[-1][0]) if found else after
    return {"status": row.status, "last": last, "rows": [list(one[1:]) for one in found]}


def log_of(run: str, task: str, seen: Mapping[str, int]) -> dict[str, Any]:
    """What a task has printed since the page has last asked: attempts with the bytes that it has `seen` of each."""
    from headrace.record import Record
    from headrace.runtime.task_logs import find_logs

    with Record.open() as record:
        row = record.run(run)
        found = find_logs(record.logs_folder(row.id), task)
    pieces = []
    for log in found[-_ATTEMPTS:]:
        begin = min(max(0, seen.get(str(log.attempt), 0)), 2**40)
        with contextlib.suppress(OSError):
            new = log.read(begin)[:_PIECE]
            end = begin + len(new)
            text = new.decode(errors="replace")
            pieces.append({"attempt": log.attempt, "host": log.host, "text": text, "end": end})
    return {"status": row.status, "pieces": pieces}
