"""A mixed-integer linear program as arrays, and its solution by HiGHS through OR-Tools' MathOpt."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.errors import NoPlan
from headrace.model.graph import Bools, Floats
from headrace.planners.pipeline.solver_output import without_messages


@dataclass(frozen=True, eq=False)
class Linear:
    """Maximise cost . x subject to row_low <= A x <= row_high and low <= x <= high, some x integer."""

    cost: Floats
    low: Floats
    high: Floats
    whole: Bools
    row: Numbers
    """The entries of A, sorted by row, then column: A[row[j], column[j]] = value[j]."""
    column: Numbers
    value: Floats
    row_low: Floats
    row_high: Floats

    def with_bounds(self, low: Floats, high: Floats) -> Linear:
        return replace(self, low=low, high=high)

    def times(self, x: Floats) -> Floats:
        """A x."""
        return np.bincount(self.row, self.value * x[self.column], len(self.row_low)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver found. `x` is None when there is no solution, or none was found in time."""

    status: Literal["optimal", "stopped", "infeasible"]
    x: Floats | None
    objective: float
    bound: float
    """No solution has a larger objective."""
    dual: Floats | None = None
    """Dual values of the rows, for programs without integers: gain per unit of the right-hand side."""


@dataclass
class Builder:
    """Collects columns and rows in bulk."""

    columns: list[tuple[Floats, Floats, Floats, Bools]] = field(default_factory=list)
    n_columns: int = 0
    entries: list[tuple[Numbers, Numbers, Floats]] = field(default_factory=list)
    rows: list[tuple[Floats, Floats]] = field(default_factory=list)
    n_rows: int = 0

    def add_columns(
        self,
        shape: tuple[int, ...],
        *,
        low: Any = 0.0,
        high: Any = np.inf,
        cost: Any = 0.0,
        whole: bool = False,
    ) -> Numbers:
        """Add columns; returns their numbers in the requested shape."""
        count = int(np.prod(shape, dtype=np.int64))
        parts = [np.broadcast_to(np.asarray(v, np.float64), shape).ravel() for v in (low, high, cost)]
        self.columns.append((parts[0], parts[1], parts[2], np.full(count, whole)))
        self.n_columns += count
        return np.arange(self.n_columns - count, self.n_columns).reshape(shape)

    def add_rows(self, count: int, *, low: Any = -np.inf, high: Any = np.inf) -> Numbers:
        """Add empty rows; returns their numbers."""
        both = [np.array(np.broadcast_to(np.asarray(v, np.float64), (count,))) for v in (low, high)]
        self.rows.append((both[0], both[1]))
        self.n_rows += count
        return np.arange(self.n_rows - count, self.n_rows)

    def put(self, rows: Any, columns: Any, values: Any) -> None:
        """Add entries to A; repeated entries are summed. The arguments are broadcast together."""
        r, c, v = np.broadcast_arrays(rows, columns, np.asarray(values, np.float64))
        self.entries.append((r.ravel(), c.ravel(), v.ravel()))

    def build(self) -> Linear:
        row, column, value = (np.concatenate([e[j] for e in self.entries]) for j in range(3))
        key = row.astype(np.int64) * self.n_columns + column
        key, inverse = np.unique(key, return_inverse=True)
        value = np.bincount(inverse.ravel(), value, len(key)).astype(np.float64)
        keep = value != 0
        key, value = key[keep], value[keep]
        low, high, cost, whole = (np.concatenate([c[j] for c in self.columns]) for j in range(4))
        row_low, row_high = (np.concatenate([r[j] for r in self.rows]) for j in range(2))
        return Linear(
            cost, low, high, whole, key // self.n_columns, key % self.n_columns, value, row_low, row_high
        )


def solve(
    program: Linear,
    *,
    whole: bool = True,
    seconds: float = 60.0,
    gap: float = 1e-9,
    start: Floats | None = None,
    nodes: int | None = None,
    primal: bool = False,
) -> Answer:
    """Solve with one thread; `whole=False` drops the integrality constraints.

    `primal`: linear programs by the primal simplex method (GLOP), which is faster where most columns remain at 0.
    Branch and bound stops at a proven relative gap, after `seconds`, or after `nodes`.
    """
    from ortools.math_opt.python import mathopt

    integer = whole and bool(program.whole.any())
    model = mathopt.Model.from_model_proto(to_proto(program, integer=integer))
    hints = [] if start is None or not integer else [_hint(mathopt, model, start)]
    limit = timedelta(seconds=max(seconds, 0.05))
    solver, params = mathopt.SolverType.HIGHS, mathopt.SolveParameters(time_limit=limit)
    if primal and not integer:
        solver = mathopt.SolverType.GLOP
    else:
        params = mathopt.SolveParameters(time_limit=limit, highs=_options(gap, nodes))
    try:
        with without_messages() if integer else nullcontext():
            result = mathopt.solve(
                model,
                solver,
                params=params,
                model_params=mathopt.ModelSolveParameters(solution_hints=hints),
            )
    except (AttributeError, RuntimeError, ValueError) as error:  # raised by MathOpt's own error handling
        reason = error.__context__ or error
        raise NoPlan(f"the solver failed: {reason}", hint="allow more time, or check the numbers") from None
    return _answer(mathopt, model, result, integer)


def to_proto(program: Linear, *, integer: bool) -> Any:
    """The program in the form that MathOpt reads."""
    from ortools.math_opt import model_pb2

    proto = model_pb2.ModelProto()
    n, m = len(program.cost), len(program.row_low)
    variables = proto.variables
    variables.ids.extend(range(n))
    variables.lower_bounds.extend(program.low.tolist())
    variables.upper_bounds.extend(program.high.tolist())
    variables.integers.extend(program.whole.tolist() if integer else [False] * n)
    proto.objective.maximize = True
    used = np.flatnonzero(program.cost)
    proto.objective.linear_coefficients.ids.extend(used.tolist())
    proto.objective.linear_coefficients.values.extend(program.cost[used].tolist())
    proto.linear_constraints.ids.extend(range(m))
    proto.linear_constraints.lower_bounds.extend(program.row_low.tolist())
    proto.linear_constraints.upper_bounds.extend(program.row_high.tolist())
    matrix = proto.linear_constraint_matrix
    matrix.row_ids.extend(program.row.tolist())
    matrix.column_ids.extend(program.column.tolist())
    matrix.coefficients.extend(program.value.tolist())
    return proto


def _options(gap: float, nodes: int | None) -> Any:
    from ortools.math_opt.solvers import highs_pb2

    options = highs_pb2.HighsOptionsProto()
    options.int_options["threads"] = 1
    options.double_options["mip_rel_gap"] = gap
    options.double_options["mip_abs_gap"] = 1e-9
    options.double_options["mip_feasibility_tolerance"] = 1e-7
    if nodes is not None:
        options.int_options["mip_max_nodes"] = nodes
    return options


def _hint(mathopt: Any, model: Any, start: Floats) -> Any:
    values = dict(zip(model.variables(), start.tolist(), strict=True))
    return mathopt.SolutionHint(variable_values=values)


def _answer(mathopt: Any, model: Any, result: Any, integer: bool) -> Answer:
    reason = result.termination.reason
    reasons = mathopt.TerminationReason
    if reason in (reasons.INFEASIBLE, reasons.INFEASIBLE_OR_UNBOUNDED):
        return Answer("infeasible", None, -np.inf, -np.inf)
    if reason not in (reasons.OPTIMAL, reasons.FEASIBLE, reasons.NO_SOLUTION_FOUND):
        raise NoPlan(
            f"the solver ended with {reason.name}: {result.termination.detail}", hint="allow more time"
        )
    bound = float(result.termination.objective_bounds.dual_bound)
    if not result.has_primal_feasible_solution():
        return Answer("stopped", None, -np.inf, bound)
    x = np.array(result.variable_values(model.variables()))
    dual = None
    if not integer and result.has_dual_feasible_solution():
        dual = np.array(result.dual_values(model.linear_constraints()))
    status: Literal["optimal", "stopped"] = "optimal" if reason == reasons.OPTIMAL else "stopped"
    return Answer(status, x, float(result.objective_value()), bound, dual)
