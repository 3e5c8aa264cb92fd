"""How users learn that code is compiled: a sentence once in a process, and progress on a terminal."""

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
    """On a terminal, show a text in place of the one before; an empty one leaves the line as it was."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()


@dataclass(frozen=True)
class Notice:
    """How a user learns that code is compiled."""

    tell: Tell = _print_line
    """Called once in a process, with a full sentence."""
    progress: Tell = _overwrite_line
    """Called with how far it is, and with an empty text at the end."""
    every: float = 1.0
    """Seconds between two calls of `progress`, at least."""
    expected_seconds: int = 30
    """How long the command compiles if nothing is in the cache."""


SILENT = Notice(tell=lambda text: None, progress=lambda text: None)

_current = Notice()
_told = False
_shown_at = 0.0


@contextmanager
def compile_notice(notice: Notice) -> Iterator[None]:
    """While this is open, users learn in this way that code is compiled.

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
    """As `compile_notice`, from now on: for worker processes."""
    global _current
    _current = notice


def first_use(expected_seconds: int) -> str:
    """Return the sentence for the first compilation in a process."""
    return (
        f"Compiling (first use; about {expected_seconds} s for this command; "
        "`headrace warmup` does all of it ahead)"
    )


def notify_begin(functions: int, seconds: float) -> None:
    """A function is about to be compiled, the given number in this process after so many seconds."""
    global _told, _shown_at
    now = time.perf_counter()
    if not _told and _current is not SILENT:
        _told, _shown_at = True, now
        _current.tell(first_use(_current.expected_seconds))
    elif now >= _shown_at + _current.every:
        _shown_at = now
        _current.progress(f"Compiling: {functions} functions, {seconds:.0f} s")


def notify_end() -> None:
    """No function is being compiled any more."""
    _current.progress("")
