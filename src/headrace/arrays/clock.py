"""A clock that stops while code is compiled, because compiling is not part of planning or simulating."""

from __future__ import annotations

import time

_compiled = 0.0
_compiling_since = 0.0
_depth = 0


def compile_seconds() -> float:
    """Return the seconds this process has spent compiling code and loading compiled code so far.

    >>> compile_seconds() >= 0.0
    True
    """
    return _compiled + (time.perf_counter() - _compiling_since if _depth else 0.0)


def work_clock() -> float:
    """Return seconds on a clock that stops while code is compiled; only differences are meaningful.

    >>> began = work_clock()
    >>> work_clock() - began < 1.0
    True
    """
    return time.perf_counter() - compile_seconds()


def compile_begins() -> None:
    """Stop the clock. Calls nest: compiling a function compiles the functions that it calls."""
    global _depth, _compiling_since
    if _depth == 0:
        _compiling_since = time.perf_counter()
    _depth += 1


def compile_ends() -> None:
    """Restart the clock when the outermost `compile_begins` has ended."""
    global _depth, _compiled
    _depth -= 1
    if _depth == 0:
        _compiled += time.perf_counter() - _compiling_since
