"""The program over classes has the optimum of the one over pairs of hosts, and its flows keep every restriction."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.column_generation import relax
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.portfolio import ask
from planners.pipeline.instances import small
from planners.pipeline.pairwise import solve_pairwise

EXACT = 1e-6


def compare(problem: PipelineProblem) -> bool:
    """Both programs; whether they have a solution."""
    literal = solve_pairwise(problem)
    assert literal.status != "stopped"
    try:
        made = deploy_lpsched(problem, gap=1e-9)
    except NoPlan:
        assert literal.x is None or not _flows(problem, literal.x)
        return False
    assert made.check() == []
    assert made.objective == pytest.approx(literal.objective, rel=EXACT, abs=EXACT)
    assert made.bound == pytest.approx(made.objective, rel=EXACT, abs=EXACT)
    return True


def _flows(problem: PipelineProblem, x: np.ndarray) -> bool:
    """Whether anything is read in a solution of the literal program."""
    return bool(x[1] > 1e-9)


def seeds(step: int) -> list[Any]:
    """Four seeds for the quick suite, the others for the slow one."""
    quick = range(0, 400, 100)
    return [s if s in quick else pytest.param(s, marks=pytest.mark.slow) for s in range(0, 400, step)]


@pytest.mark.parametrize("seed", seeds(10))
def test_one_filter_on_each_host(seed: int) -> None:
    compare(small(seed))


@pytest.mark.parametrize("seed", seeds(20))
def test_filters_that_share_hosts(seed: int) -> None:
    compare(small(seed, several=True))


def test_the_sample_has_both_outcomes() -> None:
    """Else the tests above would compare nothing."""
    outcomes = {compare(small(seed, most_hosts=6)) for seed in range(12)}
    assert outcomes == {True, False}


@pytest.mark.parametrize("seed", range(3, 120, 4))
def test_the_relaxation_is_a_bound(seed: int) -> None:
    """That of column generation, which also equals the linear program over classes where W_MIN is 0."""
    problem = small(seed, most_hosts=10)
    try:
        question = ask(problem)
    except NoPlan:
        return
    for case in question.cases:
        relaxed = relax(case.rates, case.groups, case.weights, end=time.monotonic() + 20, gap=1e-9)
        program = case.build()
        whole = solve(program.linear, gap=1e-9)
        scale = max(1.0, abs(whole.objective))
        if whole.x is not None:
            assert relaxed.bound >= whole.objective + program.constant - 1e-6 * scale
        if problem.knobs.least == 0:
            loose = solve(program.linear, whole=False)
            if loose.x is None:
                assert relaxed.bound == -np.inf
            else:
                assert relaxed.bound == pytest.approx(loose.objective + program.constant, rel=1e-5, abs=1e-6)
