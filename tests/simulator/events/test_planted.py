"""Bugs planted into a copy of the package are found by the judge of simulated runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.planted import SEEDS, Bug, bugs, first_violation


def test_there_are_ten_and_more() -> None:
    assert len(bugs()) >= 10
    assert all(bug.seed < SEEDS for bug in bugs())


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.name, marks=pytest.mark.slow if number % 3 else ())
        for number, bug in enumerate(bugs())
    ],
)
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    bug.plant(tmp_path)
    found = first_violation(tmp_path, bug.seed, bug.seed + 1)
    assert found.startswith(f"{bug.seed} "), f"{bug.name} is not found with seed {bug.seed}"
