"""How functions that only compiled code calls are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

inner: Any = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""As `njit(cache=True)` without the entry from Python: with hundreds of arrays in the arguments, making that
entry takes as long as the function itself.
"""
