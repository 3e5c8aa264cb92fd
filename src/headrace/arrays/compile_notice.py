"""Notify the user that code is being compiled: one message per process, and progress on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Tell = Callable[[str], None]


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _overwrite_line(text: str) -> None:
    """On a terminal, replace the current line with a text; an empty text clears it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()


@dataclass(frozen=True)
class Notice:
    """How the user is notified that code is being compiled."""

    tell: Tell = _print_line
    """Called once per process, with a full sentence."""
    progress: Tell = _overwrite_line
    """Called with progress messages, and with an empty text at the end."""
    every: float = 1.0
    """Minimum seconds between two calls of `progress`."""
    expected_seconds: int = 30
    """Expected compile time of the command in seconds if the cache is empty."""


SILENT = Notice(tell=lambda text: None, progress=lambda text: None)

_current = Notice()
_told = False
_shown_at = 0.0


@contextmanager
def compile_notice(notice: Notice) -> Iterator[None]:
    """Use this notice within the context.

    >>> with compile_notice(SILENT):
    ...     notify_begin(1, 0.0)
    """
    global _current
    before, _current = _current, notice
    try:
        yield
    finally:
        _current = before


def set_notice(notice: Notice) -> None:
    """Use this notice from now on; for worker processes."""
    global _current
    _current = notice


def first_use(expected_seconds: int) -> str:
    """Return the message for the first compilation in a process."""
    return (
        f"Compiling (first use; about {expected_seconds} s for this command; "
        "`headrace warmup` compiles everything in advance)"
    )


def notify_begin(functions: int, seconds: float) -> None:
    """Report that a function is about to be compiled.

    Args:
        functions: Number of functions compiled by this process so far, including this one.
        seconds: Seconds that this process has spent compiling so far.
    """
    global _told, _shown_at
    now = time.perf_counter()
    if not _told and _current is not SILENT:
        _told, _shown_at = True, now
        _current.tell(first_use(_current.expected_seconds))
    elif now >= _shown_at + _current.every:
        _shown_at = now
        _current.progress(f"Compiling: {functions} functions, {seconds:.0f} s")


def notify_end() -> None:
    """Report that compilation has finished."""
    _current.progress("")
