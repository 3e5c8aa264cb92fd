"""Every solver that the project uses works, all in one process."""

from __future__ import annotations

import numpy as np
import pytest


def test_all_solvers_in_one_process() -> None:
    from ortools.math_opt.python import mathopt
    from ortools.sat.python import cp_model

    for solver in ("HIGHS", "GSCIP", "CP_SAT", "GLOP", "HIGHS"):
        model = mathopt.Model()
        x = model.add_variable(lb=0, ub=10, is_integer=solver != "GLOP")
        y = model.add_variable(lb=0, ub=3, is_integer=solver != "GLOP")
        model.add_linear_constraint(x + 2 * y <= 9)
        model.maximize(2 * x + 5 * y)
        result = mathopt.solve(model, mathopt.SolverType[solver])
        assert result.objective_value() == pytest.approx(21.0)
    sat = cp_model.CpModel()
    a = sat.new_int_var(0, 10, "a")
    sat.add(3 * a <= 20)
    sat.maximize(a)
    solver = cp_model.CpSolver()
    assert solver.solve(sat) == cp_model.OPTIMAL
    assert solver.value(a) == 6


def test_linear_programs_give_prices() -> None:
    from headrace.planners.pipeline.linear import Builder, solve

    b = Builder()
    x = b.add_columns((2,), cost=[3.0, 2.0], whole=True)
    b.put(b.add_rows(1, high=4.5), x, 1.0)
    b.put(b.add_rows(1, high=3.0), x[0], 1.0)
    program = b.build()
    relaxed = solve(program, whole=False)
    assert relaxed.objective == pytest.approx(12.0)
    assert relaxed.dual is not None
    np.testing.assert_allclose(relaxed.dual, [2.0, 1.0])
    assert solve(program).objective == pytest.approx(11.0)
    np.testing.assert_allclose(program.times(np.array([1.0, 2.0])), [3.0, 1.0])
    low = program.low.copy()
    low[0] = 4.0
    assert solve(program.with_bounds(low, program.high)).status == "infeasible"


def test_entries_put_twice_add_up() -> None:
    from headrace.planners.pipeline.linear import Builder, solve

    b = Builder()
    x = b.add_columns((1,), cost=1.0)
    row = b.add_rows(1, high=6.0)
    b.put(row, x, 1.0)
    b.put(row, x, 2.0)
    assert solve(b.build()).objective == pytest.approx(2.0)
