"""Max-min fair sharing, against the slow oracle that shares nothing with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace.arrays.compiling import entry
from headrace.arrays.fair_share import (
    FairShare,
    cut_flow,
    make_fair_share,
    next_end,
    set_capacity,
    start_flow,
    take_finished,
    update_rates,
)
from headrace.arrays.heap import NONE
from headrace.model.trace import Trace
from headrace.testing.fair_truth import Flow, finish_flows
from headrace.testing.grid_truth import Pieces

START, CUT, CAPACITY = range(3)


@entry
def run(share, pair_of, size, when, what, subject, value):
    """Apply changes in order of time; the end of each flow, inf for those that never end."""
    ends = np.full(len(size), np.inf)
    at = 0
    while True:
        now = next_end(share)
        if at < len(when):
            now = min(now, when[at])
        if now == np.inf:
            return ends
        flow = take_finished(share, now)
        while flow != NONE:
            ends[flow] = now
            flow = take_finished(share, now)
        while at < len(when) and when[at] <= now:
            if what[at] == START:
                start_flow(share, pair_of[subject[at]], subject[at], size[subject[at]], now)
            elif what[at] == CAPACITY:
                set_capacity(share, subject[at], value[at])
            elif ends[subject[at]] == np.inf:
                cut_flow(share, pair_of[subject[at]], subject[at], now)
            at += 1
        update_rates(share, now)


def simulated(share: FairShare, pair_of, size, changes: list[tuple[float, int, int, float]]) -> list[float]:
    when, what, subject, value = (np.array(column) for column in zip(*sorted(changes), strict=True))
    return run(share, pair_of, size, when, what, subject, value).tolist()


def random_routes(rng: np.random.Generator, pairs: int, links: int) -> list[tuple[int, ...]]:
    return [tuple(rng.choice(links, rng.integers(1, 4), replace=False).tolist()) for _ in range(pairs)]


@pytest.mark.parametrize("seed", range(30))
def test_flows_end_when_the_oracle_says(seed: int) -> None:
    """Flows that start and are cut at any time, on links that change their capacity, some to none."""
    rng = np.random.default_rng(seed)
    pairs, links, flows = 6, 5, 25
    routes = random_routes(rng, pairs, links)
    pair_of = rng.integers(0, pairs, flows)
    size = rng.uniform(1, 40, flows).round(seed % 3)
    start = np.sort(rng.uniform(0, 20, flows)).round(seed % 3)
    cut = np.where(rng.uniform(size=flows) < 0.2, start + rng.uniform(0.5, 9, flows), np.inf)
    step_time = np.sort(rng.uniform(1, 30, (links, 3)), axis=1)
    capacity = rng.uniform(1, 12, (links, 4)) * (rng.uniform(size=(links, 4)) > 0.15)
    capacity[:, -1] += 1.0  # everything ends at last
    ptr = np.concatenate(([0], np.cumsum([len(route) for route in routes])))
    share = make_fair_share(flows, ptr, np.concatenate(routes).astype(np.int32), capacity[:, 0])
    changes = [(float(start[f]), START, f, 0.0) for f in range(flows)]
    changes += [(float(cut[f]), CUT, f, 0.0) for f in range(flows) if cut[f] < np.inf]
    changes += [
        (float(step_time[k, i]), CAPACITY, k, float(capacity[k, i + 1]))
        for k in range(links)
        for i in range(3)
    ]
    ends = simulated(share, pair_of, size, changes)
    truth = [
        Flow(
            float(start[f]), float(size[f]), routes[pair_of[f]], over=float(cut[f]), arrived=cut[f] == np.inf
        )
        for f in range(flows)
    ]
    bandwidth = [Pieces(float(capacity[k, 0]), None) for k in range(links)]
    for k in range(links):
        for i in range(3):
            bandwidth[k].change(float(step_time[k, i]), float(capacity[k, i + 1]), Trace.constant(1.0))
    finish_flows(truth, bandwidth)
    assert ends == pytest.approx([flow.end for flow in truth], rel=1e-9)
    assert sum(end == math.inf for end in ends) < flows


def test_links_without_a_limit_take_no_time() -> None:
    share = make_fair_share(2, np.array([0, 1, 3]), np.array([0, 0, 1], np.int32), np.array([np.inf, 5.0]))
    ends = simulated(
        share, np.array([0, 1]), np.array([7.0, 10.0]), [(1.0, START, 0, 0.0), (1.0, START, 1, 0.0)]
    )
    assert ends == [1.0, 3.0]


def test_a_copy_has_its_own_flows() -> None:
    first = make_fair_share(1, np.array([0, 1]), np.array([0], np.int32), np.array([2.0]))
    second = first.copy()
    changes = [(0.0, START, 0, 0.0)]
    assert simulated(first, np.array([0]), np.array([6.0]), changes) == [3.0]
    assert simulated(second, np.array([0]), np.array([8.0]), changes) == [4.0]
