"""Every buffer is processed exactly once: the results are those of a run in one process."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.hosts import LocalHosts

from .apps import carried_out, cases, multiset
from .made import build

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def compare(hosts, case):
    app, copies, options = case
    progress, units = carried_out(app, copies, hosts, options)
    assert [unit.name for unit in units] == [unit.name for unit in app.units]
    expected = run_here(app, copies)
    assert multiset(units) == Counter(data for buffers in expected.values() for data in buffers)
    received = sum(c["buffers_in"] for c in progress.copies.values())
    sent = sum(buffers for c in progress.copies.values() for buffers, _ in c["sent"])
    assert received == sent


@settings(
    max_examples=15, deadline=None, suppress_health_check=QUIET, derandomize=True, phases=[Phase.generate]
)
@given(case=cases())
def test_results_equal_those_of_one_process(hosts: LocalHosts, case):
    compare(hosts, case)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate, Phase.shrink])
@given(case=cases())
def test_results_equal_those_of_one_process_in_many_cases(hosts: LocalHosts, case):
    compare(hosts, case)


def test_units_are_separate_and_in_order(hosts: LocalHosts):
    app = build("diamond", 2, 2, [[5, 6, 7], [], [1] * 30])
    _, units = carried_out(app, {"read": 2, "f0": 3, "f1": 2, "collect": 2}, hosts)
    assert [unit.number for unit in units] == [0, 1, 2]
    assert sum(map(len, units[1].results.values())) == 0
    alone = build("diamond", 2, 2, [[5, 6, 7]])
    assert multiset(units[:1]) == Counter(run_here(alone)["collect"])
