"""Links from transfers: of machines, and of platforms as they are described."""

from __future__ import annotations

import math

import pytest

from headrace.model.machines import ASSUMED_BANDWIDTH, MachineLinks, platform_of_machines
from headrace.model.platform import Host, Platform
from headrace.predict.link_fit import fit_links
from headrace.predict.links import Transfer, refine_links

MACHINE = {"a": "A", "b": "B", "c": "C", "c2": "C"}


def moved(source: str, target: str, rate: float, count: int = 5, size: float = 1e6) -> list[Transfer]:
    return [Transfer(source, target, float(k), k + size / rate, size) for k in range(count)]


def test_a_port_is_as_fast_as_its_best_pair():
    seen = moved("a", "b", 1e6) + moved("a", "c", 8e6) + moved("c", "b", 1e6)
    links = {one.machine: one for one in refine_links(map(MachineLinks, "ABC"), seen, MACHINE).links}
    assert links["A"].up == pytest.approx(8e6)
    assert links["B"].down == pytest.approx(1e6)
    assert links["C"].down == pytest.approx(8e6)
    assert links["A"].down is None


def test_transfers_that_were_slowed_down_do_not_count():
    seen = moved("a", "b", 8e6, count=3) + moved("a", "b", 1e6, count=7)
    (link,) = refine_links([MachineLinks("A")], seen, MACHINE).links
    assert link.up == pytest.approx(8e6)


def test_a_probe_and_transfers_are_averaged_and_few_transfers_ignored():
    (link,) = refine_links([MachineLinks("A", up=2e6)], moved("a", "b", 8e6), MACHINE).links
    assert link.up == pytest.approx(4e6)
    (link,) = refine_links([MachineLinks("A", up=2e6)], moved("a", "b", 8e6, count=4), MACHINE).links
    assert link.up == 2e6


def test_items_of_one_request_count_together():
    parts = [Transfer("a", "b", float(k), k + 1.0, 2e5) for k in range(5) for _ in range(4)]
    refined = refine_links([MachineLinks("A")], parts, MACHINE)
    assert refined.transfers == 5
    assert refined.links[0].up == pytest.approx(8e5)


def test_small_transfers_tell_the_latency_inside_and_between():
    small = [Transfer("c", "c2", float(k), k + 0.002, 10.0) for k in range(5)]
    small += [Transfer("a", "b", float(k), k + 0.05, 10.0) for k in range(5)]
    (link,) = refine_links([MachineLinks("C")], small, MACHINE).links
    assert (link.inside_latency, link.latency) == (pytest.approx(0.002), pytest.approx(0.05))


def machines(**links: MachineLinks) -> Platform:
    return platform_of_machines(
        {"A": [Host("a")], "B": [Host("b")], "C": [Host("c"), Host("c2")]}, links.values(), "lab"
    )


def test_a_platform_of_machines_has_the_bandwidth_and_latency_that_were_measured():
    lab = machines(
        A=MachineLinks("A", up=1e6, down=2e6, latency=0.01),
        B=MachineLinks("B", up=3e6, down=4e6, latency=0.03),
        C=MachineLinks("C", up=5e6, down=6e6, latency=0.05, inside=9e8, inside_latency=0.001),
    )
    network, place = lab.network, lab.place_of
    assert network.bandwidth(place["a"], place["b"]) == 1e6
    assert network.bandwidth(place["c"], place["a"]) == 2e6
    assert network.bandwidth(place["c"], place["c2"]) == 9e8
    assert network.latency(place["a"], place["b"]) == pytest.approx(0.02)
    assert network.latency(place["a"], place["c2"]) == pytest.approx(0.03)
    assert network.latency(place["c"], place["c2"]) == pytest.approx(0.001)


def test_what_is_not_known_is_the_median_of_what_is_or_assumed():
    lab = machines(A=MachineLinks("A", up=1e6), B=MachineLinks("B", up=3e6))
    up = {link.source: link.bandwidth for link in lab.links if link.target == "switch"}
    assert up == {"A": 1e6, "B": 3e6, "C": 2e6}
    assert {link.bandwidth for link in lab.links if link.source == "switch"} == {ASSUMED_BANDWIDTH}


def test_no_plan_leaves_copies_at_the_switch():
    import headrace as hr

    program = hr.Program()
    item = program.task(None, name="first", work=1.0, outputs={"x": 5e6})
    for k in range(6):
        program.task(None, name=f"t{k}", inputs=[item], work=20.0)
    lab = machines(A=MachineLinks("A", up=1e6, down=1e6))
    for name in ("heft", "auto"):
        assert "switch" not in {move.target for move in hr.plan(program, lab, name).transfers()}


def test_sites_and_machines_may_have_the_names_of_workers():
    lab = platform_of_machines({"w": [Host("w")], "v": [Host("switch")]}, (), "lab")
    assert [host.name for host in lab.hosts] == ["w", "switch"]


def test_links_of_any_platform_are_fitted():
    pairs, links = fit_links(Platform.pairwise([1, 1, 1], bandwidth=1e6), moved("h0", "h1", 4e6))
    assert links == 1
    assert pairs.network.bandwidth(0, 1) == pytest.approx(4e6)
    assert pairs.network.bandwidth(1, 0) == 1e6
    lab, links = fit_links(machines(A=MachineLinks("A", up=1e6)), moved("a", "c", 5e5))
    assert links == 1
    assert lab.network.bandwidth(lab.place_of["a"], lab.place_of["c"]) == pytest.approx(5e5, rel=0.01)
    assert math.isfinite(lab.network.bandwidth(lab.place_of["b"], lab.place_of["a"]))
