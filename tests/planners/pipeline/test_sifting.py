"""With shared hosts, a program over some of the hosts has the optimum and the bound of that over all."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from bench.generated.deployments import all_different
from bench.generated.pipelines import mixed_machines
from bench.solvers import bounds

from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.portfolio import ask
from headrace.planners.pipeline.sifting import can_sift, sift, worth


def shared(problem: PipelineProblem) -> PipelineProblem:
    return replace(problem, several_per_host=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [all_different(120, 4, seed=2, shape="mesh"), mixed_machines(150, 5, 0, seed=3)]
)
def test_the_relaxation_of_all_hosts(problem: PipelineProblem) -> None:
    for case in ask(shared(problem)).cases:
        assert can_sift(case.rates, case.classes)
        found = sift(case.rates, case.classes, case.weights, end=time.monotonic() + 60, gap=1e-9)
        whole = case.build()
        loose = solve(whole.linear, whole=False)
        assert found.bound == pytest.approx(loose.objective + whole.constant, rel=1e-6)


def test_what_a_host_could_add_is_not_underestimated() -> None:
    """Without one of its hosts, the optimum is lower by at most what that host is worth at the prices without it."""
    (case, *_) = ask(shared(all_different(40, 3, seed=5, shape="mesh"))).cases
    whole = case.build()
    best = solve(whole.linear, whole=False).objective
    used = np.flatnonzero(case.classes.share[0] == 0)
    for g in used[::5].tolist():
        high = whole.linear.high.copy()
        high[whole.count[0, g]] = 0.0
        without = solve(whole.linear.with_bounds(whole.linear.low, high), whole=False)
        value = worth(case.rates, case.classes, case.weights, whole, without)
        assert best - without.objective <= max(value[g], 0.0) + 1e-6 * abs(best)


def test_many_shared_hosts_are_near_the_bound() -> None:
    made = deploy_lpsched(shared(all_different(600, 9, seed=2, shape="mesh")), gap=0.01)
    assert made.check() == []
    assert made.gap <= 0.01


@pytest.mark.slow
def test_every_way_of_solving_has_the_bound_of_the_question() -> None:
    assert bounds(12) == 0
