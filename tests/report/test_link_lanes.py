"""Lanes of links: every transfer is in a lane of each link on its way, and those in one lane do not overlap."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from headrace.api import plan as make_plan
from headrace.report import link_lanes as module
from headrace.report.resources import link_labels
from headrace.report.schedule_data import plan_data
from headrace.report.timeline import Timeline
from headrace.testing.generate import NETWORKS, random_platform, random_program


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("seed", range(3))
def test_each_transfer_is_on_all_links_of_its_way(seed: int, network: str):
    plan = make_plan(random_program(seed, 60), random_platform(seed, network), "heft")
    line = Timeline.of_plan(plan)
    lanes = module.link_lanes(line, range(len(line.activities)))
    found = Counter((label, bar) for label, bars in lanes for bar in bars)
    assert all(count == 1 for count in found.values())
    net, labels = plan.platform.network, link_labels(plan.platform)
    places = {name: number for number, name in enumerate(net.place_names)}
    expected = {
        (labels[link], i)
        for i, move in enumerate(line.activities)
        if not move.is_task
        for link in net.route(places[move.source], places[move.place])
    }
    assert set(found) == expected


def test_transfers_in_one_lane_do_not_overlap():
    """Except in the last of several lanes of a link, which all that are left share."""
    platform = replace(random_platform(1, "uplinks"), contention="fifo")
    plan = make_plan(random_program(1, 200), platform, "heft")
    line = Timeline.of_plan(plan)
    lanes = module.link_lanes(line, range(len(line.activities)))
    count = Counter(label for label, _ in lanes)
    assert 1 in count.values()
    for label, bars in lanes:
        if count[label] == module.MOST_ROWS:
            continue
        spans = sorted((line.activities[bar].start, line.activities[bar].finish) for bar in bars)
        assert all(a[1] <= b[0] + line.slack for a, b in pairwise(spans))


def test_too_many_transfers_have_no_lanes(monkeypatch: pytest.MonkeyPatch):
    plan = make_plan(random_program(1, 60), random_platform(1, "uplinks"), "heft")
    assert plan_data(plan)["links"]
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    assert plan_data(plan)["links"] == []
