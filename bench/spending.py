"""Tasks of benchmarks that use CPU time. Workers load this module, so it imports as little as possible."""

from __future__ import annotations

import time


def spend(seconds: float, size: int, *inputs: bytes) -> bytes:
    """Use CPU time, part of it to make zeros, and return them."""
    end = time.thread_time() + seconds
    made = bytes(size)
    while time.thread_time() < end:
        pass
    return made
