"""Rates of `headrace stream --live`: those of the latest seconds, from totals."""

from __future__ import annotations

import json

import pytest

from headrace.commands.stream_live import WINDOW, LiveRates, live_lines
from headrace.runtime.filters import App, Filter, Reader
from headrace.runtime.streams.counters import FIELDS
from headrace.runtime.streams.plan import Place, make_plan
from headrace.runtime.streams.progress import Progress


def two() -> App:
    app = App("two")
    app.filter("read", Reader)
    app.filter("add", Filter, inputs=["read"])
    return app


def started(app: App) -> Progress:
    plan = make_plan(
        app,
        [Place("read", "a", 1, 1.0), Place("add", "b", 1, 1.0)],
        {("read", "add"): {("a", "b"): 2.0}},
        2.0,
    )
    return Progress(plan, began=100.0, since=100.0)


def advance(progress: Progress, seconds: float, sent: int, busy: float) -> None:
    """What was measured by then, since the start."""
    counters = dict.fromkeys(FIELDS, 0)
    progress.copies = {
        0: counters | {"bytes_out": sent, "sent": [(1, sent)]},
        1: counters | {"bytes_in": sent, "busy_ns": int(busy * 1e9), "sent": []},
    }
    progress.samples.append((progress.since + seconds, sent, sent))


def test_rates_are_those_of_the_latest_seconds():
    app = two()
    rates, progress = LiveRates(app), started(app)
    for second in range(1, 11):
        advance(progress, second, 1_000_000 * second, 0.5 * second)
        state = rates.state(progress)
    (flow,) = state["flows"]
    assert (flow["source"], flow["target"], flow["planned"]) == ("a", "b", 2.0)
    assert flow["measured"] == pytest.approx(1.0)
    for second in range(11, 11 + int(WINDOW) + 1):  # three times as fast from now on
        advance(progress, second, 10_000_000 + 3_000_000 * (second - 10), 5.0 + (second - 10))
        state = rates.state(progress)
    assert state["flows"][0]["measured"] == pytest.approx(3.0)
    assert state["rate"] == pytest.approx(3.0)
    assert [copy["busy"] for copy in state["copies"]] == pytest.approx([0.0, 1.0])


def test_other_copies_begin_again():
    app = two()
    rates, progress = LiveRates(app), started(app)
    for second in range(1, 6):
        advance(progress, second, 9_000_000 * second, 0.0)
        rates.state(progress)
    progress.redeployments, progress.since = 1, 105.0
    advance(progress, 1.0, 2_000_000, 0.0)
    assert rates.state(progress)["flows"][0]["measured"] == pytest.approx(2.0)


def test_planned_rates_are_scaled_with_the_platform():
    app = two()
    progress = started(app)
    advance(progress, 1.0, 1_000_000, 0.0)
    assert LiveRates(app, slower=4.0).state(progress)["flows"][0]["planned"] == 0.5


def test_a_line_is_json(capsys: pytest.CaptureFixture[str]):
    app = two()
    progress = started(app)
    with live_lines(app) as observe:
        observe(progress)  # nothing was measured yet
        advance(progress, 1.0, 1_000_000, 0.0)
        observe(progress)
        observe(progress)  # within a second
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["live"]["flows"][0]["measured"] == pytest.approx(1.0)
