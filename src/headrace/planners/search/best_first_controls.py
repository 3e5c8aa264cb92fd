"""Turning the search's hurry while it runs: keys on a terminal, and a signal."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Turn = Callable[[float], None]
"""Called with a factor: 2 for more hurry, 0.5 for less."""


@contextmanager
def controls(turn: Turn) -> Iterator[Callable[[], None]]:
    """Listen for SIGUSR1 and the keys + and -; yields a function that reads the keys pressed since the last call.

    The signal is taken only in the main thread, keys only from a terminal; both are given back at the end.
    """
    with _signalled(turn), _keys() as pressed:

        def read() -> None:
            for key in pressed():
                if key in "+=":
                    turn(2.0)
                elif key in "-_":
                    turn(0.5)

        yield read


@contextmanager
def _signalled(turn: Turn) -> Iterator[None]:
    number = getattr(signal, "SIGUSR1", None)
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, lambda *_: turn(2.0))
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """A function that returns the keys pressed on the terminal; nothing if there is none."""
    settings = _terminal()
    if settings is None:
        yield lambda: ""
        return
    import termios
    import tty

    tty.setcbreak(sys.stdin.fileno())
    try:
        yield _pressed
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, settings)


def _terminal() -> Any:
    """The settings of the terminal that this process reads in the foreground, None without one."""
    try:
        import termios

        if not sys.stdin.isatty() or os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
            return None
        return termios.tcgetattr(sys.stdin.fileno())
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _pressed() -> str:
    """Read from the terminal itself: what Python's own buffer had read ahead would not be seen as waiting."""
    keys = b""
    while select.select([sys.stdin.fileno()], [], [], 0.0)[0]:
        some = os.read(sys.stdin.fileno(), 64)
        if not some:
            break
        keys += some
    return keys.decode("ascii", "ignore")
