"""auto and best: never worse than the trivial plans, close to the optimum on small cases, reproducible."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.core.scheduler import Problem
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.model.platform import Host, Platform, Site
from headrace.planners.best import Best
from headrace.planners.critical import critical_tasks
from headrace.planners.registry import make
from headrace.testing.generate import SHAPES, random_platform, random_program
from planners.cases import OWN, read_dag, read_net
from planners.oracle import best_makespan

TRIVIAL = ("heft", "single-host", "round-robin", "subset")


def limited(seed: int, contention: str) -> Problem:
    """Some hosts with ports of 10 to 1000 Mbit/s."""
    random = np.random.default_rng(seed)
    hosts = tuple(Host(f"h{i}", float(random.uniform(1, 4))) for i in range(int(random.integers(4, 17))))
    port = float(random.choice([1.25e6, 12.5e6, 125e6]))
    platform = Platform((Site("lab", hosts, bandwidth=port),), contention=contention)  # type: ignore[arg-type]
    return Problem(random_program(seed, tasks=40, shape=SHAPES[seed % len(SHAPES)]).graph, platform)


@pytest.mark.parametrize("contention", ["fifo", "fair"])
def test_never_worse_than_the_trivial_plans_on_limited_ports(contention: str) -> None:
    for seed in range(8):
        problem = limited(seed, contention)
        least = min(make(name).plan(problem).makespan for name in TRIVIAL)
        auto = make("auto").plan(problem)
        best = Best(time=0.1).plan(problem)
        assert best.makespan <= auto.makespan * (1 + 1e-9) <= least * (1 + 2e-9), f"seed {seed}"
        assert check(problem.graph, problem.platform, best) == []


def test_matches_brute_force_on_small_cases() -> None:
    hits = 0
    for seed in range(40):
        program = random_program(seed, tasks=5, shape=SHAPES[seed % len(SHAPES)])
        problem = Problem(program.graph, random_platform(seed, "pairs", hosts=3))
        optimum = best_makespan(problem)
        found = Best(time=0.3).plan(problem).makespan
        assert found >= optimum * (1 - 1e-9), f"seed {seed}: the oracle is not the optimum"
        hits += found <= optimum * (1 + 1e-9)
    assert hits >= 38


def test_search_shortens_the_plan_of_heft_and_repeats_itself() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    heft = make("heft").plan(problem)
    first, again = (Best(time=0.5).plan(problem) for _ in range(2))
    assert first.makespan < heft.makespan * 0.98
    assert np.array_equal(first.start, again.start)
    assert np.array_equal(first.host, again.host)
    assert check(problem.graph, problem.platform, first) == []


def test_progress_only_gets_better() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    heard: list[float] = []
    Best(time=0.3, tell=lambda seconds, makespan, bound: heard.append(makespan)).plan(problem)
    assert len(heard) > 1
    assert heard == sorted(heard, reverse=True)


def test_the_critical_chain_explains_the_makespan() -> None:
    problem = Problem(read_dag(OWN / "dag-square-n100.json.gz"), read_net(OWN / "net-h8.json.gz"))
    plan = make("heft").plan(problem)
    chain = critical_tasks(plan)
    assert plan.finish[chain[0]] == plan.makespan
    assert np.all(np.diff(plan.start[chain]) < 0)
    assert plan.start[chain[-1]] == 0.0


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="'heft' takes no 'time'"):
        make("heft", time=1.0)
    with pytest.raises(UsageError, match="time is 0"):
        make("best", time=0)
