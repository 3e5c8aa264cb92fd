"""What is moved follows from real sizes, whatever the estimates say; unknown is not 0."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.model.graph import ASSUMED_SIZE, Floats
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler
from headrace.planners.batch.minmin import MinMin
from headrace.planners.registry import names
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, random_platform, random_program

GRID = Platform((Site("data"), Site("c", (Host("h"),), uplink=1000.0)), origin="data")
"""1000 bytes/s between the origin and a host."""


SLOW = ("auto", "best", "coschedule")
"""They try several others, or until their time is up."""


def one_task(estimate: float | None, real: float = 50_000.0) -> Program:
    """10 s of work that read 1000 bytes; what it makes really has another size than estimated."""
    program = Program("one")
    read = program.input("in", size=1000)
    program.output(program.task(None, inputs=[read], outputs={"out": estimate}, work=10.0))
    program.reality = program.graph.with_size([1000.0, real])
    return program


@pytest.mark.parametrize("scheduler", [name for name in names() if name not in SLOW])
@pytest.mark.parametrize("estimate", [0.0, None, 1.0])
def test_an_item_that_has_bytes_is_moved_whatever_its_estimate(
    scheduler: str, estimate: float | None
) -> None:
    assert simulate_program(one_task(estimate), GRID, scheduler).makespan == pytest.approx(61.0)


def test_an_item_that_really_is_empty_is_not_moved() -> None:
    for estimate in (0.0, 70.0):
        run = simulate_program(one_task(estimate, 0.0), GRID, "workqueue")
        assert (run.makespan, run.bytes_moved) == (11.0, 1000.0)


def test_an_estimate_of_0_for_an_item_with_bytes_is_an_unknown_size() -> None:
    graph = one_task(0.0).graph
    assert graph.unknown_size.tolist() == [False, True]
    assert graph.size.tolist() == [1000.0, ASSUMED_SIZE]
    assert graph.known_size.tolist() == [1000.0, 0.0]


def estimates_of(rng: np.random.Generator, real: Floats) -> Floats:
    """Sizes as somebody may have guessed them: right, wrong, 0 or unknown."""
    guess = real * rng.choice([0.0, 0.1, 1.0, 7.0], len(real)) + rng.choice([0.0, 0.0, 5.0], len(real))
    return np.where(rng.random(len(real)) < 0.2, math.nan, guess)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    network=st.sampled_from(NETWORKS),
    contention=st.sampled_from(["none", "fifo", "fair"]),
    origin=st.sampled_from(ORIGINS),
)
def test_without_regard_for_sizes_the_makespan_does_not_depend_on_their_estimates(
    seed: int, network: str, contention: str, origin: str
) -> None:
    rng = np.random.default_rng(seed)
    real = random_program(seed, 14, SHAPES[seed % len(SHAPES)]).graph
    platform = random_platform(seed, network, hosts=4, contention=contention, origin=origin)  # type: ignore[arg-type]
    runs = [
        simulate_scheduler(graph, platform, make_scheduler("workqueue"), real=real)
        for graph in (real, *(real.with_size(estimates_of(rng, real.size)) for _ in range(3)))
    ]
    assert len({run.makespan for run in runs}) == 1
    assert len({run.bytes_moved for run in runs}) == 1


class Told(MinMin):
    """Min-min that remembers the sizes of outputs that it was told."""

    seen: ClassVar[list[set[float]]] = []

    def plan(self, problem: Problem) -> Plan:
        graph = problem.graph
        Told.seen.append(set(np.round(graph.size[graph.producer >= 0]).tolist()))
        return super().plan(problem)


@pytest.mark.parametrize("estimates", ["user", "history", "sampled", "forecast", "perfect", "bounded:0.5"])
def test_unknown_sizes_are_learned_from_tasks_of_the_same_kind(estimates: str) -> None:
    program = Program("sweep")
    for t in range(12):
        program.task(None, name=f"t{t}", outputs={f"out{t}": None}, work=[10.0 + t, 9.0], kind="sweep")
    program.reality = program.graph.with_size([5e4] * 12)
    Told.seen.clear()
    often = SimulationConfig(policy=ReplanPolicy(events="S1", interval=12.0), estimates=estimates)
    simulate_program(program, GRID, Told(), often)
    if estimates == "bounded:0.5":
        assert all(2.5e4 <= size <= 7.5e4 for size in Told.seen[0])
        assert len(Told.seen[0]) > 1
    else:
        assert Told.seen[0] == {5e4 if estimates == "perfect" else ASSUMED_SIZE}
        assert Told.seen[-1] == {5e4}


def test_storage_is_filled_by_real_bytes() -> None:
    """Both inputs together do not fit, whatever their estimated sizes: the second comes when the first is used."""
    sites = (Site("data"), Site("c", (Host("h"), Host("g")), uplink=1000.0, storage=1500.0))
    tight = Platform(sites, origin="data")
    makespans = set()
    for size in (1.0, None, 1000.0):
        program = Program("two")
        for t in range(2):
            program.task(None, inputs=[program.input(f"in{t}", size=size)], work=10.0)
        program.reality = program.graph.with_size([1000.0, 0.0, 1000.0, 0.0])
        makespans.add(simulate_program(program, tight, "workqueue").makespan)
    assert makespans == {22.0}
