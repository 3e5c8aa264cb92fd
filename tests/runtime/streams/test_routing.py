"""Routers: proportions, bounds, determinism."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import UsageError
from headrace.runtime.streams.routing import LeastLoaded, Planned, RoundRobin, make_router

weights = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=12)


@given(weights, st.integers(0, 40))
def test_planned_deviates_by_less_than_one_buffer(weights, skip):
    router = Planned(weights, skip=0)
    total, bound = sum(weights), 1 - 1 / (2 * len(weights) - 2) if len(weights) > 1 else 0.0
    sent = [0] * len(weights)
    for step in range(1, 200):
        sent[router.choose([1] * len(weights))] += 1
        for count, weight in zip(sent, weights, strict=True):
            assert abs(count - weight / total * step) <= bound + 1e-6
    first = [Planned(weights, skip=skip).choose([1] * len(weights)) for _ in range(2)]
    assert first[0] == first[1]


@given(weights, st.integers(0, 30))
def test_skip_begins_later_in_the_same_sequence(weights, skip):
    ones = [1] * len(weights)
    plain, later = Planned(weights), Planned(weights, skip=skip)
    sequence = [plain.choose(ones) for _ in range(skip + 10)]
    assert [later.choose(ones) for _ in range(10)] == sequence[skip:]


def test_weight_zero_gets_nothing():
    router = Planned([0.0, 1.0, 0.0, 3.0])
    assert {router.choose([9] * 4) for _ in range(50)} == {1, 3}


def test_planned_waits_for_the_target_whose_turn_it_is():
    credits = [0, 5]
    assert Planned([1, 1]).choose(credits) == 0
    conserving = Planned([1, 1], work_conserving=True)
    assert [conserving.choose(credits) for _ in range(3)] == [1, 1, 1]
    # The one passed over catches up.
    assert [conserving.choose([5, 5]) for _ in range(3)] == [0, 0, 0]


def test_new_weights_hold_from_the_next_buffer_on():
    router = Planned([1, 1])
    router.choose([1, 1])
    router.set_weights([0, 1])
    assert [router.choose([1, 1]) for _ in range(3)] == [1, 1, 1]


def test_others():
    assert [RoundRobin(2).choose([0, 9]) for _ in range(2)] == [0, 0]
    loads = LeastLoaded(3)
    assert [loads.choose([2, 2, 2]) for _ in range(4)] == [0, 1, 2, 0]
    assert loads.choose([0, 1, 4]) == 2


@pytest.mark.parametrize("bad", [[0.0, 0.0], [-1.0, 2.0], [float("nan")], [float("inf")]])
def test_bad_weights_are_refused(bad):
    with pytest.raises(UsageError, match="routing weights"):
        Planned(bad)


def test_unknown_routing_is_refused():
    with pytest.raises(UsageError, match="use one of planned"):
        make_router("random", [1.0])  # type: ignore[arg-type]
