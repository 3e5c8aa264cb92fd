"""What commands print: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from headrace.model.errors import UsageError
from headrace.model.units import show_time

Say = Callable[[str], None]

_level = 0
"""-1: no progress; 1: say how long steps take, and where errors were raised."""


def set_level(*, quiet: bool | None = None, verbose: bool | None = None) -> None:
    """Say less or more from now on; without arguments, as usual."""
    global _level
    if quiet is None and verbose is None:
        _level = 0
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other", hint="leave one out")
    _level = -1 if quiet else 1 if verbose else _level


def is_quiet() -> bool:
    """Whether no progress is shown."""
    return _level < 0


def is_verbose() -> bool:
    """Whether more is said than usual."""
    return _level > 0


def note(text: str) -> None:
    """Print a remark on stderr, unless the user wants none."""
    if not is_quiet():
        typer.echo(text, err=True)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on one line."""
    json.dump(value, sys.stdout, separators=(",", ":"), allow_nan=False)
    sys.stdout.write("\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout; rich is imported on first use."""
    from headrace.report.tables import print_table as draw

    draw(headers, rows)


def require_outputs(
    *files: Path | None, drawn: Iterable[Path | None] = (), inputs: Iterable[str | Path | None] = ()
) -> None:
    """Refuse files that cannot be written, before any work is done; at most one may be stdout (`-`).

    `drawn` are pictures. Two outputs may not have the same name, nor an output that of an input, which would be lost.
    """
    from headrace.formats.files import OTHER_PICTURES, is_stdout, require_svg, require_target

    pictures = [path for path in files if path is not None and path.suffix.lower() in OTHER_PICTURES]
    require_svg(*pictures, *drawn)
    files = (*files, *drawn)
    require_target(*files)
    if sum(is_stdout(path) for path in files) > 1:
        raise UsageError("two files cannot both go to stdout", hint="give one of them a name")
    read = {_place(str(path)) for path in inputs if path is not None and str(path) != "-"}
    written: set[str] = set()
    for path in files:
        if path is None or is_stdout(path):
            continue
        place = _place(str(path))
        if place in read:
            raise UsageError(f"{path} is read and would be overwritten", hint="choose another name")
        if place in written and (Path(place).is_file() or not Path(place).exists()):
            raise UsageError(f"two outputs have the name {path}", hint="choose another name for one of them")
        written.add(place)


def _place(path: str) -> str:
    """Where a file is, without symbolic links and without the name in a Python file.

    >>> _place("/tmp/../flow.py:program")
    '/flow.py'
    """
    file, _, name = path.partition(".py:")
    return os.path.realpath(f"{file}.py" if name else path)


@contextmanager
def results_beside(*files: Path | None) -> Iterator[None]:
    """Print results to stderr while one of the files is stdout (`-`), so that stdout has that file alone."""
    from headrace.formats.files import is_stdout

    with redirect_stdout(sys.stderr) if any(map(is_stdout, files)) else nullcontext():
        yield


def file_rows(files: Iterable[tuple[str, Path | None]]) -> list[list[str]]:
    """Rows that name the files written.

    >>> file_rows([("chart", Path("plan.svg")), ("trace", None)])
    [['chart', 'plan.svg']]
    """
    return [[name, str(path)] for name, path in files if path is not None]


@contextmanager
def progress(what: str) -> Iterator[Say]:
    """Show progress on a terminal; elsewhere print a line for each step. Says how long it took if that is wanted."""
    begun = time.monotonic()
    if is_quiet():
        yield lambda text: None
    elif not sys.stderr.isatty():
        yield lambda text: typer.echo(text, err=True)
    else:
        from rich.console import Console

        with Console(stderr=True).status(what) as status:
            yield lambda text: status.update(f"{what}: {text}" if text else what)
    if is_verbose():
        typer.echo(f"{what}: {show_time(time.monotonic() - begun)}", err=True)


@contextmanager
def computing(what: str, compile_seconds: int = 30) -> Iterator[Say]:
    """Like `progress`; also says when code has to be compiled first, and how long that takes."""
    from headrace.arrays.compile_notice import SILENT, Notice, compile_notice

    with progress(what) as say:
        notice = Notice(tell=say, progress=say) if sys.stderr.isatty() else Notice()
        with compile_notice(SILENT if is_quiet() else replace(notice, expected_seconds=compile_seconds)):
            yield say
