"""The load of this machine, and what it leaves for workers."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.host_load import load_of_machine, load_of_workers, sample_load


def test_samples_are_shares_of_the_cores():
    series = sample_load(5, 0.02)
    assert 0 < len(series) <= 5
    assert all(-0.01 <= load <= 1.01 for _, load in series)
    assert [time for time, _ in series] == sorted({time for time, _ in series})


def test_the_machine_has_a_load_and_cores():
    load, cores = load_of_machine()
    assert 0.0 <= load < 1.0
    assert cores == os.cpu_count()


@given(st.floats(0.0, 0.99), st.integers(1, 64), st.integers(1, 64))
def test_more_load_or_more_workers_leave_less_for_each(load, cores, workers):
    seen = load_of_workers(load, cores, workers)
    assert 0.0 <= seen < 1.0
    assert seen <= load_of_workers(load, cores, workers + 1)
    assert seen <= load_of_workers(min(0.99, load + 0.1), cores, workers) + 1e-12
    # Together the workers use no more than the machine has.
    assert workers * (1.0 - seen) <= cores + 1e-9
