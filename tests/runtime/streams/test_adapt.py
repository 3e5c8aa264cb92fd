"""Weights that follow the speeds of copies."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.runtime.streams.adapt import Adapter
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.supervisor import StreamOptions

from .apps import carried_out
from .made import arrays, changing


class Copies:
    """Counters of a reader and two copies of `sum`, as if they were that fast."""

    def __init__(self) -> None:
        self.now = 0.0
        self.counters = {i: {"buffers_in": 0, "bytes_in": 0, "busy_ns": 0} for i in range(3)}

    def go_on(self, rates: tuple[float, float], busy: float = 1.0) -> dict[int, dict[str, Any]]:
        """A second passes, with these buffers for each second of work."""
        self.now += 1.0
        for copy, rate in zip((1, 2), rates, strict=True):
            found = self.counters[copy]
            found["buffers_in"] += int(rate * busy)
            found["bytes_in"] += int(rate * busy) * 1000
            found["busy_ns"] += int(busy * 1e9)
        return {copy: dict(found) for copy, found in self.counters.items()}


def adapter() -> Adapter:
    app = arrays(1)
    return Adapter(app, even_plan(app, {"sum": 2}, ["h"]))


def test_nothing_changes_while_copies_are_alike():
    watched, copies = adapter(), Copies()
    for second in range(600):
        noisy = (100.0 + second % 7, 100.0 - second % 5)
        assert watched.observe(copies.now, copies.go_on(noisy)) is None


def test_a_slower_copy_gets_less_after_some_confirmation():
    watched, copies = adapter(), Copies()
    for _ in range(5):
        assert watched.observe(copies.now, copies.go_on((100, 100))) is None
    found = [watched.observe(copies.now, copies.go_on((50, 100))) for _ in range(6)]
    changes = [weights for weights in found if weights is not None]
    assert found[0] is None
    assert set(changes[-1]) == {0}
    slow, fast = changes[-1][0]
    assert 0.3 < slow / fast < 0.7
    # It settles.
    assert [watched.observe(copies.now, copies.go_on((50, 100))) for _ in range(20)][5:] == [None] * 15


def test_a_filter_that_does_not_limit_is_left_alone():
    watched, copies = adapter(), Copies()
    assert [watched.observe(copies.now, copies.go_on((50, 100), busy=0.4)) for _ in range(9)] == [None] * 9


def test_a_running_pipeline_adapts(hosts):
    app = changing(700)
    progress, units = carried_out(app, {"change": 2}, hosts, StreamOptions(credits=2, adapt=True))
    assert len(units[0].results["change"]) == 700
    assert progress.adaptations >= 1
    slow, fast = (buffers for buffers, _ in progress.copies[0]["sent"])
    assert slow < 0.7 * fast


def test_without_adapt_the_plan_is_kept(hosts):
    progress, _ = carried_out(changing(100), {"change": 2}, hosts, StreamOptions(credits=2))
    assert [buffers for buffers, _ in progress.copies[0]["sent"]] == [50, 50]
    assert progress.adaptations == 0


@pytest.mark.parametrize("routing", ["round-robin", "least-loaded"])
def test_adapt_needs_planned_routing(routing):
    from headrace.model.errors import UsageError
    from headrace.streaming import stream

    with pytest.raises(UsageError, match="no effect"):
        stream(arrays(1), options=StreamOptions(routing=routing, adapt=True))
