"""Rules on small problems: `search` without hurry and CP-SAT against enumeration, and the speed of the search.

python -m bench.rules_exact [CASES]
"""

from __future__ import annotations

import sys
import time

from tests.rules.brute_force import Case, best, case

from bench.tools import print_rows
from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.model.platform import Platform
from headrace.planners.search.best_first import BestFirst
from headrace.planners.search.best_first_rules import default_rules
from headrace.rules.cpsat import ROUNDING, solve
from headrace.rules.semi_active import schedule_space
from headrace.testing import random_program


def main(cases: int = 300) -> None:
    search = solver = infeasible = 0
    seconds = [0.0, 0.0, 0.0]
    for seed in range(cases):
        problem = case(seed)
        wanted, seconds[0] = _timed(seconds[0], lambda problem=problem: best(problem).score)
        found, seconds[1] = _timed(seconds[1], lambda problem=problem: _searched(problem))
        solved, seconds[2] = _timed(seconds[2], lambda problem=problem: _solved(problem))
        search += _equal(found, wanted, 1e-9)
        solver += _equal(solved, wanted, ROUNDING)
        infeasible += wanted is None
    headers = ("cases", "infeasible", "search equal", "CP-SAT equal", "enumeration s", "search s", "CP-SAT s")
    print_rows(headers, [(cases, infeasible, search, solver, *seconds)])
    _speed()


def _timed(before: float, run):  # type: ignore[no-untyped-def]
    began = time.perf_counter()
    return run(), before + time.perf_counter() - began


def _equal(found: float | None, wanted: float | None, tolerance: float) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return abs(found - wanted) <= tolerance


def _searched(problem: Case) -> float | None:
    planner = BestFirst(hurry=0, rules=problem.rules, time=600)
    try:
        planner.plan(Problem(problem.graph, problem.platform))
    except NoPlan:
        return None
    assert planner.outcome.proven
    return planner.outcome.score


def _solved(problem: Case) -> float | None:
    found = solve(problem.rules, schedule_space(problem.graph, problem.platform), time=600)
    assert found.status in ("optimal", "infeasible")
    return None if found.plan is None else found.score


def _speed() -> None:
    """18 tasks on 9 hosts with the default rules: in a hurry, and patiently for 5 s."""
    rows = []
    for hurry, limit in ((None, 60.0), (1.0, 5.0), (0.0, 5.0)):
        problem = Problem(random_program(2, tasks=18).graph, Platform.pairwise([1.0] * 9, bandwidth=1e6))
        planner = BestFirst(hurry=hurry, rules=default_rules(), time=limit)
        began = time.perf_counter()
        planner.plan(problem)
        took = time.perf_counter() - began
        found = planner.outcome
        rows.append(
            ("default" if hurry is None else hurry, found.opened, found.created, took, found.created / took)
        )
    print_rows(("hurry", "states opened", "states created", "seconds", "states/s"), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
