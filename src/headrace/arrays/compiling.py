"""How functions are compiled, here for the whole package: `entry` is called from Python, `inner` and
`leaf` by compiled code.

Compiled code is kept between processes (see `code_cache`). Division by zero gives inf or nan, as in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from numba import config, njit, types
from numba.core import event

from headrace.arrays.clock import compile_begins, compile_ends, compile_seconds
from headrace.arrays.code_cache import cache_of
from headrace.arrays.compile_notice import notify_begin, notify_end

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def entry(function: Function) -> Function: ...
@overload
def entry(*, nogil: bool) -> Callable[[Function], Function]: ...
def entry(function: Function | None = None, *, nogil: bool = False) -> Any:
    """Compile a function that Python calls.

    Args:
        nogil: Release the interpreter's lock, for long loops that threads run in parallel. Not for short calls:
            reacquiring the lock can take longer than the call.

    >>> @entry
    ... def twice(number):
    ...     return 2 * number
    >>> twice(21)
    42
    """
    if function is None:
        return lambda function: _compiled(function, nogil=nogil)
    return _compiled(function, nogil=nogil)


def inner(function: Function) -> Function:
    """Compile a function that only compiled code calls.

    The wrapper for calls from Python is omitted: with hundreds of arrays in the arguments, generating it takes as
    long as compiling the function itself. Integers of all widths are passed as int64: otherwise the function is
    compiled again for each combination of widths that it is called with.
    """
    return _inner(function)


def inlined(function: Function) -> Function:
    """Compile a small function into every compiled function that calls it.

    A call passes every array of its records and counts references to it; for a few lines of code that takes
    longer than the lines themselves.
    """
    return _inner(function, forceinline=True)


def _inner(function: Function, **options: bool) -> Function:
    made = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    if not config.DISABLE_JIT:
        _widen_integers(made)
    return made


def leaf(function: Function) -> Function:
    """Compile a function that only compiled code calls and that allocates nothing, nor does any that it calls.

    It counts no references to arrays. Other compiled functions do that whenever an array is passed on or taken out of
    a record, which in short functions costs more than all the rest. Of structrefs it takes those of `references`.
    Integers are passed as in `inner`.
    """
    return _inner(function, _nrt=False)


def _compiled(function: Function, **options: bool) -> Function:
    dispatcher: Any = njit(error_model="numpy", **options)(function)
    if not config.DISABLE_JIT and (kept := cache_of(dispatcher.py_func)) is not None:
        dispatcher._cache = kept
    made: Function = dispatcher
    return made


def _widen_integers(dispatcher: Any) -> None:
    """Let numba look for the function's signature with int64 in place of every integer type that fits into it."""
    resolve = dispatcher.get_call_template

    def wide(kind: Any) -> Any:
        kind = types.unliteral(kind)
        fits = isinstance(kind, types.Integer) and (kind.signed or kind.bitwidth < 64)
        return types.int64 if fits else kind

    def get_call_template(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(wide, args)), {name: wide(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = get_call_template


class CompileLog(event.Listener):  # type: ignore[misc]
    """Records compiled functions, stops the work clock while compiling, and notifies the user once per process."""

    def __init__(self) -> None:
        self.compiled: list[str] = []
        """The functions that this process has compiled, not those that it has loaded from the cache."""
        self._depth = 0

    def on_start(self, event: Any) -> None:
        before = compile_seconds()
        compile_begins()
        self._depth += 1
        function = event.data["dispatcher"].py_func
        self.compiled.append(f"{function.__module__}.{function.__qualname__}")
        notify_begin(len(self.compiled), before)

    def on_end(self, event: Any) -> None:
        compile_ends()
        self._depth -= 1
        if self._depth == 0:
            notify_end()


LOG = CompileLog()
event.register("numba:compile", LOG)
