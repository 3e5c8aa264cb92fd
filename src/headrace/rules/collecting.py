"""Garbage collection is paused while rules are parsed, compiled and judged.

That makes thousands of small objects and no cycles. They would set off collections, each of which looks at every object
of the process: up to 0.1 s with the solvers loaded, which is more than planning takes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def without_collection(function: Callable[P, T]) -> Callable[P, T]:
    """The function, called with garbage collection paused if it is on.

    >>> without_collection(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @wraps(function)
    def paused(*args: P.args, **keywords: P.kwargs) -> T:
        if not gc.isenabled():
            return function(*args, **keywords)
        gc.disable()
        try:
            return function(*args, **keywords)
        finally:
            gc.enable()

    return paused
