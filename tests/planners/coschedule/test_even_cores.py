"""Cores of a host that exchange jobs so that they end alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.coschedule.orders import _even_cores


def longest_first(run: list[float], cores: int) -> list[float]:
    ends = [0.0] * cores
    for seconds in sorted(run, reverse=True):
        ends[ends.index(min(ends))] += seconds
    return ends


@given(st.lists(st.integers(1, 1000).map(float), min_size=1, max_size=60), st.integers(1, 8))
def test_every_job_is_on_one_core_and_none_ends_later_than_longest_first(
    run: list[float], cores: int
) -> None:
    jobs = _even_cores(np.array(run), cores)
    assert sorted(j for core in jobs for j in core) == list(range(len(run)))
    assert max(sum(run[j] for j in core) for core in jobs) <= max(longest_first(run, cores)) + 1e-9


def test_exchanges_close_a_gap() -> None:
    """Longest first gives 5 + 3 + 3 = 11 and 5 + 4 = 9; with one exchange both are 10."""
    run = np.array([5.0, 5.0, 4.0, 3.0, 3.0])
    assert max(longest_first(run.tolist(), 2)) == 11.0
    assert [float(run[core].sum()) for core in _even_cores(run, 2)] == [10.0, 10.0]
