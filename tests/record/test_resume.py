"""Kills and flipped bits: nothing committed is executed again, damage is found, and the values are right.

`python -m bench.resume` does the same at every write and at many more moments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.chaos_clusters import TlsGround
from bench.resume import Counts, Trial, local_trial, scheduler_trial, where
from bench.resume_case import Case
from bench.resume_flips import flip_bits, flipped

WRITES = [
    "journal:1:before",
    "journal:2:after",
    "journal:4:before",
    "journal:5:after",
    "journal:7:before",
    "file:1:after",
]


@pytest.fixture(scope="module")
def ground() -> Iterator[TlsGround]:
    """A cluster of two workers that outlives its clients."""
    with TlsGround(2) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("point", WRITES)
def test_a_client_that_is_killed_at_a_write(ground: TlsGround, tmp_path: Path, point: str) -> None:
    counts = Counts()
    trial = Trial(Case.make(tmp_path / "case", 7), counts)
    options = ["--no-learn", "--keep", "all", "--scheduler", "dask", *where(ground)]
    assert trial.killed(trial.case.start(point, "run", "prog.py:program", *options), point)
    trial.finish()
    assert (counts.faults, counts.problems, counts.cases) == (0, [], 1)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [("client", 11), ("worker", 12), ("everything", 13)])
def test_kills_at_random_moments(tmp_path: Path, kind: str, seed: int) -> None:
    counts = Counts()
    local_trial(tmp_path, seed, kind, counts)
    assert (counts.faults, counts.problems, counts.cases) == (0, [], 1)


@pytest.mark.slow
def test_the_scheduler_of_a_shared_cluster_is_killed(tmp_path: Path) -> None:
    counts = Counts()
    scheduler_trial(tmp_path, 14, counts)
    assert (counts.faults, counts.problems, counts.cases) == (0, [], 1)


@pytest.mark.slow
def test_flipped_bits_are_found_and_what_they_damaged_is_made_again(tmp_path: Path) -> None:
    flips = flip_bits(tmp_path, 40, seed=3)
    assert flips.flipped >= 40
    assert (flips.missed, flips.wrong) == (0, 0)


def test_the_harness_sees_damage(tmp_path: Path) -> None:
    """The cases are not right by accident: a wrong file, a missing one and a flipped bit are all noticed."""
    case = Case.make(tmp_path, 5)
    assert sorted(case.wrong()) == sorted(case.expected)
    assert flipped(b"abc", random.Random(1)) != b"abc"
    assert case.committed() == set()
