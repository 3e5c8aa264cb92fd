"""Whole problems with rules in CP-SAT: equal to enumeration, with valid bounds."""

from __future__ import annotations

import pytest

from headrace.model.check import check
from headrace.model.graph import make_graph
from headrace.model.platform import Platform
from headrace.rules.cpsat import ROUNDING, solve
from headrace.rules.cpsat_terms import CannotExpress
from headrace.rules.parser import parse_rules
from headrace.rules.semi_active import schedule_space
from rules.brute_force import best, case


def require_optimum(seed: int) -> None:
    problem = case(seed)
    wanted = best(problem).score
    found = solve(problem.rules, schedule_space(problem.graph, problem.platform), time=100)
    assert found.exact
    if wanted is None:
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert found.plan is not None
    assert check(problem.graph, problem.platform, found.plan) == []
    assert all(v.kept for v in found.verdicts if v.importance == "requirement")
    assert found.score == pytest.approx(wanted, abs=ROUNDING)
    assert found.bound <= wanted + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_it_equals_enumeration(seed: int) -> None:
    require_optimum(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 300))
def test_it_equals_enumeration_in_all_cases(seed: int) -> None:
    require_optimum(seed)


def two_tasks() -> tuple[object, Platform]:
    graph = make_graph(work=[2.0, 4.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    return graph, Platform.pairwise([1.0, 2.0], bandwidth=1e6)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("(select max(task-finish-time) from task group by task-start-time) <= 3", "groups by times"),
        ("(select distinct task-start-time from task) <= 3", "distinct"),
        (
            "(select max(task-finish-time) from task) / ((select min(task-start-time) from task) - 5) <= 3",
            "may be negative",
        ),
    ],
)
def test_a_rule_without_an_exact_form_is_named(body: str, why: str) -> None:
    graph, platform = two_tasks()
    rules = parse_rules(f"odd: assert relationship requirement ({body})")
    with pytest.raises(CannotExpress, match=why) as error:
        solve(rules, schedule_space(graph, platform))  # type: ignore[arg-type]
    assert "odd" in str(error.value)


def test_times_that_are_not_whole_units_are_rounded_and_judged_exactly() -> None:
    graph = make_graph(work=[2.0**0.5, 3.0**0.5], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    rules = parse_rules(
        "assert value preference (opt-type = minimize, min = 0, max = 10, "
        "function = (select max(task-finish-time) from task))"
    )
    found = solve(rules, schedule_space(graph, Platform.pairwise([1.0, 1.0], bandwidth=1e6)))
    assert not found.exact
    assert found.score == pytest.approx(3.0**0.5 / 10, abs=1e-9)


def test_among_equal_scores_the_shortest() -> None:
    graph, platform = two_tasks()
    rules = parse_rules(
        "assert value preference (opt-type = minimize, min = 0, max = 10, function = (select count(*) from task))"
    )
    found = solve(rules, schedule_space(graph, platform))  # type: ignore[arg-type]
    assert found.plan is not None
    assert found.plan.makespan == 2.0
