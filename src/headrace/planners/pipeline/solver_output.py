"""What a solver's library writes to the standard output by itself is left out: output there is for the user.

HiGHS 1.12 writes a line for each solution that it repairs, whatever its options say.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

_UNWANTED = b"HighsMipSolverData::"
_lock = threading.Lock()
_depth = 0
_saved = -1
_kept: IO[bytes] | None = None


@contextmanager
def without_messages() -> Iterator[None]:
    """Leave out the solver's own lines; whatever else is written meanwhile, also by other threads, appears at the end.

    >>> with without_messages():
    ...     _ = os.write(1, b"")
    """
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _depth, _saved, _kept
    with _lock:
        _depth += 1
        if _depth > 1:
            return
        try:
            _flush()
            _kept = tempfile.TemporaryFile()  # noqa: SIM115  # closed in _end
            _saved = os.dup(1)
            os.dup2(_kept.fileno(), 1)
        except OSError:  # no standard output, or no room for what is written to it
            _saved = -1


def _end() -> None:
    global _depth, _saved, _kept
    with _lock:
        _depth -= 1
        if _depth or _saved < 0:
            return
        _flush()
        os.dup2(_saved, 1)
        os.close(_saved)
        _saved = -1
        assert _kept is not None
        _kept.seek(0)
        wanted = [line for line in _kept if not line.startswith(_UNWANTED)]
        _kept.close()
        left = b"".join(wanted)
        while left:
            left = left[os.write(1, left) :]


def _flush() -> None:
    """The buffers of Python and of the C library."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
