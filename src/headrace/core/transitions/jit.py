"""How functions that only compiled code calls are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

inner: Any = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""As `njit(cache=True)` without the entry from Python, which takes long to make for many arrays."""

entry: Any = njit(cache=True, error_model="numpy")
"""A compiled function that Python calls."""
