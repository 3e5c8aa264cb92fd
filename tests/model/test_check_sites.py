"""Rules about initial_locations, destinations, cores, releases, deadlines and disks, each on a plan written by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headrace.model.check import check
from headrace.model.errors import BadProgram
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from model.plans import changed, plan_of, rules, without_move

A, MID, B = 0, 1, 2


def program_of(**task: object) -> Program:
    program = Program("one")
    program.input("in", size=10, sites=["a"])
    made = program.task(None, inputs=["in"], outputs={"out": 4.0}, work=5, name="j", **task)
    program.output(made, sites=["mid", "a"])
    return program


def platform_of(storage: float = math.inf, middle: float = math.inf) -> Platform:
    sites = (Site("a"), Site("mid", storage=middle), Site("b", (Host("h", cores=2),), storage=storage))
    links = (Link("a", "mid", 1.0), Link("mid", "b", 2.0))
    return Platform(sites, links, contention="fifo", routing="links")


def right(program: Program, platform: Platform) -> Plan:
    """in: a -> mid 0-10, mid -> b 10-15; job 15-20; out: b -> mid 20-22."""
    moves = [(0, A, MID, 0.0, 10.0), (0, MID, B, 10.0, 15.0), (1, B, MID, 20.0, 22.0)]
    return plan_of(program, platform, [(0, 0, 15.0, 20.0)], moves)


def test_the_plan_is_right() -> None:
    program, platform = program_of(), platform_of(14.0, 10.0)
    assert not check(program, platform, right(program, platform))


def test_there_is_no_way_past_a_site_and_no_home_elsewhere() -> None:
    program, platform = program_of(), platform_of()
    plan = right(program, platform)
    direct = plan_of(program, platform, [(0, 0, 15.0, 20.0)], [(0, A, B, 0.0, 10.0), (1, B, MID, 20.0, 22.0)])
    assert "route" in rules(direct)
    assert rules(without_move(plan, 0)) == ["source"]
    through = replace(platform, routing="quickest")
    assert not check(program, through, replace(direct, platform=through))


def test_a_result_must_come_to_one_of_its_goals() -> None:
    program, platform = program_of(), platform_of()
    assert rules(without_move(right(program, platform), 2)) == ["result"]


def test_release_and_deadline() -> None:
    late = program_of(release=16)
    assert rules(right(late, platform_of())) == ["release"]
    assert not rules(right(program_of(release=15, deadline=22), platform_of()))
    assert rules(right(program_of(deadline=21), platform_of())) == ["deadline"], "the result comes too late"
    assert rules(right(program_of(deadline=19), platform_of())) == ["deadline"]


@pytest.mark.parametrize(
    ("storage", "middle", "broken"), [(13.9, 10.0, True), (14.0, 9.9, True), (14.0, 10.0, False)]
)
def test_room_is_taken_from_the_start_of_a_transfer_to_the_end_of_the_job(
    storage: float, middle: float, broken: bool
) -> None:
    plan = right(program_of(), platform_of(storage, middle))
    assert rules(plan) == (["storage"] if broken else [])


def test_cores_held_together() -> None:
    program = Program("three")
    for k, cores in enumerate((2, 1, 1)):
        program.task(None, work=5, name=f"j{k}", cores=cores)
    platform = Platform((Site("s", (Host("h", cores=3),)),))
    fits = plan_of(program, platform, [(0, 0, 0.0, 5.0), (0, 2, 0.0, 5.0), (0, 0, 5.0, 10.0)])
    assert not rules(fits)
    early = changed(changed(changed(fits, "start", 2, 0.0), "finish", 2, 5.0), "core", 2, 1)
    assert rules(early) == ["cores"]


def test_unknown_sites_are_named() -> None:
    program = program_of()
    lone = Platform((Site("a", (Host("h"),)),))
    with pytest.raises(BadProgram, match="'mid', which is neither a site nor a host"):
        check(program, lone, plan_of(program, lone, [(0, 0, 0.0, 5.0)]))
    with pytest.raises(BadProgram, match="comes from outside"):
        program.output("in", sites=["a"])
