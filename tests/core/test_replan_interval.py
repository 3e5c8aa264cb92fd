"""Intervals by deviation, weights of resources, and the horizon: by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.core.replan_interval import (
    FAR,
    GROW,
    LEAST,
    MEMORY,
    MOST,
    NEAR,
    SHRINK,
    Moving,
    ReplanInterval,
    Running,
    SubTask,
)
from headrace.core.state import N_COUNTS, TRANSFERS


def view(
    running: dict[int, int], moving: list[tuple[int, int]] = (), copies: dict[int, int] | None = None
) -> Any:  # type: ignore[assignment]
    """Tasks on hosts, items on their way to places."""
    run_host, duplicate_host = np.full(10, -1), np.full(10, -1)
    for task, host in running.items():
        run_host[task] = host
    for task, host in (copies or {}).items():
        duplicate_host[task] = host
    counters = np.zeros(N_COUNTS, np.int64)
    counters[TRANSFERS] = len(moving)
    items, targets = np.array([*moving, (0, 0)]).T
    now = SimpleNamespace(
        run_host=run_host,
        duplicate_host=duplicate_host,
        counters=counters,
        live_transfers=np.arange(len(moving) + 1),
        transfer_item=items,
        transfer_target=targets,
    )
    return SimpleNamespace(state=now)


PREDICTED: list[SubTask] = [Running(0, 0), Running(1, 0), Running(2, 1), Moving(7, 1, 3)]


@pytest.mark.parametrize(
    ("now", "share"),
    [
        (view({0: 0, 1: 0, 2: 1}, [(7, 1)]), 0.0),
        (view({0: 0, 1: 0, 2: 1}), 0.25),  # the transfer is over, or has not begun
        (view({0: 0, 1: 0, 2: 1}, [(7, 2)]), 0.25),  # it goes elsewhere
        (view({0: 0, 1: 1, 2: 1}, [(7, 1)]), 0.25),  # one task runs on another host
        (view({0: 0, 5: 0, 6: 1}, [(7, 1)]), 0.5),  # others run there
        (view({0: 0, 1: 0, 2: 0}, [(7, 1)], {2: 1}), 0.0),  # a copy of it runs there
        (view({}), 1.0),
    ],
)
def test_the_deviation_is_the_share_of_wrong_predictions(now: Any, share: float) -> None:
    assert ReplanInterval("S2", 0.3, 1.0).deviation(now, PREDICTED) == pytest.approx(share)


def test_s3_counts_each_resource_by_how_far_it_is_trusted() -> None:
    interval = ReplanInterval("S3", 0.3, 1.0)
    half = view({0: 0, 1: 0})
    assert interval.deviation(half, PREDICTED) == pytest.approx(0.5)
    assert interval.trust == {("host", 0): 1.0, ("host", 1): 1 - MEMORY, ("link", 3): 1 - MEMORY}
    low = 1 - MEMORY
    assert interval.deviation(half, PREDICTED) == pytest.approx(2 * low / (2 + 2 * low))
    assert interval.trust[("host", 1)] == pytest.approx(low**2)


def test_half_the_grid_unstable_keeps_s2_short_and_lets_s3_grow() -> None:
    """The paper's example: half the resources are always as predicted, half never are."""
    predicted: list[SubTask] = [Running(task, task) for task in range(8)]
    now = view({task: task for task in range(4)})
    short, grown = ReplanInterval("S2", 0.3, 1.0), ReplanInterval("S3", 0.3, 1.0)
    for interval in (short, grown):
        interval.begin(100.0)
        for _ in range(20):
            interval.compare(now, predicted)
    assert short.seconds == LEAST * 100.0
    assert grown.seconds > 100.0


def test_the_interval_grows_slowly_and_shrinks_fast_within_bounds() -> None:
    assert GROW - 1 < 1 - SHRINK
    right, wrong = view({0: 0, 1: 0, 2: 1}, [(7, 1)]), view({})
    interval = ReplanInterval("S2", 0.3, 1.0)
    interval.begin(40.0)
    interval.compare(right, PREDICTED)
    assert interval.seconds == GROW * 40.0
    interval.compare(wrong, PREDICTED)
    assert interval.seconds == SHRINK * GROW * 40.0
    for _ in range(40):
        interval.compare(wrong, PREDICTED)
    assert interval.seconds == LEAST * 40.0
    for _ in range(60):
        interval.compare(right, PREDICTED)
    assert interval.seconds == MOST * 40.0
    interval.compare(right, [])
    assert interval.seconds == MOST * 40.0


def test_at_the_threshold_the_interval_still_grows() -> None:
    interval = ReplanInterval("S2", 0.25, 1.0)
    interval.begin(10.0)
    interval.compare(view({0: 0, 1: 0, 2: 1}), PREDICTED)
    assert interval.seconds == GROW * 10.0


def test_constant_intervals_stay() -> None:
    interval = ReplanInterval("S1", 0.3, 1.0)
    interval.begin(10.0)
    interval.compare(view({}), PREDICTED)
    assert interval.seconds == 10.0


def test_a_tuned_horizon_begins_far_and_comes_near_while_nobody_runs_dry() -> None:
    interval = ReplanInterval("S1", 0.3, "tuned")
    assert interval.reach == FAR
    interval.tune(False)
    assert NEAR < interval.reach < FAR
    nearer = interval.reach
    interval.tune(True)
    assert interval.reach > nearer
    for _ in range(40):
        interval.tune(False)
    assert interval.reach == NEAR
    for _ in range(9):
        interval.tune(True)
    assert interval.reach == FAR


def test_a_fixed_horizon_stays() -> None:
    interval = ReplanInterval("S1", 0.3, 1.5)
    interval.tune(True)
    assert interval.reach == 1.5
