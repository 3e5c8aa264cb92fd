"""The program over classes has the optimum of the one over pairs of hosts, and its flows keep every restriction."""

from __future__ import annotations

import pytest

from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.classes import find_classes
from headrace.planners.pipeline.compact import Compact, Weights, build_compact
from headrace.planners.pipeline.disaggregate import disaggregate, flows, placements
from headrace.planners.pipeline.linear import solve
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.planners.pipeline.rates import find_rates
from headrace.planners.pipeline.search import relax, search
from headrace.planners.pipeline.shared import build_shared
from planners.pipeline.instances import small
from planners.pipeline.pairwise import solve_pairwise

EXACT = 1e-6


def built(problem: PipelineProblem, *, strict: bool) -> Compact:
    rates = find_rates(problem)
    build = build_shared if problem.several_per_host else build_compact
    return build(rates, find_classes(rates), Weights.of(problem), strict=strict)


def compare(problem: PipelineProblem, *, strict: bool) -> bool:
    """Both programs; whether they have a solution."""
    program = built(problem, strict=strict)
    found = search(program, seconds=60.0, gap=1e-9)
    literal = solve_pairwise(problem, strict=strict)
    assert literal.status != "stopped"
    assert (found.x is None) == (literal.x is None)
    if found.x is None:
        return False
    assert found.objective == pytest.approx(literal.objective, rel=EXACT, abs=EXACT)
    where = disaggregate(program, found.x)
    made = Deployment(
        problem=problem,
        planner="test",
        form="strict" if strict else "first relaxation",
        source=problem.sources[where.option].name,
        throughput=where.throughput * program.rates.unit,
        placements=placements(problem, program.rates, where),
        flows=flows(problem, program.rates, where),
        objective=found.objective,
        bound=found.bound,
    )
    assert made.check() == []
    return True


@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_one_filter_on_each_host(seed: int) -> None:
    problem = small(seed)
    for strict in (True, False):
        compare(problem, strict=strict)


@pytest.mark.parametrize("seed", range(0, 400, 20))
def test_filters_that_share_hosts(seed: int) -> None:
    problem = small(seed, several=True)
    for strict in (True, False):
        compare(problem, strict=strict)


def test_the_sample_has_both_outcomes() -> None:
    """Else the tests above would compare nothing."""
    outcomes = {compare(small(seed, most_hosts=6), strict=True) for seed in range(12)}
    assert outcomes == {True, False}


@pytest.mark.parametrize("seed", range(3, 60, 4))
def test_the_relaxation_is_a_bound(seed: int) -> None:
    for strict in (True, False):
        program = built(small(seed, most_hosts=8), strict=strict)
        whole = solve(program.linear, gap=1e-9)
        bound = solve(relax(program) if program.spare == 0 else program.linear, whole=False)
        if whole.x is not None:
            assert bound.objective >= whole.objective - 1e-6 * max(1.0, abs(whole.objective))


@pytest.mark.parametrize("seed", range(1, 400, 40))
@pytest.mark.parametrize("several", [False, True])
def test_what_users_get_is_valid_and_the_best_of_its_form(seed: int, several: bool) -> None:
    problem = small(seed, most_hosts=8, several=several)
    strict, loose = (solve_pairwise(problem, strict=s) for s in (True, False))
    try:
        made = deploy_lpsched(problem, gap=1e-9)
    except NoPlan:
        assert strict.x is None
        return
    assert made.check() == []
    if strict.x is not None:
        assert made.form == "strict"
        assert made.objective == pytest.approx(strict.objective, rel=EXACT, abs=EXACT)
    elif made.form == "first relaxation":
        assert made.objective == pytest.approx(loose.objective, rel=EXACT, abs=EXACT)
    else:
        assert made.form == "second relaxation"
        assert made.objective >= loose.objective - EXACT * max(1.0, abs(loose.objective))
