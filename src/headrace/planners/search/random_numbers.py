"""Pseudo-random numbers for compiled searches; the same seed gives the same numbers on every machine."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.compiling import leaf

RandomState: TypeAlias = NDArray[np.uint64]


def random_state(seed: int) -> RandomState:
    """The state of a generator with this seed."""
    return np.array([0x9E3779B97F4A7C15 ^ (seed + 1)], np.uint64)


@leaf
def next_random(state: RandomState) -> float:
    """The next pseudo-random number in [0, 1) (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0
