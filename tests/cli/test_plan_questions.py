"""`headrace plan --what-if` and `--why-not`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli.command import headrace
from headrace.commands.changed_platform import changed_platform
from headrace.commands.plan import PlanOptions
from headrace.commands.plan_questions import what_if
from headrace.commands.what_if import parse_change
from headrace.core.scheduler import Problem
from headrace.formats.loading import load_program
from headrace.model.errors import UsageError
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.coschedule.planner import Coschedule
from headrace.planners.coschedule.why_not import why_not
from headrace.planners.registry import make
from planners.coschedule.cases import rich_case

JOBS = """name,duration,input,input_size,sources,output_size,destinations
a,10,in0,10,store,10,store
b,10,in1,10,store,10,store
c,20,in2,10,store,10,store
"""
GRID = """name = "g"
contention = "fifo"
routing = "links"
[[site]]
name = "store"
[[site]]
name = "near"
[[site.host]]
name = "n1"
cores = 1
[[site]]
name = "far-away"
storage = 15
[[site.host]]
name = "f1"
cores = 8
[[link]]
from = "store"
to = "near"
bandwidth = 10
[[link]]
from = "store"
to = "far-away"
bandwidth = 0.01
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "grid.toml").write_text(GRID)
    return [str(tmp_path / "jobs.csv"), "--on", str(tmp_path / "grid.toml")]


def lab() -> Platform:
    sites = (Site("s", (Host("a", 2.0, 4), Host("b", kinds={"fft": 3.0})), storage=10.0), Site("t"))
    return Platform(sites, (Link("s", "t", 10.0),), routing="links")


def solve(graph: Graph, platform: Platform) -> Plan:
    return Coschedule(time=1.0).plan(Problem(graph, platform))


def slowly(graph: Graph, platform: Platform) -> Plan:
    """All jobs at one site, the last one there is."""
    return make("local").plan(Problem(graph, platform))


def one() -> Graph:
    """One task of 8 seconds without data."""
    program = Program("one")
    program.task(None, work=8.0, outputs=["x"], name="t")
    return program.graph


@pytest.mark.parametrize(
    ("change", "read", "value"),
    [
        ("host a", lambda p: [h.name for h in p.hosts], ["a", "b", "a+1"]),
        ("host b x2", lambda p: (p.hosts[1].speed, p.hosts[1].kinds["fft"]), (2.0, 6.0)),
        ("without host b", lambda p: [h.name for h in p.hosts], ["a"]),
        ("link s-t x3", lambda p: p.links[0].bandwidth, 30.0),
        ("link t-s +5B/s", lambda p: p.links[0].bandwidth, 15.0),
        ("without link s-t", lambda p: p.links, ()),
        ("disk s x2", lambda p: p.sites[0].storage, 20.0),
        ("disk s +1kB", lambda p: p.sites[0].storage, 1010.0),
        ("cores s +3", lambda p: [h.cores for h in p.hosts], [6, 2]),
        ("cores s x0.5", lambda p: [h.cores for h in p.hosts], [2, 1]),
        ("without site t", lambda p: ([s.name for s in p.sites], p.links), (["s"], ())),
    ],
)
def test_each_change(change: str, read: object, value: object) -> None:
    assert callable(read)
    assert read(changed_platform(lab(), parse_change(change))) == value


def test_one_more_host_among_pairs_has_the_links_of_its_twin() -> None:
    more = changed_platform(Platform.pairwise([2.0, 1.0], [[1.0, 5.0], [7.0, 1.0]]), parse_change("host h1"))
    assert [h.name for h in more.hosts] == ["h0", "h1", "h1+1"]
    assert more.network.bandwidth(0, 2) == 5.0
    assert more.network.bandwidth(2, 0) == 7.0
    assert more.network.bandwidth(1, 2) == 7.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("host c", "no host 'c'"),
        ("link s-u x2", "no link 's-u'"),
        ("disk u x2", "no site 'u'"),
        ("cores t +1", "site 't' has no hosts"),
        ("without site u", "no site 'u'"),
        ("link s-hub x2", "no link 's-hub'"),
    ],
)
def test_unknown_names_are_said(change: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        changed_platform(lab(), parse_change(change))


@pytest.mark.parametrize("seed", range(4))
def test_what_if_is_the_changed_problem_solved_from_scratch(seed: int) -> None:
    program, platform = rich_case(seed)
    link = platform.links[0]
    change = f"link {link.source}-{link.target} x2"
    answer = what_if(program.graph, platform, [change], solve)[0]
    fresh = solve(program.graph, changed_platform(platform, parse_change(change)))
    assert answer.makespan == fresh.makespan


def test_a_faster_link_may_attract_transfers_to_one_that_is_in_use() -> None:
    """Then x goes over b, and shares the link to c with y."""
    platform = Platform(
        (Site("a"), Site("b"), Site("c", (Host("n", cores=2),))),
        (Link("a", "c", 1e6), Link("a", "b", 1e6), Link("b", "c", 1.5e6)),
        contention="fifo",
    )
    program = Program("two")
    program.task(None, inputs=[program.input("x", size=10e6, sites=["a"])], work=1, name="j1")
    program.task(None, inputs=[program.input("y", size=15e6, sites=["b"])], work=1, name="j2")
    present = solve(program.graph, platform)
    assert present.makespan == pytest.approx(11)
    attracted, unused = what_if(program.graph, platform, ["link a-b x10", "link a-b x1.1"], solve, present)
    assert attracted.makespan == attracted.bound == pytest.approx(10 + 10 / 1.5 + 1)
    assert unused.makespan == pytest.approx(11)


def test_no_answer_is_longer_than_a_plan_that_remains_possible(files: list[str]) -> None:
    graph, platform = load_program(files[0]).graph, Platform.read(files[2])
    present = solve(graph, platform)
    assert present.makespan == pytest.approx(42.0)  # all at n1

    def badly(graph: Graph, changed: Platform) -> Plan:
        return slowly(graph, replace(changed, links=tuple(replace(x, bandwidth=1.0) for x in changed.links)))

    changes = ["cores near +1", "link store-near x0.9", "without host f1", "disk far-away x0.1"]
    more, slower, fewer, smaller = what_if(graph, platform, changes, badly, present)
    for answer in (more, fewer, smaller):
        assert answer.makespan == present.makespan < (answer.longer or 0.0)
    assert "as long: planning again found 60 s" in fewer.row(42.0)[1]
    assert slower.longer is None
    assert slower.makespan == pytest.approx(60.0)
    alone = what_if(graph, platform, ["cores near +1"], badly)[0]
    assert alone.makespan == alone.facts()["new_plan"] > present.makespan


def test_a_shorter_plan_that_needs_no_change_is_said_to_be_possible_now(files: list[str]) -> None:
    graph = load_program(files[0]).graph
    platform = changed_platform(Platform.read(files[2]), parse_change("cores near +1"))
    present = solve(replace(graph, release=np.full(graph.n_tasks, 5.0)), platform)
    fewer, wider = what_if(graph, platform, ["without host f1", "link store-near x2"], solve, present)
    assert fewer.possible_now
    assert "possible now as well: increase --time" in fewer.row(present.makespan)[1]
    assert not wider.possible_now


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_fair_links_may_make_a_plan_longer(contention: str) -> None:
    """The wider link is used, and the plan for it is made to be late."""
    program = Program("one")
    program.input("in", size=20.0, sites=["t"])
    program.task(None, inputs=["in"], outputs=["x"], work=8.0, name="t")
    platform = replace(
        lab(), contention=contention, sites=(replace(lab().sites[0], storage=99.0), lab().sites[1])
    )
    graph = program.graph
    present = solve(graph, platform)
    late = replace(graph, release=np.array([50.0]))
    answer = what_if(graph, platform, ["link s-t x2"], lambda g, p: solve(late, p), present)[0]
    assert (answer.makespan == present.makespan) == (contention == "fifo")


def test_files_at_several_sites_survive_the_loss_of_one() -> None:
    """The results may go to either site, and one input is at both; the other is lost with its site."""
    program = Program("two")
    program.input("both", size=5.0, sites=["s", "t"])
    made = program.task(None, inputs=["both"], outputs={"r": 1.0}, work=8.0, name="one")
    program.output(made, sites=["t", "s"])
    platform = replace(lab(), sites=(lab().sites[0], Site("t", (Host("c"),))))
    gone, kept = what_if(program.graph, platform, ["without site s", "without host a"], solve)
    assert gone.makespan == pytest.approx(8.0)
    assert kept.makespan == pytest.approx(8.0)
    program.input("single", size=5.0, sites=["s"])
    program.task(None, inputs=["single"], outputs=["x"], work=1.0, name="two")
    lost = what_if(program.graph, platform, ["without site s"], solve)[0]
    assert lost.makespan is None
    assert lost.said == "item 'single' is stored only at s"


def test_a_result_without_a_destination_is_said() -> None:
    program = Program("one")
    program.output(program.task(None, outputs={"r": 1.0}, work=8.0, name="t"), sites=["t"])
    lost = what_if(program.graph, lab(), ["without site t"], solve)[0]
    assert lost.said == "item 'r' must be delivered to t"


@pytest.mark.parametrize(("origin", "found"), [("t", None), ("a", 20.5), ("s", 20.5)])
def test_the_origin_is_not_everywhere_when_it_is_gone(origin: str, found: float | None) -> None:
    """The hosts of a site without ports share its file system: a host as origin then means the site."""
    program = Program("one")
    program.input("in", size=5.0)
    program.task(None, inputs=["in"], outputs=["x"], work=20.0, name="t")
    platform = replace(lab(), origin=origin, sites=(lab().sites[0], Site("t", (Host("c"),))))
    change = "without site t" if origin == "t" else "without host a"
    answer = what_if(program.graph, platform, [change], solve)[0]
    if found is None:
        assert answer.makespan is None
        assert "origin 't'" in answer.said
    else:
        assert answer.makespan == pytest.approx(20.0)  # at b, where the input is
        far = what_if(program.graph, platform, ["without host b", "host c x4"], solve)
        assert far[1].makespan == pytest.approx(5.5)  # at c, which takes half a second to reach


def uplinked() -> Platform:
    """Two sites behind uplinks of 1 and 2 bytes/s; the store is at the hub."""
    sites = Site("s", (Host("a", 2.0),), uplink=1.0), Site("t", (Host("c"),), uplink=2.0), Site("store")
    return Platform(sites, contention="fifo", origin="store")


def test_uplinks_are_links_to_the_hub() -> None:
    program = Program("one")
    program.input("in", size=10.0)
    program.task(None, inputs=["in"], outputs=["x"], work=8.0, name="t")
    changes = ["link s-hub x5", "link t-hub +8B/s", "without link t-hub", "without site s", "without host c"]
    found = what_if(program.graph, uplinked(), changes, solve)
    assert [answer.makespan for answer in found] == pytest.approx([6.0, 9.0, 14.0, 13.0, 14.0])
    both = changed_platform(uplinked(), parse_change("without link s-hub"))
    nothing = what_if(program.graph, both, ["without link t-hub"], solve)[0]
    assert nothing.makespan is None  # not at the hub, where it would be reached at once
    with pytest.raises(UsageError, match="no link 'store-hub'"):
        changed_platform(uplinked(), parse_change("link store-hub x2"))


def test_what_if_and_why_not_on_the_command_line(files: list[str], tmp_path: Path) -> None:
    changes = ("cores near +1", "without site near", "without link store-far-away", "without site store")
    questions = [word for change in changes for word in ("--what-if", change)] + ["--why-not", "f1"]
    ended = headrace("plan", *files, "-s", "coschedule", "--time", "1", *questions, "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["makespan"] == pytest.approx(42.0)
    more, less, apart, nothing = found["what_if"]
    assert more["makespan"] == pytest.approx(23.0)
    assert less["makespan"] is None
    assert apart["makespan"] == pytest.approx(42.0)
    assert nothing["makespan"] is None
    assert nothing["no_plan"] == "item 'in0' is stored only at store"
    why = found["why_not"][0]
    assert why["job"] is None
    assert "holds 15 bytes" in why["reason"]


@pytest.mark.parametrize("change", ["without host n", "without site here"])
def test_without_the_only_host_the_answer_is_no_plan(change: str) -> None:
    lab = Platform((Site("here", (Host("n"),)), Site("there")), (Link("here", "there", 1.0),))
    solved = what_if(one(), lab, [change, "host n x2"], solve)
    assert solved[0].makespan is None
    assert "no host would be left" in solved[0].said
    assert solved[1].makespan == pytest.approx(4.0)


def test_why_not_names_what_decides(files: list[str]) -> None:
    program = load_program(files[0])
    platform = changed_platform(Platform.read(files[2]), parse_change("disk far-away x2"))
    problem = Problem(program.graph, platform)
    plan = Coschedule(time=1.0).plan(problem)
    answer = why_not(problem, plan, "f1", 1.0)
    assert answer.cost == pytest.approx(2010.0 - plan.makespan)
    assert "the transfer of its" in answer.reason
    assert why_not(problem, plan, "n1", 1.0).jobs_there == 3


def test_questions_are_read_before_anything_is_planned(files: list[str], tmp_path: Path) -> None:
    for words in (
        ["-s", "coschedule", "--why-not", "nobody"],
        ["-s", "heft", "--why-not", "f1"],
        ["-s", "coschedule", "--what-if", "host nobody"],
    ):
        ended = headrace("plan", *files, *words, cwd=tmp_path)
        assert ended.code == 2
        assert words[2] in ended.err
        assert "makespan" not in ended.err


def test_options_default_to_no_questions() -> None:
    assert PlanOptions().what_if == ()
    assert PlanOptions().why_not == ()
