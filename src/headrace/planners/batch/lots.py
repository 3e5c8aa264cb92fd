"""Random draws that depend only on the seed, the step and the tasks to choose among."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import leaf


@leaf
def lot(seed: int, step: int, task: int) -> np.uint64:
    """A hash of seed, step and task (splitmix64); choosing the smallest of several is a uniform draw."""
    x = np.uint64(seed)
    for part in (step, task):
        x = x + np.uint64(part) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x
