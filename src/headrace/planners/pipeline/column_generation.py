"""The linear relaxation by column generation, for any number of different hosts.

The hosts of a zone interact with the rest only through the capacity that they give to each filter. The master program
mixes *proposals* of each zone, which are assignments of its hosts to filters, and has the flows between zones. Given
its dual prices, the best proposal of a zone is found host by host: each runs the filter that is worth most there, or
none. An iteration is a small linear program, solved incrementally, and O(filters * classes). The prices also give an
upper bound that holds for all deployments with this source, at any time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats
from headrace.planners.pipeline.compact import (
    add_balance,
    add_flows,
    add_links,
    add_reader,
    add_totals,
    zone_shares,
)
from headrace.planners.pipeline.groups import Groups
from headrace.planners.pipeline.linear import Builder, Linear, to_proto
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.weights import Weights

MOST_ITERATIONS = 500
LONGEST = 60.0
"""Time limit in seconds of one master program when there is none for the search."""


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The relaxation's solution."""

    bound: float
    """No deployment with this source has a larger objective; -inf: there is none."""
    counts: Floats
    """[filters, groups] fractional numbers of units."""
    value: Floats
    """[filters, groups] what a unit that runs a filter is worth, net of its cost, at the final prices."""


@dataclass(frozen=True, eq=False)
class _Master:
    """The part of the master program that does not grow."""

    linear: Linear
    read: Numbers
    capacity: Numbers
    """Rows [filters - 1, zones]: the work of a filter in a zone is at most what its hosts can do."""
    reserve: Numbers
    """Rows [filters - 1]: 11."""
    copies: Numbers
    """Rows [filters - 1]: 7."""
    convex: Numbers
    """Rows [zones]: a zone has one assignment."""
    most: Floats
    """An upper limit of each column in any solution."""


def relax(
    rates: Rates, groups: Groups, weights: Weights, *, end: float = np.inf, gap: float = 1e-4
) -> Relaxed:
    """Solve the relaxation within a relative gap, or as far as the time allows; `end` is on the monotonic clock.

    W_MIN is not part of it. Units that could not be kept as busy as W_MIN demands are not proposed, but count in the
    bound, because they may be the only host of a filter.
    """
    generation = _Generation(rates, groups, weights)
    for _ in range(MOST_ITERATIONS):
        if not generation.solve(end):
            break
        grown = generation.price()
        if generation.gap <= gap or not grown or time.monotonic() > end:
            break
    return generation.result()


def _build_master(rates: Rates, weights: Weights, groups: Groups) -> _Master:
    b = Builder()
    k, n_zones = rates.n_filters, len(rates.weight)
    read, _ = add_reader(b, rates)
    work = b.add_columns((k, n_zones), high=np.where(np.arange(k)[:, None] > 0, np.inf, 0.0))
    add_totals(b, k, work, read)
    streams, pairs, between = add_flows(b, rates)
    share = zone_shares(rates, groups.zone, groups.share * groups.size)
    add_balance(b, rates, np.arange(n_zones), share, streams, pairs, between, read, work)
    add_links(b, rates, pairs, between)
    capacity = b.add_rows((k - 1) * n_zones, high=0.0).reshape(k - 1, n_zones)
    b.put(capacity, work[1:], 1.0)
    reserve = b.add_rows(k - 1, low=0.0)
    if weights.spare > 0:
        b.put(reserve, read, -(1 + weights.spare))
    copies = b.add_rows(k - 1, low=1.0)
    convex = b.add_rows(n_zones, high=1.0)
    most = np.full(b.n_columns, rates.reader_rate[0])
    most[between] *= rates.stream_rate[streams][:, None]
    return _Master(b.build(), read, capacity, reserve, copies, convex, most)


class _Generation:
    """The growing master program, in GLOP, with the proposals so far."""

    def __init__(self, rates: Rates, groups: Groups, weights: Weights) -> None:
        from ortools.math_opt.python import mathopt

        self.mathopt: Any = mathopt
        self.groups, self.weights = groups, weights
        self.master = _build_master(rates, weights, groups)
        self.model = mathopt.Model.from_model_proto(to_proto(self.master.linear, integer=False))
        self.rows = list(self.model.linear_constraints())
        free = np.flatnonzero(groups.share == 0)
        order = free[np.argsort(groups.zone[free], kind="stable")]
        zones, start = np.unique(groups.zone[order], return_index=True)
        ends = np.append(start[1:], len(order))
        self.members = {z: order[start[j] : ends[j]] for j, z in enumerate(zones.tolist())}
        least = weights.least[:, None] * groups.power
        self.proposable = groups.limit >= least * (1 - 1e-9)
        self.proposals: list[tuple[Any, Numbers, Numbers]] = []
        """The variable, the groups, and the filter of each."""
        self.constant = -weights.host_cost * int((groups.size * groups.per)[groups.reading].sum())
        self.bound, self.objective = np.inf, -np.inf
        self.feasible = True
        self.mix: Floats = np.empty(0)
        self.dual: Floats = np.zeros(len(self.rows))
        self._start()
        self.solver = mathopt.IncrementalSolver(self.model, mathopt.SolverType.GLOP)

    @property
    def gap(self) -> float:
        return (self.bound - self.objective) / max(abs(self.bound), 1e-12)

    def _start(self) -> None:
        """Proposals of each zone: all hosts for one filter, for each filter, and a division by the work of filters."""
        n_filters = len(self.groups.limit)
        for z, here in self.members.items():
            for k in range(1, n_filters):
                self._propose(z, here, np.full(len(here), k))
            need = 1.0 / np.maximum(self.groups.limit[1:, here].mean(axis=1), 1e-300)
            cuts = np.rint(np.cumsum(need) / need.sum() * len(here)).astype(np.int64)
            self._propose(z, here, 1 + np.searchsorted(cuts, np.arange(len(here)), side="right"))

    def _propose(self, z: int, here: Numbers, runs: Numbers) -> None:
        """Add a proposal to the master program: the filter of each group of a zone, 0 for none."""
        groups, master = self.groups, self.master
        runs = np.where((runs > 0) & self.proposable[np.maximum(runs, 1), here], runs, 0)
        busy = runs > 0
        at, g = runs[busy], here[busy]
        variable = self.model.add_variable(lb=0.0)
        n_filters = len(groups.limit)
        size = groups.size[g]
        cost = float((groups.cost[at, g] * size).sum())
        self.model.objective.set_linear_coefficient(variable, -cost)
        for rows, amount, sign in (
            (master.capacity[:, z], groups.limit[at, g], -1.0),
            (master.reserve, groups.reserve[at, g], 1.0),
            (master.copies, groups.per[g], 1.0),
        ):
            total = np.bincount(at, amount * size, n_filters)
            for k in np.flatnonzero(total).tolist():
                self.rows[rows[k - 1]].set_coefficient(variable, sign * float(total[k]))
        self.rows[master.convex[z]].set_coefficient(variable, 1.0)
        self.proposals.append((variable, here, runs))

    def solve(self, end: float) -> bool:
        """Solve the master program; False if it has no solution or there is no time left."""
        left = min(end - time.monotonic(), LONGEST)
        if left <= 0:
            return False
        limit = self.mathopt.SolveParameters(time_limit=timedelta(seconds=max(left, 0.05)))
        result = self._solve(limit)
        reasons = self.mathopt.TerminationReason
        if result.termination.reason in (reasons.INFEASIBLE, reasons.INFEASIBLE_OR_UNBOUNDED):
            self.feasible = False
            return False
        if result.termination.reason != reasons.OPTIMAL:
            return False
        self.objective = float(result.objective_value()) + self.constant
        self.dual = np.array(result.dual_values(self.rows))
        self.mix = np.array(result.variable_values([v for v, _, _ in self.proposals]))
        return True

    def _solve(self, limit: Any) -> Any:
        """By GLOP from the last basis; from the beginning by HiGHS where that basis leads to numerical trouble."""
        mathopt = self.mathopt
        try:
            return self.solver.solve(params=limit)
        except (AttributeError, RuntimeError, ValueError):  # raised by MathOpt's own error handling
            self.solver.close()
        try:
            result = mathopt.solve(self.model, mathopt.SolverType.HIGHS, params=limit)
        except (AttributeError, RuntimeError, ValueError) as error:
            reason = error.__context__ or error
            raise NoPlan(f"the solver failed: {reason}", hint="check the numbers") from None
        self.solver = mathopt.IncrementalSolver(self.model, mathopt.SolverType.GLOP)
        return result

    def value(self) -> Floats:
        """[filters, groups] the worth of a unit at the master's prices."""
        groups, master, dual = self.groups, self.master, self.dual
        value = np.full(groups.limit.shape, -np.inf)
        value[1:] = np.maximum(dual[master.capacity], 0.0)[:, groups.zone] * groups.limit[1:]
        value[1:] -= np.minimum(dual[master.reserve], 0.0)[:, None] * groups.reserve[1:]
        value[1:] -= np.minimum(dual[master.copies], 0.0)[:, None] * groups.per
        value[1:] -= groups.cost[1:]
        value[:, groups.reading] = -np.inf
        return value

    def price(self) -> bool:
        """Improve the bound, and add the best proposal of each zone; False if there is no new one."""
        value = self.value()
        self.bound = min(self.bound, self._bound(value))
        value = np.where(self.proposable, value, -np.inf)
        best = np.argmax(value, axis=0)
        worth = np.maximum(np.take_along_axis(value, best[None], 0)[0], 0.0)
        runs = np.where(worth > 0, best, 0)
        grown = False
        for z, here in self.members.items():
            more = float((worth[here] * self.groups.size[here]).sum()) - float(
                self.dual[self.master.convex[z]]
            )
            if more > 1e-9 * max(1.0, abs(self.objective)):
                self._propose(z, here, runs[here])
                grown = True
        return grown

    def _bound(self, value: Floats) -> float:
        """The Lagrangian bound: zones and flows at their best for these prices, and the limits of all other rows.

        It holds for any prices of the right sign, so it does not depend on the tolerances of the solver.
        """
        linear, dual = self.master.linear, self.dual.copy()
        dual[self.master.convex] = 0.0
        dual = np.where(np.isinf(linear.row_low), np.maximum(dual, 0.0), dual)
        dual = np.where(np.isinf(linear.row_high), np.minimum(dual, 0.0), dual)
        limits = np.where(dual > 0, linear.row_high, linear.row_low)
        priced = dual != 0
        total = float((dual[priced] * limits[priced]).sum())
        total += float((np.maximum(value.max(axis=0), 0.0) * self.groups.size).sum())
        reduced = linear.cost - np.bincount(linear.column, linear.value * dual[linear.row], len(linear.cost))
        total += float((np.maximum(reduced, 0.0) * self.master.most).sum())
        return total + self.constant

    def result(self) -> Relaxed:
        counts = np.zeros(self.groups.limit.shape)
        if not self.feasible:
            # Without proposals that W_MIN excludes, an infeasible master program proves nothing.
            bound = -np.inf if self.proposable[1:].all() else np.inf
            return Relaxed(bound, counts, counts)
        for (_, here, runs), part in zip(self.proposals, self.mix.tolist(), strict=False):
            if part > 1e-9:
                np.add.at(counts, (runs, here), part * self.groups.size[here])
        counts[0] = 0.0
        return Relaxed(self.bound, counts, self.value())
