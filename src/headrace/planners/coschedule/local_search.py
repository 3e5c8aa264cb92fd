"""Search over decisions that can go on where it stopped: more trials never give a worse plan."""

from __future__ import annotations

import numpy as np

from headrace.planners.coschedule.kernels.search import LIST, search
from headrace.planners.coschedule.list_schedule import Decisions, Lister

BLOCK = 64
"""Trials between looks at the clock; a multiple of nothing, results do not depend on it."""


class Search:
    """Late-acceptance search from given decisions; the sequence of trials follows from the seed alone.

    `first` leaves the jobs before that position in the order as they are.
    """

    def __init__(self, lister: Lister, start: Decisions, seed: int, first: int = 0) -> None:
        self.lister = lister
        self._now, self._kept, self.best = start.copy(), start.copy(), start.copy()
        self._first = first
        self._state = np.array([(seed * 2654435761 + 88172645463325252) % 2**63 + 1], np.uint64)
        value = lister.value(start)
        score = value + 0.02 * lister.spread()
        self._history = np.full(LIST, score)
        self._numbers = np.array([0.0, score, value, value])

    @property
    def value(self) -> float:
        return float(self._numbers[2])

    def run(self, trials: int) -> None:
        """Make so many trials: O(trials * list schedule)."""
        if len(self._now.order) - self._first < 2:
            return
        target = self._numbers[0] + trials
        while self._numbers[0] < target:
            too_small = search(
                self.lister.case, self._now.choices(), self._kept.choices(), self.best.choices(), self._first,
                int(target - self._numbers[0]), self._state, self._history, self._numbers,
                *self.lister.board, self.lister.scratch,
            )  # fmt: skip
            if too_small:
                self.lister.grow()
