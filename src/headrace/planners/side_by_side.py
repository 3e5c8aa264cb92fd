"""Searches that run at the same time, one for each of two cores.

Each does the same amount of counted work before their results are compared, in a fixed order: what is found does not
depend on which of them is faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from headrace.arrays.clock import work_clock

Result = TypeVar("Result")
_SEARCHES = 2
"""More threads gain little: between compiled loops they wait for each other."""


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def together(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of all tasks, which run at the same time if there are cores for them.

    >>> together([lambda: 1, lambda: 2])
    [1, 2]
    """
    if len(tasks) == 1 or usable_cores() == 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(len(tasks) - 1) as pool:
        others = [pool.submit(task) for task in tasks[1:]]
        first = tasks[0]()
        return [first, *(other.result() for other in others)]


def rounds_of(workers: int) -> int:
    """How many workers one after another a core works through."""
    return -(-workers // min(workers, usable_cores()))


def searches_side_by_side() -> int:
    """How many searches with different seeds are worth making: those that take no longer than one."""
    return min(_SEARCHES, usable_cores())


class Ends:
    """When searches end: by the clock, or by `stop`, which only the thread that plans asks."""

    def __init__(self, until: float, stop: Callable[[], bool]) -> None:
        self.until, self.stop = until, stop
        self.reached = False

    def asked(self) -> bool:
        """Whether the search in the thread that plans should end."""
        self.reached = self.reached or work_clock() > self.until or self.stop()
        return self.reached

    def known(self) -> bool:
        """The same for searches in other threads."""
        return self.reached or work_clock() > self.until

    def side_by_side(self, searches: Sequence[Callable[[Callable[[], bool]], None]]) -> None:
        """Run searches, each of which asks whether it should end; an interrupt of the first ends all."""

        def first() -> None:
            try:
                searches[0](self.asked)
            except BaseException:
                self.reached = True
                raise

        others: list[Callable[[], None]] = [partial(search, self.known) for search in searches[1:]]
        together([first, *others])
