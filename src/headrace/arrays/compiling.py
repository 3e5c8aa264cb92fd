"""How functions are compiled, here for the whole package: `entry` is called from Python, `inner` by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def entry(function: Function) -> Function: ...
@overload
def entry(*, nogil: bool) -> Callable[[Function], Function]: ...
def entry(function: Function | None = None, *, nogil: bool = False) -> Any:
    """Compile a function that Python calls."""
    compiled: Any = njit(cache=True, error_model="numpy", nogil=nogil)
    return compiled if function is None else compiled(function)


def inner(function: Function) -> Function:
    """Compile a function that only compiled code calls."""
    compiled: Any = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    made: Function = compiled(function)
    return made


def leaf(function: Function) -> Function:
    """Compile a function that only compiled code calls, and that allocates nothing.

    It counts no references to arrays, which otherwise happens whenever one is passed on or taken out of a
    record: in short functions that costs more than all the rest.
    """
    compiled: Any = njit(
        cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False
    )
    made: Function = compiled(function)
    return made
