"""Sizes that are not known before a run, and one file for many hosts with disks of their own."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.graph import make_graph
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.testing.invariants import judge

FAR = Platform(
    (Site("home"), Site("c", (Host("h"),), uplink=1000.0)), contention="fifo", origin="home", name="far"
)


def with_output(estimated: float) -> hr.Program:
    """One task whose result really has 50,000 bytes."""
    program = hr.Program()
    made = program.task(None, name="t", outputs={"x": estimated}, work=11.0)
    program.output(made)
    program.reality = make_graph(
        work=[11.0], size=[50_000.0], producer=[0], read_ptr=[0, 0], reads=[], result=[True]
    )
    return program


@pytest.mark.parametrize("scheduler", ["workqueue", "lheft", "heft", "minmin"])
@pytest.mark.parametrize("estimated", [0.0, 1.0, 50_000.0])
def test_an_item_whose_size_is_not_known_is_moved_all_the_same(scheduler: str, estimated: float) -> None:
    """11 s of work, then 50 s over the uplink."""
    assert hr.simulate(with_output(estimated), FAR, scheduler).makespan == pytest.approx(61.0)


@pytest.mark.parametrize("contention", ["fifo", "fair"])
@pytest.mark.parametrize("scheduler", ["heft", "minmin"])
def test_a_file_that_many_hosts_need_crosses_each_uplink_as_often_as_planned(
    contention: Contention, scheduler: str
) -> None:
    program = hr.Program("bag")
    file = program.task(None, name="first", outputs={"file": 4e7}, work=1.0)
    for k in range(20):
        program.task(None, name=f"t{k}", inputs=[file], outputs={f"o{k}": 1e4}, work=5.0 + (k * 7) % 30)
    sites = tuple(
        Site(name, tuple(Host(f"{name}{k}") for k in range(4)), bandwidth=1e8, uplink=1e6)
        for name in ("a", "b")
    )
    platform = Platform(sites, contention=contention, name="two")
    plan = hr.plan(program, platform, scheduler)
    run = hr.simulate(program, platform, scheduler, hr.SimulationConfig(hr.ReplanPolicy(replan="neither")))
    assert judge(run) == []
    assert run.makespan <= 1.02 * plan.makespan
    assert run.makespan == pytest.approx(hr.replay(plan).makespan, rel=0.02)
    item = program.graph.item_names.index("file")

    def crossings(made: hr.Plan) -> int:
        site = platform.network.site
        moves = made.move_item == item
        return int((site[made.move_source[moves]] != site[made.move_target[moves]]).sum())

    assert crossings(run.executed) == crossings(plan) <= 1
