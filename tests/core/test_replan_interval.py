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
from headrace.core.state import MOVES, N_COUNTS


def state(
    running: dict[int, int], moving: list[tuple[int, int]] = (), copies: dict[int, int] | None = None
) -> Any:  # type: ignore[assignment]
    """Tasks on hosts, items on their way to places."""
    run_host, duplicate_host = np.full(10, -1), np.full(10, -1)
    for task, host in running.items():
        run_host[task] = host
    for task, host in (copies or {}).items():
        duplicate_host[task] = host
    count = np.zeros(N_COUNTS, np.int64)
    count[MOVES] = len(moving)
    items, targets = np.array([*moving, (0, 0)]).T
    desk = SimpleNamespace(
        run_host=run_host,
        duplicate_host=duplicate_host,
        count=count,
        live_transfers=np.arange(len(moving) + 1),
        transfer_item=items,
        transfer_target=targets,
    )
    return SimpleNamespace(desk=desk)


FORESEEN: list[SubTask] = [Running(0, 0), Running(1, 0), Running(2, 1), Moving(7, 1, 3)]


@pytest.mark.parametrize(
    ("now", "share"),
    [
        (state({0: 0, 1: 0, 2: 1}, [(7, 1)]), 0.0),
        (state({0: 0, 1: 0, 2: 1}), 0.25),  # the transfer is over, or has not begun
        (state({0: 0, 1: 0, 2: 1}, [(7, 2)]), 0.25),  # it goes elsewhere
        (state({0: 0, 1: 1, 2: 1}, [(7, 1)]), 0.25),  # one task runs on another host
        (state({0: 0, 5: 0, 6: 1}, [(7, 1)]), 0.5),  # others run there
        (state({0: 0, 1: 0, 2: 0}, [(7, 1)], {2: 1}), 0.0),  # a copy of it runs there
        (state({}), 1.0),
    ],
)
def test_the_deviation_is_the_share_of_wrong_predictions(now: Any, share: float) -> None:
    assert ReplanInterval("S2", 0.3, 1.0).deviation(now, FORESEEN) == pytest.approx(share)


def test_s3_counts_each_resource_by_how_far_it_is_trusted() -> None:
    pace = ReplanInterval("S3", 0.3, 1.0)
    half = state({0: 0, 1: 0})
    assert pace.deviation(half, FORESEEN) == pytest.approx(0.5)
    assert pace.trust == {("host", 0): 1.0, ("host", 1): 1 - MEMORY, ("link", 3): 1 - MEMORY}
    low = 1 - MEMORY
    assert pace.deviation(half, FORESEEN) == pytest.approx(2 * low / (2 + 2 * low))
    assert pace.trust[("host", 1)] == pytest.approx(low**2)


def test_half_the_grid_unstable_keeps_s2_short_and_lets_s3_grow() -> None:
    """The paper's example: half the resources are always as foreseen, half never are."""
    foreseen: list[SubTask] = [Running(task, task) for task in range(8)]
    now = state({task: task for task in range(4)})
    short, grown = ReplanInterval("S2", 0.3, 1.0), ReplanInterval("S3", 0.3, 1.0)
    for pace in (short, grown):
        pace.begin(100.0)
        for _ in range(20):
            pace.compare(now, foreseen)
    assert short.interval == LEAST * 100.0
    assert grown.interval > 100.0


def test_the_interval_grows_slowly_and_shrinks_fast_within_bounds() -> None:
    assert GROW - 1 < 1 - SHRINK
    right, wrong = state({0: 0, 1: 0, 2: 1}, [(7, 1)]), state({})
    pace = ReplanInterval("S2", 0.3, 1.0)
    pace.begin(40.0)
    pace.compare(right, FORESEEN)
    assert pace.interval == GROW * 40.0
    pace.compare(wrong, FORESEEN)
    assert pace.interval == SHRINK * GROW * 40.0
    for _ in range(40):
        pace.compare(wrong, FORESEEN)
    assert pace.interval == LEAST * 40.0
    for _ in range(60):
        pace.compare(right, FORESEEN)
    assert pace.interval == MOST * 40.0
    pace.compare(right, [])
    assert pace.interval == MOST * 40.0


def test_at_the_threshold_the_interval_still_grows() -> None:
    pace = ReplanInterval("S2", 0.25, 1.0)
    pace.begin(10.0)
    pace.compare(state({0: 0, 1: 0, 2: 1}), FORESEEN)
    assert pace.interval == GROW * 10.0


def test_constant_intervals_stay() -> None:
    pace = ReplanInterval("S1", 0.3, 1.0)
    pace.begin(10.0)
    pace.compare(state({}), FORESEEN)
    assert pace.interval == 10.0


def test_a_tuned_horizon_begins_far_and_comes_near_while_nobody_runs_dry() -> None:
    pace = ReplanInterval("S1", 0.3, "tuned")
    assert pace.reach == FAR
    pace.tune(False)
    assert NEAR < pace.reach < FAR
    nearer = pace.reach
    pace.tune(True)
    assert pace.reach > nearer
    for _ in range(40):
        pace.tune(False)
    assert pace.reach == NEAR
    for _ in range(9):
        pace.tune(True)
    assert pace.reach == FAR


def test_a_fixed_horizon_stays() -> None:
    pace = ReplanInterval("S1", 0.3, 1.5)
    pace.tune(True)
    assert pace.reach == 1.5
