"""Paired comparisons: who is faster, how soon that is decided, and how often it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.experiment.paired import BATCH, compare_paired
from headrace.experiment.repeat import Makespans, student_t
from headrace.model.errors import NoPlan, UsageError


def noisy(seed: int, own: int, factor: float = 1.0) -> float:
    """A makespan with much noise that both have in common, and a little of its own."""
    common = np.random.default_rng(seed).uniform(50, 150)
    return float(factor * common * np.random.default_rng([seed, own]).uniform(0.98, 1.02))


def test_common_noise_does_not_matter() -> None:
    found = compare_paired(lambda s: noisy(s, 1), lambda s: noisy(s, 2, 1.03), runs=1000)
    assert found.faster == 0
    assert found.pairs <= 3 * BATCH  # unpaired, noise of 30 % would need thousands of runs
    assert found.interval[0] > 1
    assert found.interval[0] < 1.03 < found.interval[1]
    assert compare_paired(lambda s: noisy(s, 2, 1.03), lambda s: noisy(s, 1), runs=1000).faster == 1


def test_equal_schedulers_are_rarely_told_apart() -> None:
    wrong = sum(
        compare_paired(lambda s: noisy(s, 1), lambda s: noisy(s, 2), runs=60, seed=1000 * k).faster
        is not None
        for k in range(100)
    )
    assert wrong <= 8  # 5 are expected at most


def test_no_difference_at_all_is_not_decided() -> None:
    found = compare_paired(lambda s: 5.0, lambda s: 5.0, runs=25)
    assert (found.faster, found.pairs, found.ratio) == (None, 25, 1.0)


def test_runs_that_never_end_are_left_out() -> None:
    def sometimes(seed: int) -> float:
        if seed % 4 == 0:
            raise NoPlan("never ends")
        return 10.0 + seed % 2

    found = compare_paired(sometimes, lambda s: 20.0 + s % 2, runs=20)
    assert (found.faster, found.unfinished) == (0, 3)

    def never(seed: int) -> float:
        raise NoPlan("never ends")

    with pytest.raises(NoPlan, match="20 of 20"):
        compare_paired(never, lambda s: 1.0, runs=20)
    with pytest.raises(UsageError, match="confidence"):
        compare_paired(never, never, runs=2, confidence=1.0)


def test_confidence_intervals_cover_the_mean() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        low, high = Makespans(rng.normal(100, 10, 6), seed=0).interval
        inside += low <= 100 <= high
    assert 0.92 <= inside / 400 <= 0.98


@pytest.mark.parametrize(
    ("freedom", "tail", "known"),
    [(1, 0.025, 12.706), (15, 0.025, 2.131), (9, 0.005, 3.250), (29, 0.001, 3.396)],
)
def test_quantiles_of_student(freedom: int, tail: float, known: float) -> None:
    assert student_t(freedom, tail) == pytest.approx(known, rel=5e-3)
