"""Weights that follow the speeds of copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.streams.adapt import Adapter, refit
from headrace.runtime.streams.capacities import Capacities
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan

from .apps import carried_out
from .made import arrays, changing


class Copies:
    """A reader and two copies of `sum`, as if they were that fast, and what watches them."""

    def __init__(self) -> None:
        app = arrays(1)
        plan = even_plan(app, {"sum": 2}, ["h"])
        self.now = 0.0
        self.capacities = Capacities(app, plan)
        self.adapter = Adapter(app, plan)
        names = ("buffers_in", "bytes_in", "buffers_out", "bytes_out", "busy_ns")
        self.counters = {i: dict.fromkeys(names, 0) for i in range(3)}

    def go_on(self, rates: tuple[float, float], busy: float = 1.0) -> dict[int, list[float]] | None:
        """A second passes, with these buffers for each second of work: the weights that change."""
        self.now += 1.0
        for copy, rate in zip((1, 2), rates, strict=True):
            found = self.counters[copy]
            found["buffers_in"] += int(rate * busy)
            found["bytes_in"] += int(rate * busy) * 1000
            found["busy_ns"] += int(busy * 1e9)
        counters = {copy: dict(found) for copy, found in self.counters.items()}
        return self.adapter.observe(self.capacities) if self.capacities.update(self.now, counters) else None


def test_nothing_changes_while_copies_are_alike():
    copies = Copies()
    for second in range(600):
        assert copies.go_on((100.0 + second % 7, 100.0 - second % 5)) is None


def test_one_outlier_changes_nothing():
    copies = Copies()
    for second in range(60):
        assert copies.go_on((30.0 if second % 10 == 5 else 100.0, 100.0)) is None


def test_a_slower_copy_gets_less_after_some_confirmation():
    copies = Copies()
    for _ in range(5):
        assert copies.go_on((100, 100)) is None
    found = [copies.go_on((50, 100)) for _ in range(20)]
    assert found[:2] == [None, None]
    (change,) = (weights for weights in found if weights is not None)
    assert set(change) == {0}
    assert change[0] == pytest.approx([1 / 3, 2 / 3])


def test_a_filter_that_does_not_limit_is_left_alone():
    copies = Copies()
    assert [copies.go_on((50, 100), busy=0.4) for _ in range(9)] == [None] * 9


@given(data=st.data(), senders=st.integers(1, 4), targets=st.integers(1, 4))
def test_refitted_weights_give_each_target_its_share(data, senders, targets):
    positive = st.floats(0.05, 1.0)
    weights = [data.draw(st.lists(positive, min_size=targets, max_size=targets)) for _ in range(senders)]
    parts, shares = (
        [part / sum(drawn) for part in drawn]
        for drawn in (data.draw(st.lists(positive, min_size=n, max_size=n)) for n in (senders, targets))
    )
    fitted = refit(weights, parts, shares)
    assert all(sum(row) == pytest.approx(1.0) for row in fitted)
    for number, share in enumerate(shares):
        got = sum(part * row[number] for part, row in zip(parts, fitted, strict=True))
        assert got == pytest.approx(share, abs=1e-3)


def test_targets_that_a_sender_avoids_stay_avoided():
    near = refit([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [2 / 3, 1 / 3], [0.2, 0.467, 0.333])
    assert near[0][2] == near[1][0] == near[1][1] == 0.0
    assert near[0][0] == pytest.approx(0.3, abs=0.01)


@pytest.mark.slow
def test_a_running_pipeline_adapts(hosts):
    app = changing(700)
    progress, units = carried_out(app, {"change": 2}, hosts, StreamOptions(credits=2, adapt=True))
    assert len(units[0].results["change"]) == 700
    assert progress.adaptations >= 1
    slow, fast = (buffers for buffers, _ in progress.copies[0]["sent"])
    assert slow < 0.7 * fast


def test_without_adapt_the_plan_is_kept(hosts):
    progress, _ = carried_out(changing(30), {"change": 2}, hosts, StreamOptions(credits=2))
    assert [buffers for buffers, _ in progress.copies[0]["sent"]] == [15, 15]
    assert progress.adaptations == 0


@pytest.mark.parametrize("routing", ["round-robin", "least-loaded"])
def test_adapt_needs_planned_routing(routing):
    from headrace.model.errors import UsageError
    from headrace.streaming import stream

    with pytest.raises(UsageError, match="no effect"):
        stream(arrays(1), options=StreamOptions(routing=routing, adapt=True))
