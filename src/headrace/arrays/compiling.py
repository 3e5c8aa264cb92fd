"""How functions are compiled: `entry` is called from Python, `inner` by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def entry(function: Function) -> Function:
    """Compile a function that Python calls."""
    made: Function = njit(cache=True, error_model="numpy")(function)
    return made


def inner(function: Function) -> Function:
    """Compile a function that only compiled code calls."""
    made: Function = njit(
        cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy"
    )(function)
    return made


def inlined(function: Function) -> Function:
    """Compile a small function into every compiled function that calls it."""
    made: Function = njit(
        cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", forceinline=True
    )(function)
    return made
