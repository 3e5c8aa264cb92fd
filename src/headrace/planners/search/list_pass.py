"""List passes for a search under contention: from a saved state on, and only as long as the plan can be good enough.

A solution is an order of tasks and a host for each. A pass places tasks in this order as the list scheduler does, and
books their transfers in the first gaps of links; tasks without a host get the one where they finish first.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry
from headrace.arrays.problem import ProblemArrays
from headrace.model.graph import Floats, Ints
from headrace.planners.list.host_choice import HostConstraints
from headrace.planners.list.list_scheduler import Workspace, place_task
from headrace.planners.partial_schedule import OK, PartialSchedule
from headrace.planners.search.saved_states import SavedStates, restore, save

CUT = 9
"""Outcome of a pass that ended early, because the plan would be too long."""
TASK, INPUT, TRY_TASK, TRY_INPUT = 0.5e-6, 0.5e-6, 0.2e-6, 0.15e-6
"""Counted seconds for a task and for each of its inputs, and for trying one of several hosts."""


@entry(nogil=True)
def list_pass(
    problem: ProblemArrays,
    schedule: PartialSchedule,
    states: SavedStates,
    order: Int64s,
    block: int,
    first: int,
    last: int,
    constraints: HostConstraints,
    work: Workspace,
    tail: Floats,
    limit: float,
    counted: Floats,
) -> tuple[int, int]:
    """Place tasks in this order from the saved state `first` on; returns the outcome and the number of tasks placed.

    States from there up to number `last` are saved, one before every `block`-th task; state 0 must be. `tail` is the
    least time from the end of each task to the end of the program: as soon as it would be later than `limit`, the pass
    ends. The work is added to `counted`. The cost is that of `list_schedule` for the tasks that are placed, and of
    copying a state.
    """
    tasks, hosts, network = problem.tasks, problem.hosts, problem.network
    cores, links, copies = schedule.cores, schedule.links, schedule.copies
    transfers, placement = schedule.transfers, schedule.placement
    restore(states, first, schedule)
    seconds, latest = 0.0, limit + 1e-12 * limit  # sums of run times are not exact
    for position in range(first * block, len(order)):
        if position % block == 0 and first < position // block <= last:
            save(states, position // block, schedule)
        task = order[position]
        inputs = tasks.read_ptr[task + 1] - tasks.read_ptr[task]
        seconds += TASK + INPUT * inputs
        if constraints.fixed[task] < 0:
            seconds += len(constraints.hosts) * (TRY_TASK + TRY_INPUT * inputs)
        outcome = place_task(
            tasks, hosts, network, cores, links, copies, transfers, placement, constraints, task, work
        )
        if outcome != OK or placement.finish[task] + tail[task] > latest:
            counted[0] += seconds
            return (CUT if outcome == OK else outcome), position
    counted[0] += seconds
    return OK, len(order)


@entry
def save_first(states: SavedStates, schedule: PartialSchedule) -> None:
    """Save a schedule as state 0."""
    save(states, 0, schedule)


def least_tails(problem: ProblemArrays) -> Floats:
    """The least time from the end of each task to the end of its successors: O(tasks + reads)."""
    shortest = problem.tasks.work / problem.hosts.rate.max(axis=1)[problem.tasks.speed_class]
    return _tails(
        problem.tasks.order, problem.tasks.read_ptr, problem.tasks.reads, problem.tasks.producer, shortest
    )


@entry
def _tails(order: Ints, read_ptr: Ints, reads: Ints, producer: Ints, shortest: Floats) -> Floats:
    tail = np.zeros(len(order))
    for task in order[::-1]:
        for i in range(read_ptr[task], read_ptr[task + 1]):
            maker = producer[reads[i]]
            if maker >= 0:
                tail[maker] = max(tail[maker], shortest[task] + tail[task])
    return tail
