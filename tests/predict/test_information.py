"""Time left, sizes of outputs, and what schedulers are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import UsageError
from headrace.model.graph import make_graph
from headrace.model.trace import Trace
from headrace.predict.forecast import forecast
from headrace.predict.information import QUALITIES, Information, parse_quality, told_work
from headrace.predict.outputs import Regression, predicted_sizes
from headrace.predict.remaining import left_by_load, left_on_time, work_had

ONOFF = Trace.steps([1.0, 0.0], 10.0)
HOSTS = [Trace.constant(0.25), ONOFF, Trace.steps([0.9, 0.5, 0.2, 0.4], 30.0)]


def test_on_time_and_overdue() -> None:
    left = left_on_time(np.array([0.0, 2.0, 0.0]), np.array([10.0, 10.0, 4.0]), 6.0)
    assert left.tolist() == [4.0, 6.0, pytest.approx(0.4)]
    assert left_on_time(np.array([0.0]), np.array([10.0]), 9.9)[0] == pytest.approx(0.1), (
        "nearly done, not overdue"
    )
    assert left_on_time(np.array([0.0]), np.array([4.0]), 6.0, overdue=30.0).tolist() == [30.0]
    with pytest.raises(UsageError):
        left_on_time(np.array([0.0]), np.array([4.0]), 6.0, overdue=-1.0)


def test_by_measured_load_it_is_exact_if_the_load_stays() -> None:
    half = Trace.constant(0.5)
    had = work_had(3.0, 7.0, [(0.0, half)])
    assert left_by_load(10.0, had, lambda amount: amount / 0.5) == pytest.approx(half.finish(3.0, 10.0) - 7.0)
    had = work_had(0.0, 15.0, [(0.0, ONOFF)])
    assert left_by_load(10.0, had, lambda amount: amount / 0.5) == pytest.approx(2.0)
    assert left_by_load(10.0, had, lambda amount: amount / 0.5, overdue=3.0) == 3.0
    assert left_by_load(10.0, 5.0, lambda amount: math.inf) == math.inf


def test_work_had_counts_each_share_for_its_own_time() -> None:
    """A task from 4 s to 25 s: whole until 10 s, a tenth until 20 s, half after that."""
    measured = [(0.0, Trace.constant(1.0)), (10.0, Trace.constant(0.1)), (20.0, Trace.constant(0.5))]
    assert work_had(4.0, 25.0, measured) == pytest.approx(6.0 + 1.0 + 2.5)
    assert work_had(4.0, 9.0, measured) == 5.0
    assert work_had(12.0, 15.0, measured) == pytest.approx(0.3)


pairs = st.tuples(st.floats(0, 1e6), st.floats(0, 1e6))


@given(st.lists(pairs, min_size=3, max_size=30), st.floats(0, 1e6))
def test_the_line_is_that_of_least_squares(points: list[tuple[float, float]], at: float) -> None:
    line = Regression()
    for x, y in points:
        line.add(x, y)
    x, y = np.array(points).T
    if np.ptp(x) < 1e-3:
        return
    slope, base = np.polyfit(x, y, 1)
    n = len(x)
    line_left = ((y - base - slope * x) ** 2).sum() / (n - 2)
    mean_left = ((y - y.mean()) ** 2).sum() / (n - 1)
    expected = max(0.0, base + slope * at) if line_left < mean_left else y.mean()
    if math.isclose(line_left, mean_left, rel_tol=1e-6):
        return
    assert line.predict(at) == pytest.approx(expected, rel=1e-4, abs=1e-3 * max(1.0, y.max()))


def test_outputs_by_kind_and_position() -> None:
    graph = make_graph(
        work=np.ones(8),
        size=[10, 20, 30, 40, *[1] * 9, 0],
        producer=[-1] * 4 + [0, 1, 2, 3, 3, 4, 5, 6, 6, 7],
        read_ptr=[0, 1, 2, 3, 4, 4, 4, 5, 5],
        reads=[0, 1, 2, 3, 3],
        kind=[0, 0, 0, 0, 1, 1, 0, 2],
        kinds=("a", "b", "c"),
    )
    done = np.array([True, True, True, False, True, False, False, False])
    measured = np.zeros(graph.n_items)
    measured[[4, 5, 6, 9]] = [105, 205, 305, 77]
    sizes = predicted_sizes(graph, done, measured)
    assert sizes[:4].tolist() == [10, 20, 30, 40]
    assert sizes[[4, 5, 6, 9]].tolist() == [105, 205, 305, 77]
    assert sizes[7] == pytest.approx(405)
    assert sizes[8] == 1, "nobody wrote a second output yet"
    assert sizes[10] == 77
    assert sizes[11] == pytest.approx(405)
    assert sizes[13] == 0, "a signal stays one"


def test_what_is_foretold_is_what_later_tasks_are_foretold_from() -> None:
    """Three doublers have run; of a chain of two more, the second reads what the first is foretold to make."""
    graph = make_graph(
        work=np.ones(5),
        size=[10, 20, 30, 50, 1, 1, 1, 1, 1],
        producer=[-1] * 4 + [0, 1, 2, 3, 4],
        read_ptr=[0, 1, 2, 3, 4, 5],
        reads=[0, 1, 2, 3, 7],
    )
    measured = np.array([0, 0, 0, 0, 20, 40, 60, 0, 0], float)
    sizes = predicted_sizes(graph, np.array([True, True, True, False, False]), measured)
    assert sizes[7:].tolist() == pytest.approx([100, 200])


def test_perfect_figures_are_those_of_the_trace() -> None:
    told = Information(HOSTS, "perfect", horizon=60.0)
    assert told.at(40.0).tolist() == pytest.approx([t.work_between(40, 100) / 60 for t in HOSTS])
    assert [told.seconds(7.0, k, 31.0) for k in range(3)] == [t.finish(7.0, 31.0) - 7.0 for t in HOSTS]


@given(st.floats(0, 0.9), st.integers(0, 9), st.floats(0, 500))
def test_bounded_figures_keep_their_bound_and_repeat(error: float, seed: int, now: float) -> None:
    true = Information(HOSTS).at(now)
    told = Information(HOSTS, "bounded", error=error, seed=seed)
    first = told.at(now)
    told.at(now + 100)
    assert told.at(now).tolist() == first.tolist()
    assert Information(HOSTS, "bounded", error=error, seed=seed).at(now).tolist() == first.tolist()
    assert np.all(np.abs(first / true - 1) <= error + 1e-12)
    assert told.seconds(now, 0, 5.0) == pytest.approx(20.0 * true[0] / first[0])


def test_sampled_and_forecast_know_only_what_was_measured() -> None:
    sampled, foretold = Information(HOSTS, "sampled"), Information(HOSTS, "forecast")
    samples = [[t.at(10.0 * k) for k in range(13)] for t in HOSTS]
    assert sampled.at(125.0).tolist() == pytest.approx([float(np.mean(s)) for s in samples])
    assert foretold.at(125.0).tolist() == pytest.approx([forecast(s).value for s in samples])
    assert foretold.seconds(125.0, 0, 5.0) == pytest.approx(20.0)
    twice = Information(HOSTS, "sampled")
    twice.at(55.0)
    assert twice.at(125.0).tolist() == sampled.at(125.0).tolist(), "asking in between changes nothing"


def test_nothing_is_foretold_to_be_less_than_nothing() -> None:
    """A link that swings between 1 and 0, and once to 4: autoregression foretells as much below the mean."""
    values = [*[1.0, 0.0] * 25, 4.0]
    assert forecast(values).value < 0
    assert Information([Trace.steps(values, 10.0)], "forecast").at(500.0).tolist() == [0.0]


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_change_counts_from_its_moment(quality: str) -> None:
    told = Information([Trace.constant(1.0)], quality)  # type: ignore[arg-type]
    told.at(100.0)
    told.change(0, Trace.constant(0.2), 100.0)
    late = float(told.at(3000.0)[0])
    assert late == pytest.approx(0.2, abs=0.05)
    if quality == "sampled":
        assert late == pytest.approx((11 * 1.0 + 290 * 0.2) / 301), "11 measurements before, 290 after"


def test_tasks_are_told_as_the_information_is() -> None:
    estimated, real = np.full(50, 9.0), np.full(50, 10.0)
    assert told_work(estimated, real, "sampled") is estimated
    assert told_work(estimated, real, "perfect") is real
    wrong = told_work(estimated, real, "bounded", error=0.3, seed=4)
    assert np.all(np.abs(wrong - 10.0) <= 3.0)
    assert np.ptp(wrong) > 1.0
    assert wrong.tolist() == told_work(estimated, real, "bounded", error=0.3, seed=4).tolist()


@pytest.mark.parametrize(
    "text", ["", "good", "bounded", "bounded:x", "bounded:1.5", "perfect:0.1", "bounded:nan"]
)
def test_bad_names_of_qualities(text: str) -> None:
    with pytest.raises(UsageError):
        parse_quality(text)


def test_misuse_is_refused() -> None:
    with pytest.raises(UsageError, match="'magic'"):
        Information(HOSTS, "magic")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="error is 2"):
        Information(HOSTS, "bounded", error=2)
    with pytest.raises(UsageError, match="interval is 0"):
        Information(HOSTS, interval=0)
