"""Predictions from history: equations 1 and 2, checked against slow literal forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import UsageError
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.predict.history import Measurement, predict

positive = st.floats(1e-3, 1e3)


def graph_of(sizes: list[float], kinds: list[str], work: float = 7.0) -> Graph:
    """One task per size, each reading one item from outside of that size."""
    names = tuple(dict.fromkeys(kinds))
    n = len(sizes)
    return make_graph(
        work=[work] * n,
        size=sizes,
        producer=[-1] * n,
        read_ptr=range(n + 1),
        reads=range(n),
        kind=[names.index(k) for k in kinds],
        kinds=names,
    )


def platform_of(speeds: list[float], loads: list[float] | None = None) -> Platform:
    loads = loads or [0.0] * len(speeds)
    return Platform(
        (
            Site(
                "s",
                tuple(Host(f"h{i}", s, load=ld) for i, (s, ld) in enumerate(zip(speeds, loads, strict=True))),
            ),
        )
    )


def durations(graph: Graph, platform: Platform) -> np.ndarray:
    """[tasks, hosts] as every algorithm computes them."""
    return graph.work[:, None] / platform.rates(graph)[graph.speed_class]


@given(
    st.lists(st.tuples(positive, st.floats(0, 0.9)), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(["a", "b"]), positive), min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_exact_measurements_of_a_consistent_world_are_predicted(hosts, tasks, data):
    per_byte = {k: [data.draw(positive) for _ in hosts] for k in ("a", "b")}
    graph = graph_of([size for _, size in tasks], [kind for kind, _ in tasks])
    platform = platform_of([s for s, _ in hosts], [ld for _, ld in hosts])
    seen = [
        Measurement(kind, f"h{j}", per_byte[kind][j] * size, size)
        for kind, size in tasks
        for j in range(len(hosts))
    ]
    predicted = durations(*predict(graph, platform, seen))
    truth = [[per_byte[kind][j] * size for j in range(len(hosts))] for kind, size in tasks]
    np.testing.assert_allclose(predicted, truth, rtol=1e-9)


@given(
    st.lists(st.tuples(positive, positive), min_size=1, max_size=8), st.floats(0.05, 1.0, exclude_max=True)
)
@settings(max_examples=60, deadline=None)
def test_equation_one_against_its_literal_form(executions, alpha):
    graph, platform = graph_of([3.0], ["k"]), platform_of([1.0])
    predicted = durations(
        *predict(graph, platform, [Measurement("k", "h0", e, i) for e, i in executions], alpha)
    )
    n = len(executions)
    total = weights = 0.0
    for i in range(n):
        seconds, size = executions[n - 1 - i]
        total += alpha * (1 - alpha) ** i * seconds / size
        weights += alpha * (1 - alpha) ** i
    assert predicted[0, 0] == pytest.approx(total / weights * 3.0, rel=1e-9)


@given(st.lists(positive, min_size=2, max_size=8))
@settings(max_examples=30, deadline=None)
def test_alpha_one_uses_only_the_last(seconds):
    seen = [Measurement("k", "h0", s, 2.0) for s in seconds]
    predicted = durations(*predict(graph_of([2.0], ["k"]), platform_of([1.0]), seen, alpha=1.0))
    assert predicted[0, 0] == pytest.approx(seconds[-1])


def test_equation_two_is_the_mean_of_the_others_on_equal_hosts():
    seen = [Measurement("k", "h0", 2.0, 1.0), Measurement("k", "h1", 4.0, 1.0)]
    predicted = durations(*predict(graph_of([10.0], ["k"]), platform_of([3.0, 3.0, 3.0]), seen))
    np.testing.assert_allclose(predicted, [[20.0, 40.0, 30.0]])


def test_equation_two_takes_known_speeds_into_account():
    # h0 (speed 4) took 1 s a byte and h1 (speed 2, half loaded) 2 s: 4 and 2, on average 3, at speed 1.
    seen = [Measurement("k", "h0", 1.0, 1.0), Measurement("k", "h1", 2.0, 1.0)]
    platform = platform_of([4.0, 2.0, 6.0], [0.0, 0.5, 0.0])
    np.testing.assert_allclose(durations(*predict(graph_of([1.0], ["k"]), platform, seen)), [[1.0, 2.0, 0.5]])


def test_a_host_s_own_speed_for_a_kind_counts_too():
    platform = Platform((Site("s", (Host("h0", kinds={"k": 2.0}), Host("h1", kinds={"k": 8.0, "x": 5.0}))),))
    _, learnt = predict(graph_of([1.0], ["k"]), platform, [Measurement("k", "h0", 4.0, 1.0)])
    assert learnt.hosts[0].kinds["k"] / learnt.hosts[1].kinds["k"] == pytest.approx(0.25)
    assert learnt.hosts[1].kinds["x"] == 5.0


def test_kinds_without_history_and_bare_numbers_keep_the_user_s_figure():
    graph, platform = graph_of([2.0, 2.0, 2.0], ["", "new", "k"]), platform_of([2.0, 1.0])
    before = durations(graph, platform)
    seen = [
        Measurement("", "h0", 50.0, 1.0),
        Measurement("k", "h0", 1.0, 1.0),
        Measurement("old", "h0", 9.0, 1.0),
    ]
    after = durations(*predict(graph, platform, seen))
    np.testing.assert_array_equal(after[:2], before[:2])
    np.testing.assert_allclose(after[2], [2.0, 4.0])


def test_nothing_known_changes_nothing():
    graph, platform = graph_of([2.0], ["k"]), platform_of([1.0])
    assert predict(graph, platform, []) == (graph, platform)


def test_a_kind_that_reads_nothing_has_a_time_per_execution():
    seen = [Measurement("k", "h0", 5.0, 0.0)]
    np.testing.assert_allclose(durations(*predict(graph_of([0.0], ["k"]), platform_of([1.0]), seen)), [[5.0]])
    # An estimate of size on a kind measured to read nothing does not multiply its time.
    np.testing.assert_allclose(durations(*predict(graph_of([1e6], ["k"]), platform_of([1.0]), seen)), [[5.0]])


def test_tasks_of_unknown_size_are_of_average_size():
    seen = [Measurement("k", "h0", 2.0, 100.0), Measurement("k", "h0", 6.0, 300.0)]
    np.testing.assert_allclose(durations(*predict(graph_of([0.0], ["k"]), platform_of([1.0]), seen)), [[4.0]])


def test_hosts_that_are_gone_count_only_when_there_is_nothing_better():
    graph, platform = graph_of([1.0], ["k"]), platform_of([2.0, 1.0])
    gone = Measurement("k", "elsewhere", 8.0, 1.0)
    np.testing.assert_allclose(durations(*predict(graph, platform, [gone])), [[4.0, 8.0]])
    own = Measurement("k", "h0", 1.0, 1.0)
    np.testing.assert_allclose(durations(*predict(graph, platform, [own, gone])), [[1.0, 2.0]])


def test_executions_of_no_time_do_not_break_speeds():
    graph, platform = graph_of([1.0], ["k"]), platform_of([1.0, 1.0])
    assert durations(*predict(graph, platform, [Measurement("k", "h0", 0.0, 1.0)])).max() == 0.0
    mixed = [Measurement("k", "h0", 0.0, 1.0), Measurement("k", "h1", 1.0, 1.0)]
    predicted = durations(*predict(graph, platform, mixed))
    assert predicted[0, 1] == pytest.approx(1.0)
    assert predicted[0, 0] < 1e-8


@pytest.mark.parametrize("alpha", [0.0, -1.0, 1.5, math.nan])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(UsageError, match="alpha is"):
        predict(graph_of([1.0], ["k"]), platform_of([1.0]), [], alpha)


@pytest.mark.parametrize(("seconds", "size"), [(-1.0, 1.0), (math.nan, 1.0), (1.0, math.inf), (1.0, -5.0)])
def test_impossible_measurements_are_refused(seconds, size):
    with pytest.raises(UsageError, match="measurement of 'k' on 'h0'"):
        Measurement("k", "h0", seconds, size)
