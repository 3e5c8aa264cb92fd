"""Planners against proven optima of a plain constraint program, and properties of plans with needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.check import check, require_valid
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.bounds import full_bound, lower_bound
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound
from headrace.simulator.replay.plan_replay import replay_plan
from headrace.testing.exact_links import proven_optimum

from .cases import small_case

QUICK = ("heft", "peft", "minmin", "sufferage", "restarts", "subset", "locality", "equal-load", "pull")


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 36), marks=pytest.mark.slow)])
@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_no_plan_beats_the_optimum_and_searches_reach_it(contention: Contention, seeds: range) -> None:
    reached = {"best": 0, "coschedule": 0}
    cases = 0
    for seed in seeds:
        problem = small_case(seed, contention)
        optimum = proven_optimum(problem, 20.0)
        if optimum is None:
            continue
        cases += 1
        lower, upper = optimum
        assert lower_bound(problem) <= upper
        for name in QUICK:
            plan = plan_with_bound(make(name), problem)
            require_valid(problem.graph, problem.platform, plan)
            assert plan.makespan >= lower, f"{name} beats the optimum of case {seed}"
        for name in reached:
            plan = plan_with_bound(make(name, time=0.3), problem)
            require_valid(problem.graph, problem.platform, plan)
            assert lower <= plan.makespan, f"{name} beats the optimum of case {seed}"
            assert plan.bound <= upper, f"{name} claims too much for case {seed}"
            reached[name] += plan.makespan <= upper
    assert cases >= 0.8 * len(seeds)
    assert min(reached.values()) >= 0.8 * cases, reached


@pytest.mark.slow
def test_full_bounds_do_not_exceed_the_optimum() -> None:
    for seed in range(40):
        problem = small_case(seed, ("none", "fifo")[seed % 2])
        optimum = proven_optimum(problem, 20.0)
        if optimum is not None:
            assert full_bound(problem) <= optimum[1], f"case {seed}"


amounts = st.integers(0, 6)
tasks = st.lists(
    st.tuples(st.floats(0.0, 9.0, allow_subnormal=False), amounts, st.integers(0, 2), st.integers(1, 2)),
    min_size=1,
    max_size=12,
)
hosts = st.lists(
    st.tuples(st.sampled_from((0.5, 1.0, 3.0)), st.integers(1, 4), st.integers(0, 9), st.integers(0, 2)),
    min_size=0,
    max_size=3,
)


def drawn(work: list[tuple[float, int, int, int]], some: list[tuple[float, int, int, int]]) -> Problem:
    """Tasks (work, memory, GPUs, cores) in a line of pairs, on hosts of which the last has enough for each."""
    program = Program("drawn")
    for number, (seconds, memory, gpus, cores) in enumerate(work):
        program.task(
            None, work=seconds, memory=memory, resources={"gpu": gpus}, cores=cores, name=f"t{number}",
            inputs=[f"x{number - 1}"] if number % 2 else [], outputs={f"x{number}": 1e5},
        )  # fmt: skip
    listed = [
        Host(f"h{i}", speed, cores, memory=memory, resources={"gpu": gpus})
        for i, (speed, cores, memory, gpus) in enumerate(some)
    ]
    listed.append(Host("enough", 1.0, 3, memory=7.0, resources={"gpu": 2}))
    return Problem(program.graph, Platform((Site("a", tuple(listed), bandwidth=1e6),), contention="fifo"))


@settings(max_examples=20, deadline=None)
@given(tasks, hosts, st.sampled_from(QUICK), st.integers(0, 5))
def test_plans_replays_and_runs_have_room(
    work: list[tuple[float, int, int, int]], some: list[tuple[float, int, int, int]], name: str, seed: int
) -> None:
    problem = drawn(work, some)
    plan = plan_with_bound(make(name), problem)
    require_valid(problem.graph, problem.platform, plan)
    executed = replay_plan(plan, error=0.6, seed=seed).executed
    rules = {violation.rule for violation in check(executed.graph, executed.platform, executed)}
    assert not rules & {"memory", "resource", "cores"}
    for scheduler in ("lheft", "workqueue", name):
        run = hr.simulate(problem.graph, problem.platform, scheduler, seed=seed)
        assert not check(problem.graph, problem.platform, run.executed)


def test_a_large_program_on_many_hosts() -> None:
    """Planning with needs stays in proportion: thousands of tasks on a hundred hosts."""
    random = np.random.default_rng(5)
    program = Program("large")
    for number in range(3000):
        memory, gpus = int(random.integers(1, 9)), int(random.random() < 0.1)
        program.task(
            None, work=float(random.uniform(1, 9)), memory=memory, resources={"gpu": gpus}, name=f"t{number}"
        )
    machines = tuple(
        Host(f"h{i}", 1.0 + i % 3, 4, memory=16.0, resources={"gpu": int(i % 5 == 0)}) for i in range(100)
    )
    lab = Platform((Site("a", machines),))
    plan = hr.plan(program, lab, "heft")
    require_valid(program.graph, lab, plan)
    assert plan.makespan <= 1.5 * plan.bound
