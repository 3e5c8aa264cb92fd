"""Commands as tasks: started without a shell, each in its own folder."""

from __future__ import annotations

import math
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from headrace.model.errors import TaskFailed
from headrace.model.program import Command
from headrace.runtime.bodies import materialise, store_output
from headrace.runtime.files import FileData, Scratch, StagedFile
from headrace.runtime.local_command import LocalCommand
from headrace.runtime.task_logs import CommandLog, current_log
from headrace.runtime.timeouts import timed_out

_TAIL = 4000
"""Characters that are shown of what a failed command printed."""
_LOOK_SECONDS = 1.0
"""How often the size of a running command's log is looked at."""


def run_command(
    command: Command,
    task: str,
    inputs: Mapping[str, Any],
    outputs: tuple[str, ...],
    scratch: Scratch,
    timeout: float = math.inf,
) -> tuple[FileData | StagedFile | None, ...]:
    """Run a command with its inputs as files or folders and take its outputs over.

    A task whose only output is its signal writes no file.
    """
    where = f"task {task!r}"
    if not command.argv:
        raise TaskFailed("the command is empty", where=where, hint="name the program to start")
    only_signals = _only_signals(command, task, outputs)
    literal = command.literal
    files = {
        name: _materialise(scratch, name, value, literal)
        for name, value in inputs.items()
        if value is not None
    }
    targets = {} if only_signals else {name: scratch.place(name, literal=literal) for name in outputs}
    argv = list(command.argv) if literal else fill(command.argv, files | targets)
    errors = scratch.root / "printed"
    try:
        status = _run(argv, targets.get(command.stdout or ""), errors, scratch.folder, timeout)
    except (OSError, ValueError) as error:
        raise TaskFailed(
            f"{argv[0]!r} cannot be started: {error}",
            where=where,
            hint="check that it is installed on the worker",
        ) from None
    if status != 0:
        ended = f"signal {-status}" if status < 0 else f"status {status}"
        raise TaskFailed(f"{argv[0]!r} ended with {ended}{_tail(errors)}", where=where)
    if only_signals:
        return (None,)
    for name, path in targets.items():
        if not path.exists():
            raise TaskFailed(
                f"{argv[0]!r} did not write its output {name!r}{_tail(errors)}",
                where=where,
                hint=f"name {name!r} in an argument, or declare it as stdout"
                if literal
                else f"use {{{name}}} in an argument, or declare it as stdout",
            )
    return tuple(store_output(targets[name], name, name, move=True) for name in outputs)


def _run(argv: list[str], output: Path | None, errors: Path, folder: Path, timeout: float) -> int:
    """The exit status of a command. Its standard output goes to `output`, or with its errors to the log of its task.

    The end of the log is then also in `errors`.
    """
    log = current_log()
    with ExitStack() as stack:
        own = stack.enter_context(log.file()) if log is not None else None
        printed = stack.enter_context(errors.open("wb")).fileno() if own is None else own.file
        out = printed if output is None else stack.enter_context(output.open("wb")).fileno()
        try:
            return _wait(argv, out, printed, folder, timeout, own)
        finally:
            if own is not None:
                errors.write_bytes(own.end(4 * _TAIL))
            elif log is not None:
                with errors.open("rb") as file:
                    while piece := file.read(1 << 20):
                        log.write(piece)


def _wait(argv: list[str], out: int, err: int, folder: Path, timeout: float, log: CommandLog | None) -> int:
    """Start a command and wait; after `timeout` seconds it and all that it started are killed."""
    deadline = time.monotonic() + timeout
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, process_group=0
    ) as process:
        while not _has_ended(process, min(_LOOK_SECONDS, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise timed_out(timeout)
            if log is not None:
                log.keep_small()
        return process.wait()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends within this many seconds. `Popen.wait` with a time-out notices it up to 50 ms late."""
    seconds = max(0.0, seconds)
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on Linux
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def fill(argv: tuple[str, ...], files: Mapping[str, Path]) -> list[str]:
    """Arguments with `{item}` replaced by `./file`; other braces are left unchanged.

    >>> fill(("sort", "-k2", "{a}", "--output={b}", "{print}"), {"a": Path("x/1_a"), "b": Path("x/b")})
    ['sort', '-k2', './1_a', '--output=./b', '{print}']
    """
    if not files:
        return list(argv)
    names = "|".join(re.escape(name) for name in sorted(files, key=len, reverse=True))
    pattern = re.compile(f"{{({names})}}")
    return [pattern.sub(lambda m: f"./{files[m[1]].name}", argument) for argument in argv]


def _materialise(scratch: Scratch, name: str, value: Any, literal: bool) -> Path:
    own = isinstance(value, FileData | StagedFile) and not literal
    return materialise(scratch, value.name if own else name, value, literal=literal)


def _only_signals(command: Command, task: str, outputs: tuple[str, ...]) -> bool:
    """Whether the task declared no output: its only item is then a signal, not a file."""
    name = f"{command.task if isinstance(command, LocalCommand) else task}.done"
    if command.literal and not outputs:
        return True
    if outputs != (name,) or command.stdout == name:
        return False
    return not any(f"{{{name}}}" in argument for argument in command.argv)


def _tail(errors: Path) -> str:
    text = errors.read_bytes()[-4 * _TAIL :].decode("utf-8", "replace").strip()
    return f":\n{text[-_TAIL:]}" if text else ""
