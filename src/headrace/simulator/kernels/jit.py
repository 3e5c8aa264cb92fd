"""How the loops of a replay are compiled: without the interpreter's lock, so that threads replay side by side."""

from __future__ import annotations

from typing import Any

from numba import njit

inner: Any = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""A function that only compiled code calls."""

entry: Any = njit(cache=True, nogil=True, error_model="numpy")
"""A compiled function that Python calls."""
