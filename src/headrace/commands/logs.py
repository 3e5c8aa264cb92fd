"""`headrace logs`: what the tasks of a run have printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption, number_parser
from headrace.model.errors import UsageError
from headrace.model.units import show_size
from headrace.record import Record
from headrace.runtime.task_logs import LogFile, all_logs, find_logs

_POLL_SECONDS = 0.3

_attempt = number_parser(int, "--attempt", 1)


def logs(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A recorded run, or `last`.", show_default=False)
    ],
    task: Annotated[
        str | None,
        typer.Argument(metavar="[TASK]", help="Without it, list the logs of the run.", show_default=False),
    ] = None,
    attempt: Annotated[
        int | None,
        typer.Option(
            "--attempt",
            metavar="N",
            help="Only this attempt.",
            parser=_attempt,
            show_default="all",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing while the run lasts.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what a task of a run has printed, attempt by attempt."""
    if follow and (task is None or as_json):
        raise UsageError("--follow needs a task, and cannot be combined with --json", hint="name a task")
    with Record.open() as record:
        run = _run_named(record, run_id)
        folder = record.logs_folder(run)
        if task is None:
            _list(all_logs(folder), as_json)
            return
        name = task
        _require_task(record, run, name, follow)

        def found() -> list[LogFile]:
            return [log for log in find_logs(folder, name) if attempt in (None, log.attempt)]

        if follow:
            for piece in followed(found, lambda: record.run(run).status == "running"):
                _write(piece)
        elif as_json:
            _print_json(found())
        else:
            _print(found())


def followed(
    found: Callable[[], list[LogFile]], live: Callable[[], bool], pause: float = _POLL_SECONDS
) -> Iterator[bytes]:
    """What is printed, as it comes, until the run has ended; then the rest."""
    shown: dict[int, int] = {}
    last = -1
    while True:
        running = live()  # asked first: what is printed before the end is then found
        for log in found():
            new = log.read(shown.get(log.attempt, 0))
            if new and log.attempt != last:
                last = log.attempt
                yield _heading(log)
            shown[log.attempt] = shown.get(log.attempt, 0) + len(new)
            yield new
        if not running:
            return
        time.sleep(pause)


def _run_named(record: Record, run: str) -> str:
    if run.lower() == "last":
        every = record.runs()
        if not every:
            raise UsageError("there is no run yet", where=str(record.folder), hint="run a program first")
        return every[-1].id
    return record.run(run).id


def _require_task(record: Record, run: str, task: str, may_come: bool) -> None:
    """Refuse names that are not tasks, as far as the record tells: without a plan it knows only tasks that ran."""
    planned = {row.task for row in record.planned(run)}
    known = planned | {row.task for row in record.tasks(run)}
    if task not in known and (planned or not may_come):
        raise UsageError(
            f"run {run} has no task {task!r}", hint=f"`headrace runs {run}` lists those that have run"
        )


def _list(found: list[LogFile], as_json: bool) -> None:
    rows = [(log.task, log.attempt, log.host, log.path.stat().st_size, str(log.path)) for log in found]
    if as_json:
        headers = ("task", "attempt", "host", "bytes", "file")
        print_json({"logs": [dict(zip(headers, row, strict=True)) for row in rows]})
        return
    if not rows:
        typer.echo("no task of the run has printed anything", err=True)
        return
    print_table(["task", "attempt", "host", "size"], [[t, str(n), h, show_size(b)] for t, n, h, b, _ in rows])


def _print(found: list[LogFile]) -> None:
    if not found:
        typer.echo("the task printed nothing", err=True)
    for log in found:
        _write((_heading(log) if len(found) > 1 else b"") + log.read())


def _print_json(found: list[LogFile]) -> None:
    print_json(
        {
            "logs": [
                {
                    "task": log.task,
                    "attempt": log.attempt,
                    "host": log.host,
                    "text": log.read().decode("utf-8", "replace"),
                }
                for log in found
            ]
        }
    )


def _heading(log: LogFile) -> bytes:
    return f"--- attempt {log.attempt} on {log.host}\n".encode()


def _write(content: bytes) -> None:
    sys.stdout.write(content.decode("utf-8", "replace"))
    sys.stdout.flush()
