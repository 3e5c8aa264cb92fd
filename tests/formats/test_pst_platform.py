"""Grid descriptions: platforms written as such, and lines that contradict each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.formats.pst_grid import read_grid, write_grid
from headrace.formats.pst_platform import grid_of
from headrace.formats.pst_work import write_work
from headrace.model.errors import BadFile, BadPlatform
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.model.trace import LinkTrace, Trace

SWAYING = Trace.steps([1.0, 0.2, 0.5], 5.0)


def lab(*hosts: Host, **site: object) -> Platform:
    made = Site("uw", hosts or (Host("a"),), **({"uplink": 1e4} | site))  # type: ignore[arg-type]
    return Platform((Site("home"), made), contention="fifo", origin="home", name="lab")


def test_a_platform_comes_back(tmp_path: Path) -> None:
    link = LinkTrace(Trace.steps([1e4, 2e4], 60.0), Trace.constant(0.1))
    hosts = (Host("a", load=0.25, arch=1), Host("b", load=0.25), Host("c", trace=SWAYING.starting(0.0, 2)))
    write_grid(grid_of(lab(*hosts, uplink_trace=link)), tmp_path / "grid.pst")
    script = read_grid(tmp_path / "grid.pst")
    back = script.start()
    assert [(h.name, h.arch) for h in back.hosts] == [("a", 1), ("b", 0), ("c", 0)]
    assert [h.load for h in back.hosts[:2]] == [0.25, 0.25]
    moments = [0.0, 4.0, 6.0, 11.0, 99.0]
    assert back.hosts[2].trace is not None
    assert [back.hosts[2].trace.at(t) for t in moments] == [SWAYING.at(t + 10.0) for t in moments]
    found = back.sites[1].uplink_trace
    assert found is not None
    assert [found.bandwidth.at(t) for t in moments] == [link.bandwidth.at(t) for t in moments]
    assert found.latency.at(7.0) == pytest.approx(0.1)
    assert not any(change.time > 0 for change in script.changes)


@pytest.mark.parametrize(
    ("platform", "part"),
    [
        (Platform.pairwise([1.0, 1.0], bandwidth=1e6), "lab"),
        (lab(Host("a", speed=2.0)), "host a"),
        (lab(Host("a", cores=2)), "host a"),
        (lab(Host("a", kinds={"fft": 2.0})), "host a"),
        (lab(Host("a", trace=replace(SWAYING, offset=4.0))), "a"),
        (lab(bandwidth=1e6), "site uw"),
        (lab(storage=1e9), "site uw"),
        (Platform((Site("uw", (Host("a"),), uplink=1.0),), contention="fifo", name="lab"), "lab"),
        (Platform((Site("home"), Site("uw", (Host("a"),))), (Link("home", "uw", 1e6),), origin="home"), ""),
        (Platform((Site("home"), Site("uw", (Host("a"),), uplink=1e4)), origin="home"), ""),
    ],
)
def test_what_a_grid_cannot_say_is_refused(platform: Platform, part: str) -> None:
    with pytest.raises(BadPlatform, match="a grid description cannot express") as found:
        grid_of(platform)
    assert part in found.value.where or platform.pairs is not None


@pytest.mark.parametrize("wish", [{"cores": 2}, {"release": 5.0}, {"deadline": 50.0}])
def test_an_application_cannot_say_everything(tmp_path: Path, wish: dict[str, float]) -> None:
    program = Program()
    program.task(name="t", work=1.0, **wish)  # type: ignore[arg-type]
    with pytest.raises(BadFile, match="cores, memory, resources, a release time or a deadline"):
        write_work(program, tmp_path / "w.pst")
    assert not (tmp_path / "w.pst").exists()


def test_places_of_items_cannot_be_said(tmp_path: Path) -> None:
    program = Program()
    item = program.input("i", size=5.0, sites=["uw"])
    program.task(name="t", work=1.0, inputs=[item])
    with pytest.raises(BadFile, match="'i' has its own location"):
        write_work(program, tmp_path / "w.pst")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("0:ADD_HOST <x> <h> <cpu> <0> <0>", "there is no cluster 'x' at that time"),
        ("0:ADD_CLUSTER <c> <net> <0>", "cluster 'c' is already present"),
        ("0:ADD_CLUSTER <d> <cpu> <0>", "'cpu' describes a host"),
        ("9:CHANGE_HOST_BEHAVIOR <a> <net> <0>", "'net' describes a link"),
        ("9:REMOVE_HOST <x>", "there is no host 'x'"),
        ("9:ADD_HOST <c> <a> <cpu> <0> <0>", "host 'a' is already present"),
        ("0:ADD_CLUSTER <d> <dead> <0>", "bandwidth is always 0"),
    ],
)
def test_contradictions_are_told_by_line(tmp_path: Path, event: str, said: str) -> None:
    for name, text in (("cpu", "1\n50\n"), ("net", "1\n5 1000\n"), ("dead", "1\n5 0\n")):
        (tmp_path / name).write_text(text)
    lines = ["GridDescription 1", "99:REMOVE_CLUSTER <c>", "# here", "0:ADD_CLUSTER <c> <net> <0>"]
    lines += ["0:ADD_HOST <c> <a> <cpu> <0> <0>", "", event]
    (tmp_path / "grid").write_text("\n".join(lines))
    with pytest.raises(BadPlatform) as found:
        read_grid(tmp_path / "grid")
    assert str(found.value).startswith(f"{tmp_path / 'grid'}: line 7: ")
    assert said in str(found.value)
