"""Many runs: the same makespans however many workers, and what is told of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.experiment.repeat import Makespans, repeat
from headrace.model.errors import NoPlan, UsageError
from headrace.planners.list.heft import Heft
from headrace.simulator.replay.plan_replay import PlanReplays, replay_plan
from headrace.testing.generate import cases


@dataclass(frozen=True)
class Drawn:
    """Picklable, for workers that are processes."""

    def __call__(self, seed: int) -> float:
        return float(np.random.default_rng(seed).uniform(1, 2))


@pytest.fixture(scope="module")
def once() -> PlanReplays:
    program, platform = next(cases(1, seed=4))
    return PlanReplays(Heft().plan(Problem(program.graph, platform)), error=0.3)


def test_any_number_of_threads_gives_the_same_makespans(once: PlanReplays) -> None:
    plain = [replay_plan(once.replayer.plan, error=0.3, seed=seed).makespan for seed in range(5, 105)]
    assert len(set(plain)) > 50
    for workers in (1, 2, 5):
        assert repeat(once, 100, 5, workers=workers).values.tolist() == plain


@pytest.mark.slow
def test_processes_give_the_same_makespans_as_threads(once: PlanReplays) -> None:
    for what in (Drawn(), once):
        threads = repeat(what, 40, 7, workers=2)
        processes = repeat(what, 40, 7, workers=2, processes=True)
        assert processes.values.tolist() == threads.values.tolist()


def test_runs_that_never_end_are_counted() -> None:
    def simulate_once(seed: int) -> float:
        if seed % 4 == 0:
            raise NoPlan("every host is gone")
        return float(seed)

    runs = repeat(simulate_once, 8, seed=1, workers=2)
    assert runs.failed == 2
    assert runs.worst == math.inf
    assert runs.values[[0, 1, 2, 4]].tolist() == [1.0, 2.0, 3.0, 5.0]
    assert runs.median == 5.0  # 1, 2, 3, 5 of eight are not above it


def test_other_errors_come_through() -> None:
    def simulate_once(seed: int) -> float:
        if seed == 20:
            raise UsageError("no such thing")
        return 1.0

    with pytest.raises(UsageError, match="no such thing"):
        repeat(simulate_once, 50, workers=3)


def test_progress_counts_up_to_all_runs(once: PlanReplays) -> None:
    told: list[int] = []
    repeat(once, 30, workers=2, tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 30


def test_at_is_the_least_makespan_that_the_share_of_runs_does_not_exceed() -> None:
    rng = np.random.default_rng(2)
    for runs in (1, 2, 3, 19, 20, 21, 100, 1000):
        made = Makespans(rng.integers(1, 30, runs).astype(float), seed=3)
        for share in (0.0, 0.05, 0.5, 0.95, 1.0):
            value = made.at(share)
            assert (made.values <= value).mean() >= share - 1e-12
            smaller = made.values[made.values < value]
            assert len(smaller) == 0 or (made.values <= smaller.max()).mean() < share
            assert made.values[made.seed_at(share) - 3] == value


def test_at_least_one_run() -> None:
    with pytest.raises(UsageError, match="0 runs"):
        repeat(Drawn(), 0)
