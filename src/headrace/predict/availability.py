"""Forecasts of the available share of each host, from measured loads, traces, or earlier executions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.model.platform import Platform
from headrace.predict.forecast import Forecaster
from headrace.predict.history import Measurement

MOST_LOAD = 0.99
"""Upper limit of a forecast load: higher ones count as this one, because the speed of a host must stay above 0."""


def forecast_loads(series: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, float]:
    """Forecast the load of each host from a series of (time, load).

    A forecast above `MOST_LOAD` counts as `MOST_LOAD`: a host that is fully loaded now keeps a hundredth of its speed.

    >>> forecast_loads({"a": [(0.0, 0.5), (10.0, 0.5)], "b": [(0.0, 0.25)]})
    {'a': 0.5, 'b': 0.25}
    >>> forecast_loads({"a": [(0.0, 1.0)]})
    {'a': 0.99}
    """
    loads = {}
    for host, measured in series.items():
        known = Forecaster()
        for time, load in measured:
            known.add(time, load)
        loads[host] = min(max(known.forecast().value, 0.0), MOST_LOAD)
    return loads


def loads_of_traces(platform: Platform) -> dict[str, list[tuple[float, float]]]:
    """Loads according to the availability traces of a platform's hosts; hosts without a trace are omitted."""
    return {
        host.name: [
            (time, 1.0 - value)
            for time, value in zip(host.trace.time.tolist(), host.trace.value.tolist(), strict=True)
        ]
        for host in platform.hosts
        if host.trace is not None
    }


def loads_of_executions(executions: Iterable[Measurement]) -> dict[str, list[tuple[float, float]]]:
    """Load of each host as implied by each execution, oldest first.

    Executions of one kind with the same input on one host are compared: the quickest is taken for one on an
    idle host, and one that took twice as long for one under a load of a half. An execution that has no
    other to compare with tells nothing.

    >>> loads_of_executions([Measurement("fft", "a", 2.0, 8.0), Measurement("fft", "a", 4.0, 8.0)])
    {'a': [(0.0, 0.0), (1.0, 0.5)]}
    """
    rows = [m for m in executions if m.seconds > 0]
    quickest: dict[tuple[str, str, float], float] = {}
    count: dict[tuple[str, str, float], int] = {}
    for m in rows:
        key = (m.kind, m.host, m.input_size)
        quickest[key] = min(quickest.get(key, m.seconds), m.seconds)
        count[key] = count.get(key, 0) + 1
    series: dict[str, list[tuple[float, float]]] = {}
    for m in rows:
        key = (m.kind, m.host, m.input_size)
        if count[key] > 1:
            mine = series.setdefault(m.host, [])
            mine.append((float(len(mine)), 1.0 - quickest[key] / m.seconds))
    return series
