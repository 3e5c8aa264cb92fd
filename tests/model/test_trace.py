"""Integrals over traces against a slow walk from step to step."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import BadPlatform
from headrace.model.trace import Trace, pack

_VALUES = st.sampled_from([0.0, 0.0, 0.25, 0.3, 1.0, 7.5])


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    n = draw(st.integers(1, 6))
    gaps = draw(st.lists(st.sampled_from([0.5, 1.0, 2.75, 5.0]), min_size=n, max_size=n))
    time = np.concatenate(([0.0], np.cumsum(gaps)[:-1]))
    value = draw(st.lists(_VALUES, min_size=n, max_size=n))
    length = float(sum(gaps)) if draw(st.booleans()) else math.inf
    return Trace(time, np.array(value), length, draw(st.floats(-40, 40)))


def walk(trace: Trace, start: float, end: float) -> float:
    """The integral piece by piece."""
    done = 0.0
    while start < end:
        stop = min(end, trace.next_step(start))
        done += trace.at((start + min(stop, start + 1e6)) / 2) * (stop - start)
        start = stop
    return done


@given(traces(), st.floats(-30, 60), st.floats(0, 60))
def test_work_between_is_the_sum_of_the_pieces(trace: Trace, start: float, span: float) -> None:
    assert trace.work_between(start, start + span) == pytest.approx(
        walk(trace, start, start + span), abs=1e-6
    )


@given(traces(), st.floats(-30, 60), st.floats(0.001, 200))
def test_finish_is_the_first_moment_with_that_much_done(trace: Trace, start: float, amount: float) -> None:
    end = trace.finish(start, amount)
    if math.isinf(end):
        later = trace.work_between(start, start + 1e5)
        assert later < amount
        assert trace.at(start + 1e5) == 0.0 or trace.total == 0.0
        return
    assert end >= start
    assert trace.work_between(start, end) == pytest.approx(amount, rel=1e-9, abs=1e-6)
    assert trace.work_between(start, end - 1e-3) < amount


@given(traces(), st.lists(st.floats(-50, 80), min_size=1, max_size=20))
def test_sample_agrees_with_at(trace: Trace, moments: list[float]) -> None:
    assert trace.sample(np.array(moments)).tolist() == [trace.at(m) for m in moments]


def test_the_finish_does_not_wait_for_the_zeros_that_follow() -> None:
    onoff = Trace.steps([1.0, 0.0], 5.0)
    assert onoff.finish(0.0, 5.0) == 5.0
    assert onoff.finish(0.0, 10.0) == 15.0
    assert onoff.finish(6.0, 1.0) == 11.0


def test_a_series_begins_at_the_index_and_moment_asked_for() -> None:
    trace = Trace.steps([1.0, 2.0, 3.0], 5.0).starting(200.0, 5)
    assert [trace.at(t) for t in (200.0, 204.9, 205.0, 210.0)] == [3.0, 3.0, 1.0, 2.0]


def test_walking_over_the_seam_arrives() -> None:
    trace = Trace.steps([1.0, 2.0], 2.75)
    assert trace.next_step(-1e-320) < 5.5 + 1e-9
    assert walk(trace, -1e-320, 5.5) == pytest.approx(8.25)


def test_equal_series_are_equal() -> None:
    assert Trace.constant(0.5) == Trace([0.0], [0.5])
    assert Trace.constant(0.5) != Trace([0.0], [0.5], 5.0)
    assert len({Trace.constant(0.5), Trace.constant(0.5)}) == 1


def test_means() -> None:
    assert Trace.steps([1.0, 0.5], 5.0).mean == 0.75
    assert Trace([0.0, 4.0, 6.0], [1.0, 0.0, 9.0]).mean == pytest.approx(4 / 6)
    assert Trace.constant(3.0).mean == 3.0


@pytest.mark.parametrize(
    ("time", "value", "length"),
    [
        ([], [], math.inf),
        ([0.0], [1.0, 2.0], math.inf),
        ([1.0], [1.0], math.inf),
        ([0.0, 0.0], [1.0, 1.0], math.inf),
        ([0.0, math.inf], [1.0, 1.0], math.inf),
        ([0.0], [-1.0], math.inf),
        ([0.0], [math.nan], math.inf),
        ([0.0, 5.0], [1.0, 1.0], 5.0),
        ([0.0], [1.0], math.nan),
    ],
)
def test_nonsense_is_refused(time: list[float], value: list[float], length: float) -> None:
    with pytest.raises(BadPlatform):
        Trace(np.array(time), np.array(value), length)


def test_packed_traces_keep_their_arrays() -> None:
    a, b = Trace.steps([1.0, 0.5, 0.25], 2.0), Trace([0.0, 1.0], [0.0, 4.0], offset=3.0)
    table = pack([a, b])
    assert table.time[table.ptr[1] : table.ptr[2]].tolist() == b.time.tolist()
    assert table.area[: table.ptr[1]].tolist() == a.area.tolist()
    assert table.total.tolist() == [3.5, math.inf]
    assert table.length.tolist() == [6.0, math.inf]
    assert table.offset.tolist() == [0.0, 3.0]
