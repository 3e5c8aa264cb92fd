"""Loads of hosts, forecast from what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.platform import Host, Platform, Site
from headrace.model.trace import Trace
from headrace.predict.availability import forecast_loads, loads_of_executions, loads_of_traces
from headrace.predict.history import Measurement


def test_forecasts_stay_below_a_whole_host() -> None:
    assert forecast_loads({"a": [(0.0, 1.0), (1.0, 1.0)]}) == {"a": 0.99}
    assert forecast_loads({}) == {}


def test_noise_is_smoothed() -> None:
    random = np.random.default_rng(0)
    series = [(float(t), float(random.uniform(0.4, 0.6))) for t in range(200)]
    assert forecast_loads({"a": series})["a"] == pytest.approx(0.5, abs=0.05)


def test_traces_tell_availability() -> None:
    hosts = (Host("a", trace=Trace([0.0, 10.0], [1.0, 0.25])), Host("b"))
    assert loads_of_traces(Platform((Site("s", hosts),))) == {"a": [(0.0, 0.0), (10.0, 0.75)]}


def test_executions_are_compared_with_the_quickest_of_their_sort() -> None:
    seen = [
        Measurement("fft", "a", 2.0, 10.0),
        Measurement("fft", "a", 8.0, 10.0),
        Measurement("fft", "a", 5.0, 20.0),  # another size: nothing to compare with
        Measurement("fft", "b", 1.0, 10.0),  # another host
        Measurement("sum", "a", 4.0, 10.0),
        Measurement("sum", "a", 0.0, 10.0),  # no time at all
        Measurement("sum", "a", 2.0, 10.0),
    ]
    assert loads_of_executions(seen) == {"a": [(0.0, 0.0), (1.0, 0.75), (2.0, 0.5), (3.0, 0.0)]}
