"""Choose among equally good deployments: powerful hosts first, then lower-numbered hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.graph import Floats
from headrace.planners.pipeline.classes import Classes
from headrace.planners.pipeline.compact import Compact
from headrace.planners.pipeline.linear import solve

MOST_COLUMNS = 150
"""Maximum number of integer columns for which ties are broken."""
NODES = 200
"""Node limit for tie-breaking, so that the answer is reproducible."""
MOST_SECONDS = 2.0


def break_ties(program: Compact, classes: Classes, x: Floats) -> Floats:
    """A solution as good as `x` in which hosts are taken in order, or `x` if none was found."""
    linear = program.linear
    if int(linear.whole.sum()) > MOST_COLUMNS:
        return x
    value = float(linear.cost @ x)
    slack = 1e-8 * max(1.0, abs(value))
    used = np.flatnonzero(linear.cost)
    row = len(linear.row_low)
    ranked = replace(
        linear,
        cost=_ranks(program, classes),
        row=np.concatenate([linear.row, np.full(len(used), row)]),
        column=np.concatenate([linear.column, used]),
        value=np.concatenate([linear.value, linear.cost[used]]),
        row_low=np.append(linear.row_low, value - slack),
        row_high=np.append(linear.row_high, np.inf),
    )
    answer = solve(ranked, seconds=MOST_SECONDS, nodes=NODES, start=x)
    if answer.x is None:
        return x
    low, high = linear.low.copy(), linear.high.copy()
    low[linear.whole] = high[linear.whole] = np.rint(answer.x[linear.whole])
    exact = solve(linear.with_bounds(low, high), whole=False)
    return exact.x if exact.x is not None and exact.objective >= value - 2 * slack else x


def _ranks(program: Compact, classes: Classes) -> Floats:
    """Negative cost of each host: its position in the order, weighted slightly more for filters with much work."""
    cost = np.zeros(len(program.linear.cost))
    slowness = 1.0 / classes.core[:, 0]
    heavy = slowness / max(float(slowness.max()), 1e-300)
    for k in range(1, program.rates.n_filters):
        order = np.lexsort((classes.first, -classes.core[k] * classes.cores))
        rank = np.empty(classes.n)
        rank[order] = np.arange(1, classes.n + 1) / classes.n
        np.subtract.at(cost, program.count[k], rank * (1.0 + 0.25 * heavy[k]))
    return cost
