"""Bounds from programs over kinds of tasks and classes of hosts, each better than the one before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Problem
from headrace.model.bound import Bound
from headrace.planners.bounding.chain_prices import chain_bounds
from headrace.planners.bounding.flows import Flows
from headrace.planners.bounding.ordered_tasks import can_order, ordered_bounds
from headrace.planners.bounding.task_groups import group_tasks
from headrace.planners.bounding.whole_tasks import WholeTasks
from headrace.planners.bounding.work_program import WorkProgram
from headrace.planners.bounding.work_table import WorkTable, work_table
from headrace.planners.bounds import CHAIN, KINDS

CHAINS = "chains of tasks that share hosts"
WITH_DATA = "work and data over hosts and links"
WHOLE = "whole tasks on classes of hosts"
ORDERED = "whole tasks in order on classes of hosts"
MOST_STEPS = 60_000_000
"""Maximum of (tasks + reads) * places, and of tasks * hosts, for which programs are solved."""
_FRACTIONS = 1600
"""Groups times classes in the program of work,"""
_FLOW_FRACTIONS = 480
"""and in the program of work and data."""
_CHAINS_PART = 0.2
"""Share of the time for chains that share hosts."""
_CLOSE = 2e-3
"""The search for the largest makespan that is impossible ends when it is known to this share."""
_PROVEN = 1.0 - 1e-9


def improving_bounds(problem: Problem, best: Bound, most: float, until: float) -> Iterator[Bound]:
    """Bounds above `best`, until the time is up or one is as large as `most`, the makespan of a known plan."""
    graph = problem.graph
    places = len(np.unique(problem.platform.network.host_place))
    steps = max((graph.n_tasks + len(graph.reads)) * places, graph.n_tasks * len(problem.platform.hosts))
    if steps > MOST_STEPS or best >= most * _PROVEN:
        return
    table = work_table(problem)
    for found in _all(table, best, most, until):
        if found > best * (1.0 + 1e-12) and np.isfinite(found):
            best = found
            yield best
        if best >= most * _PROVEN or work_clock() > until:
            return


def _all(table: WorkTable, best: Bound, most: float, until: float) -> Iterator[Bound]:
    """The candidates, cheapest first; those after a better one start from it."""
    # Of a large problem, the quick bound knows the chain without the places of its tasks only.
    chain = Bound(float(table.chain.min(axis=1).max()), CHAIN)
    if np.isfinite(chain):
        best = max(best, chain)
        yield best
    for value in chain_bounds(table, best, most, work_clock() + _CHAINS_PART * (until - work_clock())):
        best = max(best, Bound(value, CHAINS))
        yield best
    count = table.seconds.shape[1]
    fine = group_tasks(table, max(60, _FRACTIONS // count))
    programs = [WorkProgram(table, fine)]
    if table.problem.platform.contention != "none":
        coarse = group_tasks(table, max(40, _FLOW_FRACTIONS // count))
        flows = Flows(table, coarse)
        if flows.resources:
            programs.append(WorkProgram(table, coarse, flows))
    # Each is solved once before the search for more, so that a slow machine has the bound of each.
    first = []
    for program in programs:
        value, data = program.bound(float(best), np.inf, until)
        first.append(value)
        best = max(best, Bound(value, WITH_DATA if data else KINDS))
        yield best
    for k in sorted(range(len(programs)), key=lambda k: -first[k]):
        for found in _larger(programs[k], best, most, until):
            best = max(best, found)
            yield best
    if fine.exact:
        for value in WholeTasks(table, fine, programs[0].rows).bounds(best, most, until):
            best = max(best, Bound(value, WHOLE))
            yield best
    if can_order(table):
        for value in ordered_bounds(table, best, most, until):
            yield Bound(value, ORDERED)


def _larger(program: WorkProgram, best: Bound, most: float, until: float) -> Iterator[Bound]:
    """Search for the largest makespan that the program shows to be impossible.

    No plan has a makespan of at most T if the program for such plans needs more than T.
    """
    low = float(best)
    high = most if np.isfinite(most) else 1.5 * low
    while high > low * (1.0 + _CLOSE) and work_clock() < until:
        tried = 0.5 * (low + high)
        value, data = program.bound(low, tried, until)
        yield Bound(value, WITH_DATA if data else KINDS)
        if value >= tried:
            low = tried
        else:
            low, high = max(low, value), tried
