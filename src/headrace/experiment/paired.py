"""Compare two schedulers by simulation with common random numbers, until one is faster at a stated confidence.

Both schedulers run with the same seeds, so that both meet the same run times and faults; what is compared is the ratio
of their makespans in each pair. After every ten pairs there is a look at the confidence interval of the mean logarithm
of the ratios. The k-th look may be wrong with probability (1 - confidence) / (k (k + 1)), so all looks together are
wrong with at most 1 - confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.experiment.repeat import SimulateOnce, student_t
from headrace.model.errors import NoPlan, UsageError

BATCH = 10
"""Pairs between two looks."""


@dataclass(frozen=True)
class PairedRuns:
    """What pairs of runs say about two schedulers."""

    ratio: float
    """Geometric mean of the second makespan over the first: above 1, the first is faster."""
    interval: tuple[float, float]
    """Its confidence interval at the last look."""
    pairs: int
    unfinished: int
    """Pairs that are not counted, because one of the two never ended."""
    means: tuple[float, float]
    """Mean makespans of the pairs that are counted."""

    @property
    def faster(self) -> int | None:
        """0 if the first is faster, 1 if the second is, None if that is not decided."""
        low, high = self.interval
        return 0 if low > 1 else 1 if high < 1 else None


def compare_paired(
    first: SimulateOnce,
    second: SimulateOnce,
    *,
    runs: int,
    confidence: float = 0.95,
    seed: int = 0,
    tell: Callable[[int], None] = lambda done: None,
) -> PairedRuns:
    """Simulate pairs with seeds `seed`, `seed` + 1, ... until one is faster, or `runs` pairs are done.

    >>> found = compare_paired(lambda seed: 10.0 + seed % 3, lambda seed: 11.0 + seed % 3, runs=100)
    >>> found.faster, found.pairs
    (0, 10)

    Raises
    ------
    UsageError
        If `confidence` is not between 0 and 1.
    NoPlan
        If no pair ended.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"confidence is {confidence:g}", hint="give a number between 0 and 1, such as 0.95")
    pairs: list[tuple[float, float]] = []
    unfinished = looks = 0
    found: PairedRuns | None = None
    for k in range(runs):
        both = _makespan(first, seed + k), _makespan(second, seed + k)
        if math.isinf(max(both)):
            unfinished += 1
        else:
            pairs.append(both)
        tell(k + 1)
        if ((k + 1) % BATCH == 0 or k + 1 == runs) and len(pairs) > 1:
            looks += 1
            wrong = (1 - confidence) / (looks * (looks + 1))
            found = _look(pairs, unfinished, wrong)
            if found.faster is not None:
                return found
    if found is None:
        raise NoPlan(f"{unfinished} of {runs} pairs never end", hint="simulate one of them to see why")
    return found


def _makespan(simulate_once: SimulateOnce, seed: int) -> float:
    try:
        return simulate_once(seed)
    except NoPlan:
        return math.inf


def _look(pairs: list[tuple[float, float]], unfinished: int, wrong: float) -> PairedRuns:
    values = np.array(pairs)
    logs = np.log(values[:, 1] / values[:, 0])
    mean = float(logs.mean())
    half = student_t(len(logs) - 1, wrong / 2) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    means = values.mean(axis=0)
    interval = math.exp(mean - half), math.exp(mean + half)
    return PairedRuns(math.exp(mean), interval, len(logs), unfinished, (float(means[0]), float(means[1])))
