"""The parts of a drawing: merging into pixels, rows, ticks, colours, texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.report.axis import ticks
from headrace.report.chart import TRANSFER, Bar
from headrace.report.merging import segments
from headrace.report.packing import pack
from headrace.report.palette import OTHER, colours
from headrace.report.text import shorten, text_width

moments = st.floats(0, 1000)
intervals = st.lists(st.tuples(moments, st.floats(0, 50)).map(lambda p: (p[0], p[0] + p[1])), max_size=40)


@given(intervals)
@settings(max_examples=60, deadline=None)
def test_packed_rows_do_not_overlap_and_are_as_few_as_possible(spans):
    rows = pack(spans)
    for i, (start, finish) in enumerate(spans):
        for j in range(i):
            overlap = spans[j][0] < finish and start < spans[j][1]
            assert not (overlap and rows[i] == rows[j])
    deepest = max((sum(s <= t < f for s, f in spans) for t, _ in spans), default=0)
    assert len({r for r, (s, f) in zip(rows, spans, strict=True) if f > s}) <= max(deepest, 1)


@given(intervals, st.data())
@settings(max_examples=60, deadline=None)
def test_preferred_rows_never_overlap(spans, data):
    preferred = [data.draw(st.integers(0, 3)) for _ in spans]
    rows = pack(spans, preferred=preferred)
    for i, (start, finish) in enumerate(spans):
        for j in range(i):
            assert not (rows[i] == rows[j] and spans[j][0] < finish and start < spans[j][1])


def test_an_overlap_within_the_slack_keeps_the_row():
    assert pack([(0.0, 1.0), (0.999, 2.0)]) == [0, 1]
    assert pack([(0.0, 1.0), (0.999, 2.0)], slack=0.01) == [0, 0]


@given(st.floats(1e-6, 1e9), st.integers(2, 12))
@settings(max_examples=200, deadline=None)
def test_ticks_are_few_even_and_inside(end, most):
    marks = ticks(end, most)
    times = [time for time, _ in marks]
    assert 1 <= len(marks) <= most + 1
    assert times[0] == 0
    assert times[-1] <= end * (1 + 1e-9)
    assert len({label for _, label in marks}) == len(marks)
    np.testing.assert_allclose(np.diff(times), times[1] if len(times) > 1 else 0, rtol=1e-6)


@pytest.mark.parametrize(
    ("end", "unit"),
    [(0.05, "ms"), (7.0, "s"), (300, "s"), (4000, "min"), (200_000, "h"), (2e6, "d")],
)
def test_ticks_use_the_unit_that_suits(end, unit):
    assert ticks(end, 8)[-1][1].split()[1] == unit


def drawn(bars, scale=1.0, most=10**6):
    keys = {b.colour_key: i for i, b in enumerate({b.colour_key: b for b in bars}.values())}
    lanes = {b.lane: i for i, b in enumerate({b.lane: b for b in bars}.values())}
    return segments(bars, lanes, keys, scale, most)


def test_wide_bars_stay_themselves_and_narrow_neighbours_merge():
    wide = [Bar("a", 10.0 * i, 10.0 * i + 10, "", "k") for i in range(3)]
    narrow = [Bar("a", 50 + 0.1 * i, 50.1 + 0.1 * i, "", "k") for i in range(100)]
    alone = [Bar("a", 80.0, 80.1, "", "k")]
    parts = drawn(wide + narrow + alone)
    assert parts.count.tolist() == [1, 1, 1, 100, 1]
    assert parts.left[3] == pytest.approx(50.0)
    assert parts.right[3] == pytest.approx(60.0)


def test_a_pixel_has_the_colour_that_takes_most_of_it():
    bars = [Bar("a", 0.0, 0.1, "", "x"), Bar("a", 0.1, 0.45, "", "y"), Bar("a", 0.5, 0.6, "", "x")]
    parts = drawn(bars)
    assert (parts.count.tolist(), parts.colour.tolist()) == ([3], [1])


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), moments, st.floats(0, 5), st.sampled_from("xy")),
        min_size=1,
        max_size=60,
    ),
    st.floats(0.01, 10),
)
@settings(max_examples=60, deadline=None)
def test_merging_loses_no_bar_and_covers_each(raw, scale):
    bars = [Bar(lane, start, start + length, "", key) for lane, start, length, key in raw]
    parts = drawn(bars, scale)
    assert parts.count.sum() == len(bars)
    lanes = {b.lane: i for i, b in enumerate({b.lane: b for b in bars}.values())}
    for bar in bars:
        left, right = bar.start * scale, bar.finish * scale
        covers = (parts.lane == lanes[bar.lane]) & (parts.left <= left + 1e-9) & (parts.right >= right - 1e-9)
        assert covers.any()


def test_too_many_segments_are_merged_further():
    bars = [Bar("a", float(i), i + 0.9, "", "xy"[i % 2]) for i in range(10_000)]
    assert len(drawn(bars)) == 10_000
    assert len(drawn(bars, most=500)) <= 500


def test_eight_kinds_have_colours_and_the_rest_share_one():
    bars = [Bar("a", 0.0, float(i + 1), "", f"k{i:02d}") for i in range(12)]
    bars.append(Bar("a", 0.0, 99.0, "", TRANSFER))
    chosen = colours(bars)
    assert list(chosen) == [*(f"k{i:02d}" for i in range(4, 12)), OTHER, TRANSFER]
    assert len(set(chosen.values())) == 10


def test_colours_of_the_same_kinds_agree_between_charts():
    one = colours([Bar("a", 0, 1, "", "x"), Bar("a", 0, 5, "", "y")])
    other = colours([Bar("a", 0, 5, "", "y"), Bar("a", 0, 50, "", "x")])
    assert one == other


@pytest.mark.slow
@given(st.text(max_size=40), st.floats(0, 300))
@settings(max_examples=100, deadline=None)
def test_shortened_text_fits(text, room):
    short = shorten(text, 11, room)
    assert text_width(short, 11) <= room + 1e-9
    assert short in ("", text) or text.startswith(short[:-1])
