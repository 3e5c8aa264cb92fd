"""Turns of tasks under a limit on tasks at once, taken from a plan."""

from __future__ import annotations

import numpy as np

from headrace.model.constraints import Limit, with_order
from headrace.model.graph import make_graph
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Platform
from headrace.model.turns import turns_of


def test_the_tasks_of_a_limit_take_turns() -> None:
    """In the order of `turns_of`, no schedule that keeps the order runs more of the tasks at once."""
    rng = np.random.default_rng(3)
    n, most = 40, 3
    graph = make_graph(work=[1.0] * n, size=[], producer=[], read_ptr=[0] * (n + 1), reads=[])
    platform = Platform.pairwise([1.0] * n, bandwidth=1.0)
    start, free = np.zeros(n), np.zeros(most)
    for task in range(n):
        place = int(np.argmin(free))
        start[task] = free[place] + rng.choice([0.0, 0.5])
        free[place] = start[task] + rng.uniform(0.1, 2.0)
        graph.work[task] = free[place] - start[task]
    host = np.arange(n, dtype=np.int32)
    plan = Plan(graph, platform, "x", host, np.zeros(n, np.int32), start, start + graph.work, **NO_MOVES)
    limit = Limit(np.ones(n, np.bool_), np.ones(n, np.bool_), at_once=float(most))
    turns = turns_of(limit, plan)
    assert len(turns) == n - most
    assert with_order(graph, turns).n_tasks == n
    assert (
        len(np.unique(turns[:, 0])) == len(np.unique(turns[:, 1])) == n - most
    )  # chains, one for each place
    assert (plan.finish[turns[:, 0]] <= plan.start[turns[:, 1]] + 1e-9).all()
