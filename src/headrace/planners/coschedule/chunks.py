"""Plan a long queue of jobs in chunks; each chunk starts from the schedule of the previous chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import Decisions, undecided_paths
from headrace.planners.coschedule.local_search import Search
from headrace.planners.coschedule.lp import Relaxer, rounded
from headrace.planners.coschedule.orders import mixed, rules, topological
from headrace.planners.coschedule.schedule_jobs import FAILED

if TYPE_CHECKING:
    from headrace.planners.coschedule.improving import Improving

ROUNDS = 3
"""Number of rounds in which the relaxation of a chunk learns from the idle times in its list schedule."""


def chunked(improving: Improving, size: int, seconds: float) -> Decisions:
    """Decide for `size` jobs at a time, in the given order; decisions of earlier chunks are final.

    The relaxation of each chunk takes the bookings and idle times of earlier chunks into account.
    """
    instance, scheduler = improving.instance, improving.scheduler
    given = topological(instance, np.zeros(instance.n))
    decided = Decisions(given, instance.seconds.argmin(axis=1).astype(np.int32), **undecided_paths(instance))
    parts = -(-instance.n // size)
    budget = seconds / parts
    for first in range(0, instance.n, size):
        jobs = given[first : first + size]
        moves, idle, held = 0, None, None
        if first:
            end = scheduler.value(replace(decided, order=decided.order[:first]))
            if end >= FAILED:
                return decided
            held = scheduler.disk_seconds(end)
            idle = scheduler.idle(decided.order[:first], jobs[:0], held=held)
            moves = int(scheduler.schedule.state[0])
        best = _best_of_rounds(improving, decided, jobs, _Before(first, moves, idle, held))
        search = Search(scheduler, best, instance.problem.seed, first)
        if search.value < FAILED:
            search.run(int(budget / improving.cost()))
            best = search.best
        order = np.concatenate((best.order, given[len(best.order) :]))
        decided = replace(best, order=order)
        improving.left -= budget
    return decided


@dataclass(frozen=True, eq=False)
class _Before:
    """What previous chunks leave: how many jobs and transfers, idle times, what they hold of each disk."""

    jobs: int
    moves: int
    idle: Floats | None
    held: Floats | None


def _best_of_rounds(improving: Improving, decided: Decisions, jobs: Ints, before: _Before) -> Decisions:
    """The best list schedule of a chunk, appended to the previous chunks."""
    instance, scheduler, idle = improving.instance, improving.scheduler, before.idle
    relaxer = Relaxer(instance, jobs)
    best, value = decided, np.inf
    for _ in range(ROUNDS):
        relaxation = relaxer.solve(idle)
        here, least = idle, np.inf
        chosen = rounded(instance, relaxation, jobs)
        orders: list[Ints] = []
        ends: list[Floats] = []
        for order in _orders(instance, chosen.host, jobs, orders, ends):
            for trial in (None, chosen):
                decisions = _joined(instance, decided, trial, order, before.jobs)
                makespan = scheduler.value(decisions)
                if makespan < least and trial is not None:
                    here = scheduler.idle(decisions.order, jobs, before.moves, before.held)
                    least = makespan
                if makespan < value:
                    best, value = decisions, makespan
            orders.append(order)
            ends.append(scheduler.ends(order))
        if here is None or value >= FAILED:
            break
        idle = here if idle is None else 0.5 * (idle + here)
    return best


def _orders(
    instance: Instance, host: Ints, jobs: Ints, orders: list[Ints], ends: list[Floats]
) -> Iterator[Ints]:
    """The order of each rule for the jobs of the chunk, and finally the best rule per host."""
    chosen = np.zeros(instance.n, np.bool_)
    chosen[jobs] = True
    for _, order in rules(instance, host):
        yield order[chosen[order]]
    yield mixed(instance, host, orders, ends)


def _joined(
    instance: Instance, decided: Decisions, chunk: Decisions | None, order: Ints, first: int
) -> Decisions:
    """Decisions up to and including a chunk; by default its jobs run where each would finish first on its own."""
    host, input_path, output_path = decided.host.copy(), decided.input_path.copy(), decided.output_path.copy()
    if chunk is not None:
        host[order] = chunk.host[order]
        for j in order.tolist():
            reads = slice(int(instance.read_ptr[j]), int(instance.read_ptr[j + 1]))
            writes = slice(int(instance.write_ptr[j]), int(instance.write_ptr[j + 1]))
            input_path[reads], output_path[writes] = chunk.input_path[reads], chunk.output_path[writes]
    return Decisions(np.concatenate((decided.order[:first], order)), host, input_path, output_path)
