"""Compile everything ahead, on all cores, so that no command has to."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import re
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from io import StringIO
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import typer

from headrace.arrays.clock import compile_seconds
from headrace.arrays.source_digest import ROOT, package_digest
from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption, ProcessesOption
from headrace.commands.warmup_workloads import WORKLOADS, Workload, write_inputs
from headrace.model.errors import HeadraceError

_OURS = "headrace."
_POLL_SECONDS = 0.2
_DECORATED = re.compile(r"^@(?:entry|inner|inlined|leaf)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Warmed:
    """What one workload had to compile."""

    name: str
    functions: int
    compile_seconds: float
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Warmup:
    """What a warmup did; nothing if all was compiled before."""

    folder: str
    was_warm: bool
    seconds: float
    workloads: tuple[Warmed, ...] = ()

    @property
    def failed(self) -> tuple[Warmed, ...]:
        return tuple(done for done in self.workloads if done.error)

    @property
    def functions(self) -> int:
        return sum(done.functions for done in self.workloads)

    def json(self) -> dict[str, Any]:
        """As `headrace warmup --json` prints it."""
        return asdict(self) | {"functions": self.functions}

    def summary(self) -> str:
        """One line for people."""
        if self.was_warm:
            return f"warm: everything is compiled already, in {self.folder}"
        if not self.functions:
            return f"warm: all compiled code was found in {self.folder}, checked in {self.seconds:.1f} s"
        return f"compiled {self.functions} functions in {self.seconds:.0f} s, kept in {self.folder}"


def warm_up(workers: int | None = None) -> Warmup:
    """Run all workloads in worker processes, unless that was done before with this source on this machine.

    Args:
        workers: Processes; one for each core if None.

    Raises:
        HeadraceError: Compiled code cannot be kept: no folder can be written to.
    """
    from headrace.arrays.code_cache import cache_root, prune

    began = time.perf_counter()
    root = cache_root()
    if root is None:
        raise HeadraceError(
            "compiled code cannot be kept", hint="set HEADRACE_CACHE_DIR to a folder that you can write to"
        )
    prune()
    stamp = root / f"warm-{_digest()[:24]}.json"
    if _is_warm(stamp):
        return Warmup(str(root), True, time.perf_counter() - began)
    with _inputs() as folder:
        done = tuple(_run_all(WORKLOADS, workers or os.cpu_count() or 1, folder))
    made = Warmup(str(root), False, time.perf_counter() - began, done)
    if not made.failed:
        stamp.write_text(json.dumps({path.name: _entries(path) for path in root.iterdir() if path.is_dir()}))
    return made


def _digest() -> str:
    """Of all that decides what is compiled and for which machine."""
    import llvmlite.binding as llvm

    from headrace.arrays.code_cache import VERSIONS

    return package_digest(
        *VERSIONS, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), platform.python_version()
    )


def _is_warm(stamp: Path) -> bool:
    """Whether a warmup has finished and all that it left is still there."""
    try:
        left: dict[str, int] = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return False
    folders = [stamp.parent / name for name in left]
    if any(_entries(folder) < count for folder, count in zip(folders, left.values(), strict=True)):
        return False
    for used in (stamp, *folders):
        os.utime(used)
    return True


def _entries(folder: Path) -> int:
    with suppress(OSError):
        return sum(1 for _ in folder.glob("*.nbc"))
    return 0


@contextmanager
def _inputs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headrace-warmup-") as name:
        write_inputs(Path(name))
        yield Path(name)


def _run_all(workloads: tuple[Workload, ...], workers: int, folder: Path) -> Iterator[Warmed]:
    context = multiprocessing.get_context("spawn")
    count = context.Value("i", 0)
    workers = min(workers, len(workloads))
    with _progress() as show, ProcessPoolExecutor(workers, context, _begin_worker, (count, folder)) as pool:
        running: set[Future[Warmed]] = {pool.submit(run_workload, workload) for workload in workloads}
        try:
            while running:
                ended, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
                show(count.value, len(running))
                yield from (future.result() for future in ended)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_compiled: Synchronized[int] | None = None
"""In a worker: how many functions all workers have compiled together."""


def _begin_worker(count: Synchronized[int], folder: Path) -> None:
    """Leave interrupts to the parent, work on the inputs alone, and count what is compiled."""
    global _compiled
    from headrace.arrays.compile_notice import Notice, set_notice

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir(folder)
    os.environ["HEADRACE_HOME"] = str(folder / "record")  # real runs leave nothing in the user's record
    _compiled = count
    set_notice(Notice(tell=_count, progress=_count, every=0.0))


def _count(text: str) -> None:
    if _compiled is not None and text:
        with _compiled.get_lock():
            _compiled.value += 1


def run_workload(workload: Workload) -> Warmed:
    """Run the commands of a workload in this process; what they print is only kept for an error message."""
    from headrace.arrays.compiling import LOG
    from headrace.cli import run_command

    began, compiled_before, before = time.perf_counter(), compile_seconds(), len(LOG.compiled)
    error = ""
    for command in workload.commands:
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                run_command(shlex.split(command))
        except Exception as raised:  # one broken command must not keep the others from being compiled
            error = f"{command}: {type(raised).__name__}: {raised}"
    ours = sum(name.startswith(_OURS) for name in LOG.compiled[before:])
    return Warmed(
        workload.name, ours, compile_seconds() - compiled_before, time.perf_counter() - began, error
    )


@contextmanager
def _progress() -> Iterator[Any]:
    """A bar on stderr: how many of the functions in the source are compiled."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    total = sum(len(_DECORATED.findall(path.read_text(encoding="utf-8"))) for path in ROOT.rglob("*.py"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty()
    if not terminal:
        print(
            f"Compiling about {total} functions; this takes one to two minutes.", file=sys.stderr, flush=True
        )
    with Progress(*columns, console=Console(stderr=True), disable=not terminal, transient=True) as bar:
        line = bar.add_task("compiling", total=total)
        yield lambda count, left: bar.update(
            line, completed=min(count, total), description=f"compiling, {left} of {len(WORKLOADS)} parts left"
        )


def warmup(
    workers: ProcessesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile what is not in the cache yet, and say what that was."""
    done = warm_up(workers)
    if as_json:
        print_json(done.json())
    else:
        if done.functions:
            rows = [[d.name, str(d.functions), f"{d.compile_seconds:.1f} s"] for d in done.workloads]
            print_table(["part", "functions compiled", "compiling"], rows)
        typer.echo(done.summary())
    for failure in done.failed:
        typer.echo(f"error: {failure.name}: {failure.error}", err=True)
    if done.failed:
        raise typer.Exit(1)
