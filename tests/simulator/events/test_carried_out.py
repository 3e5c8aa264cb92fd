"""A plan carried out by the coordinator takes no longer than the plan replayed: cases kept apart from the benchmark."""

from __future__ import annotations

import pytest
from bench.carried_out import CONTENTIONS, LIMIT, outcome
from bench.generated.relays import RelayShape, relay_case

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.model.platform import Contention, Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.online.adapter import is_scheduler
from headrace.planners.registry import make, names
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.generate import NETWORKS, ORIGINS, random_platform, random_program
from headrace.testing.generate import SHAPES as PROGRAMS
from headrace.testing.invariants import judge

CASES = 40
SHAPES: tuple[RelayShape, ...] = ("rounds", "mixed", "bag", "inputs", "stages")
"""The first two are in no benchmark; the others come with other seeds."""


def test_plans_are_carried_out_as_planned() -> None:
    found = []
    for k in range(CASES):
        case = relay_case(1000 + k, SHAPES[k % 5], CONTENTIONS[k % 2], graph=k // 10 % 2 == 1)
        found.append(outcome(*case, "heft"))
    late = [
        f"{o.name}: {o.planned:.1f} s replayed, {o.ratio:.3f} times that" for o in found if o.ratio > LIMIT
    ]
    assert not late, "\n".join(late)


OPTIONS = {"best": {"time": 0.05}, "coschedule": {"time": 0.05}}
PLANNERS = [name for name in names() if not is_scheduler(make(name, **OPTIONS.get(name, {})))]


def carried_out(seed: int, name: str, contention: Contention) -> tuple[str, float]:
    """A plan for a generated case, carried out; what the case is, and how long it takes beside the plan."""
    graph = random_program(seed, 4 + seed % 17, PROGRAMS[seed % 5]).graph
    platform = random_platform(
        seed, NETWORKS[seed // 5 % 5], contention=contention, hosts=1 + seed % 6, origin=ORIGINS[seed % 3]
    )
    planner = make(name, **OPTIONS.get(name, {}))
    plan = planner.plan(Problem(graph, platform, seed=seed))
    run = simulate_scheduler(graph, platform, Replan(planner, ReplanPolicy(replan="neither"), first=plan))
    assert judge(run) == []
    assert run.plans == 1
    return f"{seed}: {graph.name} on {platform.name}", run.makespan / plan.makespan if plan.makespan else 1.0


@pytest.mark.parametrize("seeds", [25, pytest.param(75, marks=pytest.mark.slow)])
@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in OPTIONS else n for n in PLANNERS]
)
def test_a_plan_takes_no_longer_than_planned_if_nothing_changes(
    name: str, contention: Contention, seeds: int
) -> None:
    """On every kind of network; shared links are booked whole in plans, so a little more is allowed there."""
    limit = LIMIT if contention == "fair" else 1.0 + 1e-9
    found = [carried_out(seed, name, contention) for seed in range(seeds // 9 if name in OPTIONS else seeds)]
    late = [f"{what}: {ratio:.6f} times the plan" for what, ratio in found if ratio > limit]
    assert not late, "\n".join(late)


def test_a_result_is_relayed_at_once_on_fair_links() -> None:
    """It must reach a site two links away, while another host works for a long time."""
    platform = Platform(
        (Site("a", (Host("n1"),)), Site("b"), Site("c", (Host("n2", speed=0.01),))),
        (Link("a", "b", 1.0), Link("b", "c", 1.0)),
        contention="fair",
        routing="links",
    )
    program = Program("results")
    raw = program.input("raw", size=1, sites=["a"])
    program.output(program.task(None, inputs=[raw], outputs={"out": 5}, work=1, name="short"), sites=["c"])
    program.task(None, inputs=[program.input("own", size=100, sites=["c"])], work=1, name="long")
    planner = make("coschedule", time=0.2)
    plan = planner.plan(Problem(program.graph, platform))
    assert plan.makespan == 100
    run = simulate_scheduler(program.graph, platform, Replan(planner, ReplanPolicy(replan="neither")))
    arrived = [t.finish for t in run.executed.transfers() if t.data == "out"]
    assert arrived == [6.0, 11.0]
