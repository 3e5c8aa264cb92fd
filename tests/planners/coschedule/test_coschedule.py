"""Co-scheduling: optimal where that can be proven, valid everywhere, and what a user may ask of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.bound import bound_name
from headrace.model.check import check, require_valid
from headrace.model.errors import NoPlan, UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.model.sited import SiteLists
from headrace.planners.coschedule.improving import EXACT, RELAXED, Improving
from headrace.planners.coschedule.planner import Coschedule
from headrace.planners.registry import make
from headrace.testing.generate import random_platform, random_program
from headrace.testing.tiered_grid import tiered_grid
from planners.coschedule.cases import grid, production, small_case
from planners.coschedule.oracle import least_makespan


def planned(program: Program, platform: Platform, seconds: float = 1.0, **more: object) -> Plan:
    plan = make("coschedule", time=seconds, **more).plan(Problem(program.graph, platform))
    require_valid(program, platform, plan)
    assert plan.bound <= plan.makespan * (1 + 1e-9)
    return plan


@pytest.mark.parametrize(
    ("seed", "tight"), [(0, False), (2, False), (12, False), (1, True), (7, True), (9, True)]
)
def test_small_cases_are_optimal(seed: int, tight: bool) -> None:
    program, platform = small_case(seed, tight=tight)
    plan = planned(program, platform, 10.0)
    best = least_makespan(program, platform, math.ceil(plan.makespan))
    assert best is not None
    assert plan.makespan == pytest.approx(best)
    assert plan.bound == pytest.approx(best)


def test_bounds_name_what_proves_them() -> None:
    program, platform = small_case(7, tight=True)
    assert bound_name(planned(program, platform, 10.0).bound) == EXACT
    program, platform = tiered_grid(60)
    assert bound_name(planned(program, platform).bound) == RELAXED


def test_tight_disks_cost_time() -> None:
    program, platform = small_case(7, tight=True)
    ample = replace(platform, sites=tuple(replace(s, storage=math.inf) for s in platform.sites))
    assert planned(program, ample, 10.0).makespan < planned(program, platform, 10.0).makespan


@pytest.mark.slow
@pytest.mark.parametrize("slowdown", [1.0, 20.0, 100.0])
def test_never_below_the_comparators(slowdown: float) -> None:
    program, platform = production(120, slowdown)
    problem = Problem(program.graph, platform)
    ours = planned(program, platform)
    for name in ("local", "equal-load", "pull"):
        other = make(name).plan(problem)
        require_valid(program, platform, other)
        assert ours.makespan <= other.makespan * (1 + 1e-12)
        assert ours.bound <= other.makespan * (1 + 1e-9)


@pytest.mark.slow
def test_more_time_is_never_worse_and_the_same_call_gives_the_same_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By counted work; on a busy machine the clock may end a search before that."""
    monkeypatch.setattr(Improving, "latest", math.inf)
    program, platform = grid(60, sites=5, links=12)
    plans = [planned(program, platform, seconds) for seconds in (0.05, 0.3, 1.0, 2.0)]
    makespans = [plan.makespan for plan in plans]
    assert makespans == sorted(makespans, reverse=True)
    again = planned(program, platform, 1.0)
    assert np.array_equal(again.start, plans[2].start)
    assert np.array_equal(again.move_start, plans[2].move_start)


@pytest.mark.slow
def test_chunks_start_from_what_the_last_left() -> None:
    program, platform = production(120, 10.0)
    plan = planned(program, platform, 1.0, chunk=40)
    chunks = [plan.start[k : k + 40].mean() for k in range(0, 120, 40)]
    assert chunks == sorted(chunks)
    assert plan.makespan < 1.2 * planned(program, platform).makespan


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3))])
def test_disks_shared_files_cores_releases_and_deadlines_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    program = Program("mixed")
    for k in range(3):
        program.input(f"shared{k}", size=4, sites=["a", "b"][: 1 + k % 2])
    for k in range(14):
        program.input(f"own{k}", size=float(random.integers(1, 5)), sites=["a"])
        made = program.task(
            None,
            inputs=[f"own{k}", f"shared{k % 3}"],
            outputs={f"out{k}": float(random.integers(1, 5))},
            work=float(random.integers(2, 9)),
            cores=int(random.integers(1, 3)),
            release=float(random.integers(0, 10)),
            deadline=200.0 if k % 4 else math.inf,
            name=f"j{k}",
        )
        program.output(made, sites=["a"] if k % 3 else ["a", "b"])
    platform = Platform(
        (
            Site("a", storage=90),
            Site("b", (Host("h", cores=3),), storage=25),
            Site("c", (Host("g", cores=2),), storage=20),
        ),
        (Link("a", "b", 2.0), Link("b", "c", 1.0, latency=0.5), Link("a", "c", 0.25)),
        contention="fifo",
        routing="links",
    )
    plan = planned(program, platform, 2.0)
    moved = {(int(i), int(p)) for i, p in zip(plan.move_item, plan.move_target, strict=True)}
    assert len(moved) == len(plan.move_item), "a file came to a place twice"


def test_a_file_in_place_moves_nowhere_and_a_shared_file_travels_once() -> None:
    program = Program("few")
    program.input("here", size=50, sites=["b"])
    program.input("there", size=50, sites=["a"])
    for k in range(4):
        program.task(None, inputs=["here", "there"], outputs={f"out{k}": 1.0}, work=5, name=f"j{k}")
        program.output(f"out{k}", sites=["b"])
    platform = Platform(
        (Site("a"), Site("b", (Host("h", cores=2),))),
        (Link("a", "b", 10.0),),
        contention="fifo",
        routing="links",
    )
    plan = planned(program, platform)
    assert [program.graph.item_names[i] for i in plan.move_item] == ["there"]
    assert plan.makespan == pytest.approx(5 + 2 * 5)
    assert plan.bound == pytest.approx(15.0)


def test_a_way_over_another_site_is_taken_where_it_is_quicker() -> None:
    program = Program("way")
    program.input("in", size=10, sites=["a"])
    program.task(None, inputs=["in"], outputs={"out": 0.0}, work=1, name="j")
    sites = (Site("a"), Site("mid"), Site("b", (Host("h"),)))
    links = (Link("a", "b", 0.1), Link("a", "mid", 1.0), Link("mid", "b", 1.0))
    plan = planned(program, Platform(sites, links, contention="fifo", routing="links"))
    assert plan.makespan == pytest.approx(21.0)
    assert len(plan.move_item) == 2


def test_pull_holds_the_core_while_the_input_travels() -> None:
    program, platform = production(30, 200.0, cores=(2, 1))
    plan = make("pull").plan(Problem(program.graph, platform))
    require_valid(program, platform, plan)
    remote = np.flatnonzero(plan.host == 1)
    by_start = remote[np.argsort(plan.start[remote])]
    arrival = {int(i): float(f) for i, f in zip(plan.move_item, plan.move_finish, strict=True)}
    begin = {int(i): float(s) for i, s in zip(plan.move_item, plan.move_start, strict=True)}
    for before, job in zip(by_start[:-1].tolist(), by_start[1:].tolist(), strict=True):
        item = int(program.graph.reads_of(job)[0])
        assert begin[item] >= plan.finish[before] - 1e-9, "the input travelled before a core asked for it"
        assert plan.start[job] == pytest.approx(arrival[item])


def test_local_and_equal_load_do_what_the_paper_says() -> None:
    program, platform = production(100, 5.0)
    problem = Problem(program.graph, platform)
    assert set(make("local", site="remote").plan(problem).host.tolist()) == {1}
    assert set(make("local").plan(problem).host.tolist()) == {0}
    equal = make("equal-load").plan(problem)
    load = [program.graph.work[equal.host == h].sum() / cores for h, cores in enumerate((16, 4))]
    assert abs(load[0] - load[1]) <= program.graph.work.max() / 4
    with pytest.raises(UsageError, match="no site"):
        make("local", site="nowhere").plan(problem)


def test_from_the_present_state() -> None:
    """Files that have moved, a host that is busy, a site that has lost its hosts."""
    program, platform = production(20, 50.0)
    graph = program.graph
    moved = dict.fromkeys(range(0, 40, 4), (platform.place_of["remote"],))
    plan = Coschedule(time=0.5).plan(Problem(graph, platform, holders=moved, free_at={0: 4000.0}))
    assert plan.start[plan.host == 0].min() >= 4000.0
    names = platform.network.place_names
    initial_locations = graph.initial_locations.places_by_item(graph, platform) | moved
    lists = SiteLists.of_items(
        {i: [names[p] for p in at] for i, at in initial_locations.items()}, graph.n_items
    )
    judged = replace(graph, initial_locations=lists)
    assert not check(judged, platform, replace(plan, graph=judged))
    gone = platform.without(["farm"])
    rest = Coschedule(time=0.5).plan(Problem(graph, gone))
    require_valid(graph, gone, rest)


def impossible(change: str) -> tuple[Program, Platform]:
    program = Program("one")
    program.input("in", size=10, sites=["a"])
    program.task(
        None, inputs=["in"], outputs={"out": 5.0}, work=10, name="j",
        cores=9 if change == "cores" else 1, deadline=25.0 if change == "deadline" else math.inf,
    )  # fmt: skip
    program.output("out", sites=["a"])
    sites = (
        Site("a", storage=4.0 if change == "results" else math.inf),
        Site("b", (Host("h", cores=2),), storage=12.0 if change == "disk" else math.inf),
    )
    links = (
        Link(
            "b" if change == "route" else "a",
            "a" if change == "route" else "b",
            1.0,
            oneway=change == "route",
        ),
    )
    return program, Platform(sites, links, contention="fifo", routing="links")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("route", "no route from 'a' to any host"),
        ("disk", "needs 15 bytes of storage while it runs"),
        ("deadline", "due at 25 s, but its results cannot be delivered before 25"),
        ("cores", "needs 9 cores"),
        ("results", "results of 5 bytes must be delivered to site 'a'"),
    ],
)
def test_what_cannot_be_planned_is_said(change: str, said: str) -> None:
    program, platform = impossible(change)
    if change == "deadline":
        program.tasks["j"] = replace(program.tasks["j"], deadline=24.0)
        said = "due at 24 s, but its results cannot be delivered before 25 s"
        program._graph = None
    with pytest.raises(NoPlan, match=said):
        Coschedule(time=0.5).plan(Problem(program.graph, platform))


def test_time_and_chunk_must_make_sense() -> None:
    with pytest.raises(UsageError):
        Coschedule(time=0)
    with pytest.raises(UsageError):
        Coschedule(chunk=0)


def test_a_job_that_takes_no_time_needs_a_core_as_well() -> None:
    """The exact model lets it pass through a full host; the plan must not."""
    graph = random_program(10, 25, "random").graph
    assert (graph.work == 0).any()
    platform = random_platform(10, "sites", contention="fair", hosts=5, origin="host")
    plan = Coschedule(time=1.0).plan(Problem(graph, platform, seed=7))
    assert check(graph, platform, plan) == []


def wide_jobs(cores: int) -> Program:
    """Six jobs of that many cores, and one that reads what they make."""
    program = Program("wide")
    made = [program.task(None, outputs={f"x{k}": 1e6}, work=5.0, cores=cores) for k in range(6)]
    program.task(None, inputs=made, outputs={"y": 1.0}, work=1.0)
    return program


@pytest.mark.slow
def test_two_changes_that_help_only_together_are_found() -> None:
    """Four of six jobs fit on the fast host; one alone elsewhere leaves the other waiting there."""
    hosts = (Host("fast", 2.0, 8), *(Host(f"n{k}", 1.0, 4) for k in range(8)), Host("gpu", 3.0, 2))
    platform = Platform((Site("s", hosts, bandwidth=1e8),), contention="fifo", origin="fast")
    assert planned(wide_jobs(2), platform, 3.0).makespan < 5.0  # 5.5 with all on the fast host


def test_hosts_with_too_few_cores_cost_nothing_and_say_nothing() -> None:
    platform = Platform((Site("s", (Host("a", 5.0, 1), Host("b", 1.0, 2))),), contention="fifo")
    plan = planned(wide_jobs(2), platform, 1.0)
    assert set(plan.host[:6].tolist()) == {1}
