"""What commands print: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

Say = Callable[[str], None]


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on one line."""
    json.dump(value, sys.stdout, separators=(",", ":"), allow_nan=False)
    sys.stdout.write("\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; loads the library that draws it when it is first needed."""
    from headrace.report.tables import print_table as draw

    draw(headers, rows)


def file_rows(files: Iterable[tuple[str, Path | None]]) -> list[list[str]]:
    """Rows that name the files written.

    >>> file_rows([("chart", Path("plan.svg")), ("trace", None)])
    [['chart', 'plan.svg']]
    """
    return [[name, str(path)] for name, path in files if path is not None]


@contextmanager
def progress(what: str) -> Iterator[Say]:
    """Show on a terminal what is being done and how far it is; elsewhere print a line for each step."""
    if not sys.stderr.isatty():
        yield lambda text: typer.echo(text, err=True)
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda text: status.update(f"{what}: {text}" if text else what)


@contextmanager
def computing(what: str) -> Iterator[Say]:
    """Like `progress`; also tells when loops have to be compiled first."""
    from headrace.arrays.compile_notice import Notice, compile_notice

    with progress(what) as say:
        notice = Notice(tell=say, progress=say) if sys.stderr.isatty() else Notice()
        with compile_notice(notice):
            yield say
