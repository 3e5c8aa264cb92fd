"""Lanes of links: every transfer is in a lane of each link on its way, and those in one lane do not overlap."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

import headrace as hr
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
    found = Counter((label, bar) for label, bars, _ in lanes for bar in bars)
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
    count = Counter(label for label, *_ in lanes)
    assert 1 in count.values()
    for label, bars, ends in lanes:
        if count[label] == module.MOST_ROWS:
            continue
        spans = sorted((line.activities[bar].start, end) for bar, end in zip(bars, ends, strict=True))
        assert all(a[1] <= b[0] + line.slack for a, b in pairwise(spans))


def test_fast_links_are_free_before_the_transfer_ends():
    """3 MB at 1 MB/s over the uplink, but through a port of 3 MB/s."""
    sites = [
        hr.Site("a", [hr.Host("a0")], bandwidth="3 MB/s", uplink="1 MB/s"),
        hr.Site("b", [hr.Host("b0")], bandwidth="3 MB/s", uplink="1 MB/s"),
    ]
    program = hr.Program("one")
    first = program.task(None, name="x", work=1.0, outputs={"d": "3 MB"})
    program.task(None, name="y", work=1.0, inputs=[first])
    plan = make_plan(program, hr.Platform(sites, contention="fifo"), "round-robin")
    line = Timeline.of_plan(plan)
    lanes = {label: ends for label, _, ends in module.link_lanes(line, range(len(line.activities)))}
    assert sorted(ends[0] for ends in lanes.values()) == pytest.approx([2.0, 2.0, 4.0, 4.0])


def test_too_many_transfers_have_no_lanes(monkeypatch: pytest.MonkeyPatch):
    plan = make_plan(random_program(1, 60), random_platform(1, "uplinks"), "heft")
    assert plan_data(plan)["links"]
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    assert plan_data(plan)["links"] == []
