"""Repeat a simulation with different seeds and collect the makespans."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.errors import NoPlan, UsageError
from headrace.model.graph import Floats

_T_95 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""Quantiles of Student's t at 0.975 for 1 to 10 degrees of freedom."""


def student_t(freedom: int, tail: float = 0.025) -> float:
    """The quantile of Student's t that leaves `tail` above it, by Cornish and Fisher's expansion of the normal one.

    The usual tail is exact to four digits; others are to about 1 % from 5 degrees of freedom on.

    >>> round(student_t(4), 4), round(student_t(30), 3), round(student_t(20, 0.005), 2)
    (2.7764, 2.042, 2.85)
    """
    if tail == 0.025 and freedom <= len(_T_95):
        return _T_95[freedom - 1]
    z = NormalDist().inv_cdf(1.0 - tail)
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + first + second + third


SimulateOnce: TypeAlias = Callable[[int], float]
"""Maps a seed to the makespan of its run; raises NoPlan if that run never ends."""


@dataclass(frozen=True, eq=False)
class Makespans:
    """The makespans of many runs: `values[i]` is that of seed `seed + i`, inf if the run never ended.

    >>> runs = Makespans(np.array([3.0, 1.0, 2.0, 9.0]), seed=7)
    >>> runs.least, runs.median, runs.at(0.95), runs.worst, runs.mean
    (1.0, 2.0, 9.0, 9.0, 3.75)
    >>> runs.seed_at(0.5), runs.seed_at(1.0)
    (9, 10)
    """

    values: Floats
    seed: int
    seconds: float = 0.0
    """Total time of all runs."""

    @property
    def runs(self) -> int:
        return len(self.values)

    @property
    def failed(self) -> int:
        """Runs that never ended."""
        return int(np.isinf(self.values).sum())

    def at(self, share: float) -> float:
        """The quantile of the makespan: the smallest observed value that this share of the runs did not exceed."""
        return float(np.sort(self.values)[self._rank(share)])

    def seed_at(self, share: float) -> int:
        """The seed of a run with the makespan `at(share)`; the first, if there are several."""
        return self.seed + int(np.flatnonzero(self.values == self.at(share))[0])

    @property
    def least(self) -> float:
        return float(self.values.min())

    @property
    def median(self) -> float:
        return self.at(0.5)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the runs; nan for a single run, or if one never ended."""
        return float(self.values.std(ddof=1)) if self.runs > 1 and not self.failed else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the mean, by Student's t; nan where there is no deviation.

        >>> low, high = Makespans(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), seed=0).interval
        >>> round(low, 3), round(high, 3)
        (1.037, 4.963)
        """
        half = student_t(self.runs - 1) * self.deviation / math.sqrt(self.runs) if self.runs > 1 else math.nan
        return self.mean - half, self.mean + half

    @property
    def worst(self) -> float:
        return float(self.values.max())

    def _rank(self, share: float) -> int:
        return max(0, math.ceil(share * self.runs * (1 - 1e-12)) - 1)


def repeat(
    simulate_once: SimulateOnce,
    runs: int,
    seed: int = 0,
    *,
    workers: int | None = None,
    processes: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> Makespans:
    """Simulate with seeds `seed`, `seed` + 1, ... on all cores; `tell` is called with the number of completed runs.

    The makespans do not depend on the number of workers. Workers are threads, for simulations that spend
    their time in compiled code, or `processes`, for which `simulate_once` must be picklable.

    >>> repeat(lambda seed: seed % 3 + 1.0, runs=4, seed=10, workers=2).values.tolist()
    [2.0, 3.0, 1.0, 2.0]
    """
    if runs < 1:
        raise UsageError(f"{runs} runs", hint="repeat at least once")
    began = work_clock()
    workers = min(workers or os.cpu_count() or 1, runs)
    values = np.empty(runs)
    # The first run is done here: code is compiled once, and errors are reported immediately.
    values[0] = _makespans(simulate_once, seed, seed + 1)[0]
    step = max(1, min(100, math.ceil((runs - 1) / (8 * workers))))
    parts = [(at, min(at + step, runs)) for at in range(1, runs, step)]
    done = 1
    with _workers(simulate_once, workers, processes) as submit:
        waiting = {submit(seed + first, seed + last): (first, last) for first, last in parts}
        for future in as_completed(waiting):
            first, last = waiting[future]
            values[first:last] = future.result()
            done += last - first
            tell(done)
    return Makespans(values, seed, work_clock() - began)


def _makespans(simulate_once: SimulateOnce, first: int, last: int) -> list[float]:
    """Makespans of the seeds from `first` up to, but not including, `last`."""
    made = []
    for seed in range(first, last):
        try:
            made.append(simulate_once(seed))
        except NoPlan:
            made.append(math.inf)
    return made


@contextmanager
def _workers(
    simulate_once: SimulateOnce, workers: int, processes: bool
) -> Iterator[Callable[[int, int], Future[list[float]]]]:
    """An executor for ranges of seeds; on early exit, ranges that have not started are dropped."""
    pool: Executor
    if processes:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, context, _hold, (simulate_once,))
    else:
        pool = ThreadPoolExecutor(workers)
    try:
        if processes:
            yield lambda first, last: pool.submit(_held_makespans, first, last)
        else:
            yield lambda first, last: pool.submit(_makespans, simulate_once, first, last)
    finally:
        pool.shutdown(cancel_futures=True)


_held: list[SimulateOnce] = []
"""In a worker process: the function to simulate, sent once and not with each range of seeds."""


def _hold(simulate_once: SimulateOnce) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    _held.append(simulate_once)


def _held_makespans(first: int, last: int) -> list[float]:
    return _makespans(_held[0], first, last)
