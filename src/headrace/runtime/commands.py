"""Commands as tasks: started without a shell, each in its own folder."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from headrace.model.errors import TaskFailed
from headrace.model.program import Command
from headrace.runtime.files import FileData, Scratch
from headrace.runtime.task_logs import current_log
from headrace.runtime.timeouts import timed_out

_TAIL = 4000
"""Characters of a failed command's stderr that are shown."""


def run_command(
    command: Command,
    task: str,
    inputs: Mapping[str, Any],
    outputs: tuple[str, ...],
    scratch: Scratch,
    timeout: float = math.inf,
) -> tuple[FileData | None, ...]:
    """Run a command with its inputs as files and read its outputs back.

    A task whose only output is its signal writes no file.
    """
    where = f"task {task!r}"
    if not command.argv:
        raise TaskFailed("the command is empty", where=where, hint="name the program to start")
    only_signals = _only_signals(command, task, outputs)
    files = {name: _materialise(scratch, name, value) for name, value in inputs.items() if value is not None}
    targets = {} if only_signals else {name: scratch.place(name) for name in outputs}
    argv = fill(command.argv, files | targets)
    errors = scratch.root / "stderr"
    printed = targets[command.stdout] if command.stdout in targets else scratch.root / "stdout"
    try:
        with printed.open("wb") as out, errors.open("wb") as err:
            status = _run(argv, out, err, scratch.folder, timeout)
    except (OSError, ValueError) as error:
        raise TaskFailed(
            f"{argv[0]!r} cannot be started: {error}",
            where=where,
            hint="check that it is installed on the worker",
        ) from None
    finally:
        for path in (errors,) if command.stdout in targets else (printed, errors):
            _to_log(path)
    if status != 0:
        ended = f"signal {-status}" if status < 0 else f"status {status}"
        raise TaskFailed(f"{argv[0]!r} ended with {ended}{_tail(errors)}", where=where)
    if only_signals:
        return (None,)
    for name, path in targets.items():
        if not path.is_file():
            raise TaskFailed(
                f"{argv[0]!r} did not write its output {name!r}{_tail(errors)}",
                where=where,
                hint=f"use {{{name}}} in an argument, or declare it as stdout",
            )
    return tuple(FileData(name, targets[name].read_bytes()) for name in outputs)


def _run(argv: list[str], out: IO[bytes], err: IO[bytes], folder: Path, timeout: float) -> int:
    """The exit status of a command; after `timeout` seconds it and all it started are killed."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, process_group=0
    ) as process:
        try:
            return process.wait(None if timeout == math.inf else timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise timed_out(timeout) from None


def _to_log(path: Path) -> None:
    """Copy what a command printed to the log of its task, in pieces."""
    log = current_log()
    if log is None or not path.is_file():
        return
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            log.write(piece)


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


def _materialise(scratch: Scratch, name: str, value: Any) -> Path:
    return scratch.write(value.name if isinstance(value, FileData) else name, value)


def _only_signals(command: Command, task: str, outputs: tuple[str, ...]) -> bool:
    """Whether the task declared no output: its only item is then a signal, not a file."""
    name = f"{task}.done"
    if outputs != (name,) or command.stdout == name:
        return False
    return not any(f"{{{name}}}" in argument for argument in command.argv)


def _tail(errors: Path) -> str:
    text = errors.read_bytes()[-4 * _TAIL :].decode("utf-8", "replace").strip()
    return f":\n{text[-_TAIL:]}" if text else ""
