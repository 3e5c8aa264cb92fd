"""What batch-mode plans are worth: recorded makespans, the sweep of figure 11, draws and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from bench.generated.sweeps import figure_11, sweep

from headrace.core.scheduler import Planner, Problem
from headrace.model.check import check
from headrace.model.errors import NoPlan, UsageError
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.batch.maxmin import MaxMin
from headrace.planners.batch.minmin import MinMin
from headrace.planners.batch.randomized import RandomMinMin
from headrace.planners.batch.sufferage import Sufferage
from headrace.planners.batch.sufferage2 import SufferageTwo
from headrace.planners.batch.xsufferage import ExtendedSufferage
from headrace.simulator.replay.replay import replay
from planners.cases import OWN, SHARED, read_dag, read_net


@pytest.mark.parametrize(
    ("planner", "tasks", "makespan"),
    [(MinMin, 100, 1000.0294), (MinMin, 300, 2023.6844), (MaxMin, 100, 1036.7334), (MaxMin, 300, 2570.3794)],
)
def test_equals_recorded_makespans(planner: Callable[[], Planner], tasks: int, makespan: float) -> None:
    graph, platform = read_dag(OWN / f"dag-square-n{tasks}.json.gz"), read_net(OWN / "net-h8.json.gz")
    plan = planner().plan(Problem(graph, platform))
    assert plan.makespan == pytest.approx(makespan, rel=1e-6)
    assert check(graph, platform, plan) == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the larger graphs are not here")
@pytest.mark.parametrize(
    ("planner", "name"), [(MinMin, "MinMin"), (MaxMin, "MaxMin"), (Sufferage, "Sufferage")]
)
def test_as_good_as_recorded_makespans(planner: Callable[[], Planner], name: str) -> None:
    rows = [json.loads(line) for line in (SHARED / "reference.jsonl").read_text().splitlines()]
    rows = [r for r in rows if r["scheduler"] == f"saga {name}" and "n10000" not in r["dag"]]
    assert len(rows) >= 7
    logs = []
    for row in rows:
        graph, platform = read_dag(SHARED / row["dag"]), read_net(SHARED / f"net-h{row['hosts']}.json.gz")
        plan = planner().plan(Problem(graph, platform))
        assert check(graph, platform, plan) == []
        logs.append(math.log(plan.makespan / row["makespan"]))
    assert math.exp(sum(logs) / len(logs)) <= 1.01


@pytest.mark.parametrize("shuffled", [False, True])
def test_figure_11(shuffled: bool) -> None:
    """Where files are large, rules over clusters beat the rule over hosts."""
    program, platform = figure_11(9600, seed=1, shuffled=shuffled)
    problem = Problem(program.graph, platform)
    makespan = {}
    for planner in (MinMin(), MaxMin(), Sufferage(), ExtendedSufferage(), SufferageTwo()):
        plan = planner.plan(problem)
        assert check(problem.graph, platform, plan) == []
        assert replay(plan).makespan == pytest.approx(plan.makespan, rel=1e-9)
        makespan[planner.name] = plan.makespan
    assert makespan["sufferage"] > 1.1 * makespan["xsufferage"]
    assert max(makespan["minmin"], makespan["xsufferage"], makespan["sufferage2"]) < 5200


def test_a_shared_file_is_sent_once_to_a_cluster() -> None:
    program, platform = sweep(300, hosts=20, clusters=4, seed=2)
    plan = MinMin().plan(Problem(program.graph, platform))
    brought = list(zip(plan.move_item.tolist(), plan.move_target.tolist(), strict=True))
    assert len(brought) == len(set(brought))
    assert check(program.graph, platform, plan) == []


def test_draws_follow_the_seed() -> None:
    program, platform = sweep(60, hosts=6, clusters=3, seed=0)
    plans = [
        RandomMinMin(0.2).plan(Problem(program.graph, platform, seed=s)).host.tolist() for s in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, math.nan])
def test_a_tolerance_that_is_no_share_is_refused(tolerance: float) -> None:
    program, platform = sweep(4, hosts=2, clusters=1, seed=0)
    with pytest.raises(UsageError, match="tolerance"):
        RandomMinMin(tolerance).plan(Problem(program.graph, platform))


@pytest.mark.parametrize("planner", [MinMin, Sufferage, ExtendedSufferage])
@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_hosts_without_a_way_back_are_left_alone(planner: Callable[[], Planner], contention: str) -> None:
    program = Program("p")
    data = program.input("d", size=10.0)
    for t in range(4):
        program.task(inputs=[data], outputs={f"o{t}": 5.0}, work=1.0, name=f"t{t}")
    sites = (Site("store"), Site("a", (Host("a0"),)), Site("b", (Host("b0", 9.0),)))
    ways = (Link("store", "a", 10.0), Link("store", "b", 10.0, oneway=True))
    platform = Platform(sites, ways, contention=contention, origin="store")  # type: ignore[arg-type]
    plan = planner().plan(Problem(program.graph, platform))
    assert plan.host.tolist() == [0, 0, 0, 0]
    platform = Platform(sites, (ways[1], Link("store", "a", 10.0, oneway=True)), origin="store")
    with pytest.raises(NoPlan, match="cannot return"):
        planner().plan(Problem(program.graph, platform))


def test_an_empty_program_has_an_empty_plan() -> None:
    platform = Platform((Site("a", (Host("h"),)),))
    plan = MinMin().plan(Problem(Program("none").graph, platform))
    assert len(plan.host) == 0
    assert plan.makespan == 0.0
