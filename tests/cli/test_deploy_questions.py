"""`headrace deploy --what-if`, `--why-not` and `--refresh`, as users give them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.commands.deploy_questions import ask_what_if, change_problem, what_if_rows
from headrace.commands.what_if import parse_change
from headrace.model.deployment import Deployment
from headrace.model.errors import BadPlatform, NoPlan, UsageError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.pipeline.plan import deploy_lpsched

PIPELINE = """
[pipeline]
name = cameras
[filter cam]
seconds = 10
volume = 80
power = 2
[filter detect]
seconds = 60
volume = 30
power = 2
[filter store]
seconds = 4
[source north]
n1 = 1
[source south]
s1 = 0.5
s2 = 0.5
[knobs]
host_cost = 0.05
"""
PLATFORM = """
[platform]
name = rooms
[cluster north]
bandwidth = 40
[cluster south]
bandwidth = 20
[cluster attic]
bandwidth = 20
[host n1..4]
cluster = north
power = 2
[host s1..6]
cluster = south
[host a1]
cluster = attic
power = 9
[link north -> south]
bandwidth = 6
shared = yes
"""
OLD = """
[deployment]
throughput = 1
[copies cam]
{1}1 = 1, 1
[copies {0}]
{1}2 = 1, 1
[copies store]
{1}3 = 1, 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.ini").write_text(PIPELINE)
    (tmp_path / "m.ini").write_text(PLATFORM)
    return tmp_path


def test_questions_about_one_deployment(folder: Path) -> None:
    asked = ("--what-if", "host n2", "--what-if", "without host n2", "--why-not", "a1", "--why-not", "n1")
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, "-o", "d.ini", "--json", cwd=folder)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    more, less = said["what_if"]
    assert more["objective"] > said["objective"] > less["objective"]
    assert more["gain"] == pytest.approx(more["throughput"] - said["throughput"])
    assert [reason["used"] for reason in said["why_not"]] == [False, True]
    assert said["why_not"][0]["cost"] is None  # the attic is isolated
    (folder / "m.ini").write_text(PLATFORM.replace("[host n1..4]", "[host n1..4]\nload = 0.4"))
    done = headrace(
        "deploy",
        "p.ini",
        "--on",
        "m.ini",
        "--refresh",
        "d.ini",
        "--refresh-loss",
        "0.5",
        "--json",
        cwd=folder,
    )
    assert done.code == 0, done.err
    refreshed = json.loads(done.out)["refreshed"]
    assert refreshed["moves"] == []
    assert refreshed["kept_objective"] <= refreshed["best_objective"] + 1e-9


def test_what_if_beside_refresh_refreshes_the_changed_problem(folder: Path) -> None:
    """A change that brings nothing has a gain of 0, although the best deployment is better than the refreshed one."""
    done = headrace("deploy", "p.ini", "--on", "m.ini", "-o", "d.ini", cwd=folder)
    assert done.code == 0, done.err
    (folder / "m.ini").write_text(PLATFORM.replace("[host n1..4]", "[host n1..4]\nload = 0.4"))
    asked = ("--refresh", "d.ini", "--refresh-loss", "0.5", "--what-if", "host a1 x2")
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, "--json", cwd=folder)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["objective"] < said["refreshed"]["best_objective"] * (1 - 1e-6)
    assert said["what_if"][0]["objective_gain"] == pytest.approx(0.0, abs=1e-9)


def test_words(folder: Path) -> None:
    asked = ("--what-if", "without link north-south", "--why-not", "a1")
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, cwd=folder)
    assert done.code == 0, done.err
    assert "without link north-south:" in done.out
    assert "a1 cannot be used: no data can reach it" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--what-if", "host x9"], "no host 'x9'"),
        (["--what-if", "link north-attic x2"], "no link 'north-attic'"),
        (["--what-if", "disk north +1TB"], "does not use disks"),
        (["--what-if", "more hosts"], "not a kind of change"),
        (["--why-not", "x9"], "no host 'x9'"),
        (["--refresh", "nowhere.ini"], "cannot be opened"),
        (["--refresh", "m.ini"], "no [deployment] section"),
        (["--refresh", "other.ini"], "it has lens; it does not have detect"),
        (["--refresh", "elsewhere.ini"], "none of the deployment's hosts is in platform 'rooms': x1, x2"),
        (["--refresh-loss", "0.5"], "--refresh-loss 0.5 without --refresh"),
        (["--compare", "total", "--what-if", "host n2"], "leave out --compare"),
    ],
)
def test_errors(folder: Path, asked: list[str], words: str) -> None:
    (folder / "other.ini").write_text(OLD.format("lens", "n"))
    (folder / "elsewhere.ini").write_text(OLD.format("detect", "x"))
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, cwd=folder)
    assert done.code == 2
    assert words in done.err


def rooms() -> PipelineProblem:
    a = Site("a", (Host("a1"), Host("a2", 2.0, 2, {"f": 3.0})), bandwidth=1e7, uplink=5e6)
    b = Site("b-c", (Host("b1"), Host("b2")), bandwidth=1e7, uplink=5e6)
    pipeline = Pipeline(
        "p",
        [FilterProfile("r", 1, 1), FilterProfile("f", 1)],
        sources=[Source("a", {"a1": 1.0}), Source("b", {"b1": 1.0})],
    )
    knobs = Knobs(weights={("a", "b-c"): 0.5})
    platform = Platform((a, b), (Link("a", "b-c", 1e6),))
    return PipelineProblem(pipeline, platform, knobs, segments={"b-c": 1e6})


def test_changes() -> None:
    problem = rooms()

    def changed(text: str) -> PipelineProblem:
        return change_problem(problem, parse_change(text))

    assert [h.name for h in changed("host a2").platform.hosts] == ["a1", "a2", "a2+1", "b1", "b2"]
    fast = changed("host a2 x2").platform.hosts[1]
    assert (fast.speed, fast.kinds) == (4.0, {"f": 6.0})
    assert changed("link a-b-c +1MB/s").platform.links[0].bandwidth == 2e6
    assert changed("link a-hub x2").platform.sites[0].uplink == 1e7
    assert [h.cores for h in changed("cores a +3").platform.hosts] == [3, 3, 1, 1]
    assert changed("without link a-b-c").platform.links == ()
    without = changed("without site b-c")
    assert [s.name for s in without.platform.sites] == ["a"]
    assert (without.segments, without.knobs.weights) == ({}, {})
    assert [s.name for s in without.sources] == ["a"]
    assert [s.name for s in changed("without host a1").sources] == ["b"]
    only = replace(problem, pipeline=problem.pipeline.with_sources(problem.sources[:1]))
    with pytest.raises(NoPlan, match="nothing could be read"):
        change_problem(only, parse_change("without host a1"))


def test_without_its_uplink_a_cluster_is_cut_off() -> None:
    """It is not at the hub then, which all others would reach at any rate."""
    a = Site("a", (Host("a1"), Host("a2")), bandwidth=1e8, uplink=5e7)
    b = Site("b", tuple(Host(f"b{i}", 5.0) for i in range(4)), bandwidth=1e8, uplink=5e7)
    hub = Site("hub", (Host("h1"),), bandwidth=1e8)
    filters = [FilterProfile("r", 1, 100), FilterProfile("f", 5, 1)]
    pipeline = Pipeline("p", filters, sources=[Source("a", {"a1": 1.0})])
    made = deploy_lpsched(PipelineProblem(pipeline, Platform((a, b, hub))))
    asked = ["without link b-hub", "without link a-hub", "without host b0"]
    far, own, fewer = (answer.after for answer in ask_what_if(made, asked, deploy_lpsched))
    assert made.throughput == pytest.approx(70.0)  # of which 50 pass the uplink of a
    assert isinstance(far, Deployment)
    assert set(far.hosts_used) == {"a1", "a2", "h1"}
    assert isinstance(own, Deployment)
    assert set(own.hosts_used) == {"a1", "a2"}
    assert own.throughput == pytest.approx(20.0)
    assert isinstance(fewer, Deployment)
    assert fewer.throughput == pytest.approx(70.0)
    assert fewer.check() == []


def test_links_of_pairs_cannot_be_changed() -> None:
    platform = Platform.pairwise([1.0, 2.0, 1.0], bandwidth=1e7)
    filters = [FilterProfile("r", 1, 1), FilterProfile("f", 1)]
    problem = PipelineProblem(Pipeline("p", filters, sources=[Source("h0", {"h0": 1.0})]), platform)
    with pytest.raises(UsageError, match="a link for every pair of hosts"):
        change_problem(problem, parse_change("link h0-h1 x2"))
    more = change_problem(problem, parse_change("host h1"))
    assert deploy_lpsched(more).check() == []


def test_refresh_loss_of_a_configuration_file_is_a_default(folder: Path) -> None:
    (folder / "headrace.toml").write_text("[deploy]\nrefresh-loss = 0.05\n")
    done = headrace("deploy", "p.ini", "--on", "m.ini", cwd=folder)
    assert done.code == 0, done.err


def test_without_its_only_source_there_is_no_plan_and_other_questions_are_answered(folder: Path) -> None:
    asked = ("--source", "n1", "--what-if", "without host n1", "--what-if", "host n2")
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, cwd=folder)
    assert done.code == 0, done.err
    assert "without host n1: no plan: nothing could be read without it" in done.out
    assert "host n2: 8 MB/s" in done.out
    done = headrace("deploy", "p.ini", "--on", "m.ini", *asked, "--json", cwd=folder)
    answers = json.loads(done.out)["what_if"]
    assert "nothing could be read" in answers[0]["error"]
    assert "throughput" in answers[1]


def test_typed_errors_of_a_changed_problem_are_its_answer() -> None:
    made = deploy_lpsched(rooms())

    def solve(problem: PipelineProblem) -> Deployment:
        raise BadPlatform("no route")

    answers = ask_what_if(made, ["host a2 x2"], solve)
    assert [answer[1] for answer in what_if_rows(answers)] == ["host a2 x2: no plan: no route"]
