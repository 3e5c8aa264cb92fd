"""What the planner promises: a richer problem never has a worse answer, and the bound is that of the question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench.generated.deployments import all_different, several_sources, with_more
from bench.generated.pipelines import mixed_machines
from bench.solvers import below, more, solved, sources, whatif_deploy

from headrace.model.errors import NoPlan
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site
from headrace.planners.pipeline.plan import PLANNERS, deploy_lpsched


def two_rooms() -> PipelineProblem:
    """A slow source that can be served at its full rate, and a fast one that cannot."""
    north = Site("north", tuple(Host(f"n{i}", 2.0) for i in range(1, 5)), bandwidth=40e6)
    south = Site(
        "south", tuple(Host(f"s{i}", 1.0, kinds={"reader": 0.5}) for i in range(1, 7)), bandwidth=20e6
    )
    filters = [
        FilterProfile("cam", 10, 80, 2.0),
        FilterProfile("detect", 60, 30, 2.0),
        FilterProfile("track", 12, 5),
        FilterProfile("store", 4),
    ]
    slow, fast = Source("slow", {"s1": 0.5, "s2": 0.5}), Source("fast", {"n1": 1.0})
    platform = Platform((north, south), (Link("north", "south", 6e6, shared=True),))
    return PipelineProblem(Pipeline("cameras", filters, sources=[slow, fast]), platform)


def test_the_better_source_is_taken_though_it_is_throttled() -> None:
    problem = two_rooms()
    made = deploy_lpsched(problem)
    assert made.check() == []
    assert (made.source, made.form) == ("fast", "first relaxation")
    assert made.throughput == pytest.approx(20 / 3)
    slow = deploy_lpsched(replace(problem, pipeline=problem.pipeline.with_sources(problem.sources[:1])))
    assert slow.form == "strict"
    assert slow.objective < made.objective


@pytest.mark.parametrize("seed", range(4))
def test_several_sources_are_never_worse_than_one_or_than_a_rule(seed: int) -> None:
    problem = several_sources(seed)
    best = solved(problem)
    for source in problem.sources:
        alone = replace(problem, pipeline=problem.pipeline.with_sources([source]))
        assert not below(best, solved(alone))
    for rule in ("trivial", "total"):
        try:
            simple = PLANNERS[rule](problem)
        except NoPlan:
            continue
        assert not below(best, simple.objective)
        assert not below(simple.bound, best)  # also the bound of a rule is that of the question


@pytest.mark.slow
@pytest.mark.parametrize("what", ["source", "host", "link"])
def test_one_thing_more_is_never_worse(what: str) -> None:
    tried = better = 0
    for seed in range(100, 106):
        problem = several_sources(seed, wishes=seed % 2 == 1)
        richer = with_more(problem, what, seed)  # type: ignore[arg-type]
        if richer is None:
            continue
        before, after = solved(problem), solved(richer)
        assert not below(after, before)
        tried += 1
        better += below(before, after)
    assert tried >= 2
    assert better >= 1 or what == "link"


@pytest.mark.slow
def test_one_thing_more_is_never_worse_in_many_problems() -> None:
    assert more(12) == 0
    assert sources(20) == 0


@pytest.mark.slow
def test_what_if_is_the_changed_problem_in_many_problems() -> None:
    assert whatif_deploy(20) == 0


@pytest.mark.slow
def test_what_if_is_the_changed_problem() -> None:
    assert whatif_deploy(4) == 0


def test_isolated_clusters() -> None:
    """The filters stay in the cluster of the source; a link then helps."""
    a = Site("a", (Host("a1"), Host("a2"), Host("a3")), bandwidth=1e8)
    b = Site("b", tuple(Host(f"b{i}", 3.0) for i in range(6)), bandwidth=1e8)
    filters = [FilterProfile("read", 1, 100), FilterProfile("work", 50, 10), FilterProfile("show", 1)]
    pipeline = Pipeline("p", filters, sources=[Source("a1", {"a1": 1.0})])
    alone = deploy_lpsched(PipelineProblem(pipeline, Platform((a, b), isolated=True)))
    assert alone.check() == []
    assert alone.hosts_used == ("a1", "a2", "a3")
    joined = deploy_lpsched(PipelineProblem(pipeline, Platform((a, b), (Link("a", "b", 1e7),))))
    assert joined.throughput > 2 * alone.throughput


@pytest.mark.parametrize("shape", ["mesh"])
def test_many_different_hosts_are_near_the_bound(shape: str) -> None:
    made = deploy_lpsched(all_different(600, 9, seed=2, shape=shape), seconds=12.0, gap=0.01)
    assert made.check() == []
    assert made.gap <= 0.01


def test_many_sources_on_many_hosts() -> None:
    """Sources that there is no time for still count in the bound."""
    problem = all_different(300, 4, seed=3)
    hosts = [h.name for h in problem.platform.hosts]
    pipeline = problem.pipeline.with_sources([Source(h, {h: 1.0}) for h in hosts[:40]])
    made = deploy_lpsched(replace(problem, pipeline=pipeline), seconds=3.0, gap=0.01)
    assert made.check() == []
    assert np.isfinite(made.bound)
    assert made.bound >= made.objective > 0


def test_sharing_many_hosts_is_at_least_as_good_as_the_rules() -> None:
    problem = replace(mixed_machines(420, 4, 0, seed=1), several_per_host=True)
    made = deploy_lpsched(problem, seconds=4.0, gap=0.05)
    assert made.check() == []
    for rule in ("trivial", "total"):
        assert not below(made.objective, solved(problem, PLANNERS[rule]))
