"""`headrace plan --what-if` and `--why-not`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.commands.changed_platform import changed_platform
from headrace.commands.plan import PlanOptions
from headrace.commands.plan_questions import what_if
from headrace.commands.what_if import parse_change
from headrace.core.scheduler import Problem
from headrace.formats.loading import load_program
from headrace.model.errors import UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.coschedule.planner import Coschedule
from headrace.planners.coschedule.why_not import why_not
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


def made(platform: Platform) -> Plan:
    """A plan of one task of 8 seconds on hosts of speeds up to 2."""
    program = Program("one")
    program.task(None, outputs=["x"], work=8.0, name="one")
    return Coschedule(time=1.0).plan(Problem(program.graph, platform))


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

    def solve(changed: Platform) -> object:
        return Coschedule(time=5.0).plan(Problem(program.graph, changed))

    answer = what_if(platform, [change], solve)[0]  # type: ignore[arg-type]
    fresh = solve(changed_platform(platform, parse_change(change)))
    assert answer.makespan == fresh.makespan  # type: ignore[attr-defined]


def test_what_only_adds_is_never_answered_by_a_longer_plan(files: list[str]) -> None:
    program, platform = load_program(files[0]), Platform.read(files[2])

    def solve(changed: Platform) -> Plan:
        return Coschedule(time=1.0).plan(Problem(program.graph, changed))

    changes = ["cores near +1", "link store-near x0.5", "without host f1"]
    more, slower, fewer = what_if(platform, changes, solve, present=20.0)
    assert (more.makespan, more.longer) == (20.0, pytest.approx(23.0))
    assert "as long: planning again found 23 s" in more.row(20.0)[1]
    assert slower.longer is None
    assert slower.makespan == pytest.approx(44.0)
    assert fewer.makespan == pytest.approx(42.0)
    alone = what_if(platform, ["cores near +1"], solve)[0]
    assert alone.makespan == alone.facts()["new_plan"] == pytest.approx(23.0)


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_fair_links_may_make_a_plan_longer(contention: str) -> None:
    platform = replace(lab(), contention=contention)
    present = what_if(platform, ["link s-t x2"], made, present=1.0)[0]
    assert (present.makespan == 1.0) == (contention == "fifo")


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
    assert "'store'" in nothing["no_plan"]
    why = found["why_not"][0]
    assert why["job"] is None
    assert "holds 15 bytes" in why["reason"]


@pytest.mark.parametrize("change", ["without host n", "without site here"])
def test_without_the_only_host_the_answer_is_no_plan(change: str) -> None:
    lab = Platform((Site("here", (Host("n"),)), Site("there")), (Link("here", "there", 1.0),))
    program = Program("one")
    program.task(None, work=5.0, outputs=["made"], name="t")
    solved = what_if(
        lab, [change, "host n x2"], lambda p: Coschedule(time=1.0).plan(Problem(program.graph, p))
    )
    assert solved[0].makespan is None
    assert "no host would be left" in solved[0].said
    assert solved[1].makespan == pytest.approx(2.5)


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
