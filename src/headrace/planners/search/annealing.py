"""Simulated annealing over (order of tasks, host of each task) for platforms without limited links.

A solution is decoded by appending: each task, in order, starts when its core is free and its inputs have arrived.
Every left-shifted schedule can be obtained from some order. Moves are made on the critical path. Each move is first
filtered; after an accepted move only the tasks that it changes are evaluated again.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.compiling import entry, inner
from headrace.arrays.problem import HostArrays, TaskArrays
from headrace.model.graph import Floats
from headrace.planners.constraint_state import ConstraintState, fits, give_back, take
from headrace.planners.search.incremental_eval import compute_finish, compute_tail, update_solution
from headrace.planners.search.move_filter import may_be_accepted, work_of
from headrace.planners.search.random_numbers import RandomState, next_random
from headrace.planners.search.records import BLOCK, MOVE, SearchTables, Solution, Trial

ON_PATH = 0.75
"""Share of moves on the critical path."""
REACH = 256
"""Maximum number of positions by which a task moves."""


@inner
def _critical_path(solution: Solution, path: Int64s) -> int:
    """Write the chain of tasks that ends last, each waiting for the one before, to `path`; returns its length."""
    over, task = solution.returned, 0
    for i in range(len(over)):
        if over[i] > over[task]:
            task = i
    count = 0
    while task >= 0 and count < len(path):
        path[count] = task
        count += 1
        task = solution.cause[task]
    return count


@inner
def _shift(solution: Solution, source: int, target: int) -> None:
    """Move the task at one position to another; those between shift by one."""
    task = solution.order[source]
    step = 1 if target > source else -1
    i = source
    while i != target:
        solution.order[i] = solution.order[i + step]
        solution.position[solution.order[i]] = i
        i += step
    solution.order[target] = task
    solution.position[task] = target


@inner
def _allowed_positions(tables: SearchTables, solution: Solution, task: int) -> tuple[int, int]:
    """The range of positions of a task: after its predecessors and before its successors."""
    low, high = 0, len(solution.order) - 1
    for k in range(tables.predecessor_ptr[task], tables.predecessor_ptr[task + 1]):
        low = max(low, solution.position[tables.predecessor[k]] + 1)
    for k in range(tables.successor_ptr[task], tables.successor_ptr[task + 1]):
        high = min(high, solution.position[tables.successor[k]] - 1)
    return low, high


@inner
def _neighbour_host(tables: SearchTables, solution: Solution, task: int, state: RandomState) -> int:
    """The host of a random predecessor or successor; -1 if there is none."""
    reads = tables.predecessor_ptr[task + 1] - tables.predecessor_ptr[task]
    readers = tables.successor_ptr[task + 1] - tables.successor_ptr[task]
    if reads + readers == 0:
        return -1
    k = int(next_random(state) * (reads + readers))
    if k < reads:
        return solution.host[tables.predecessor[tables.predecessor_ptr[task] + k]]
    return solution.host[tables.successor[tables.successor_ptr[task] + k - reads]]


@inner
def _change(tables: SearchTables, solution: Solution, state: RandomState, task: int) -> bool:
    """Give a task another host, another position, or both; returns whether anything changed."""
    position = solution.position[task]
    kind = next_random(state)
    changed = False
    if kind < 0.65:
        host = _neighbour_host(tables, solution, task, state) if kind < 0.35 else -1
        if host < 0:
            host = int(next_random(state) * len(tables.host_place))
        if host != solution.host[task]:
            solution.host[task] = host
            changed = True
    if kind >= 0.5:
        low, high = _allowed_positions(tables, solution, task)
        low, high = max(low, position - REACH), min(high, position + REACH)
        target = low + int(next_random(state) * (high - low + 1))
        if target != position:
            _shift(solution, position, target)
            changed = True
    return changed


@entry
def restart(tables: SearchTables, solution: Solution, trial: Trial) -> float:
    """Decode the solution from the beginning, each task on the core of its host that is free first.

    Returns the makespan. O(tasks * (reads + cores of a host) + blocks * cores).
    """
    makespan = 0.0
    latest = np.full(len(solution.first), -1)
    solution.first[:] = -1
    for i in range(len(solution.order)):
        if i % BLOCK == 0:
            solution.last[i // BLOCK] = latest
        task = solution.order[i]
        host = solution.host[task]
        core, since = -1, np.inf
        for c in range(tables.core_ptr[host], tables.core_ptr[host + 1]):
            free = solution.finish[latest[c]] if latest[c] >= 0 else tables.core_free_at[c]
            if free < since:
                core, since = c, free
        solution.position[task], solution.core[task], solution.before[task], solution.next[task] = (
            i,
            core,
            latest[core],
            -1,
        )
        if latest[core] >= 0:
            solution.next[latest[core]] = task
        else:
            solution.first[core] = task
        latest[core] = task
        compute_finish(tables, solution, task)
        trial.finish[task] = solution.finish[task]
        makespan = max(makespan, solution.returned[task])
    for i in range(len(solution.order) - 1, -1, -1):
        compute_tail(tables, solution, solution.order[i])
    return makespan


@inner
def _take_back(solution: Solution, task: int, host: int, position: int) -> None:
    """Undo `_change`."""
    if solution.position[task] != position:
        _shift(solution, solution.position[task], position)
    solution.host[task] = host


@inner
def _move_unit(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, task: int, host: int) -> bool:
    """Give a task another host if the constraints permit that; a task of a larger unit never moves alone."""
    unit = state.unit[task]
    if state.free[unit]:
        return True
    if state.unit_ptr[unit + 1] - state.unit_ptr[unit] > 1:
        return False
    old = state.host[unit]
    give_back(state, tasks, hosts, unit)
    fit = fits(state, tasks, hosts, unit, host)
    take(state, tasks, hosts, unit, host if fit else old)
    return fit


@inner
def _return_unit(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, task: int, host: int) -> None:
    """Undo `_move_unit`."""
    unit = state.unit[task]
    if not state.free[unit]:
        give_back(state, tasks, hosts, unit)
        take(state, tasks, hosts, unit, host)


@entry
def meets_deadlines(state: ConstraintState, finish: Floats) -> bool:
    """Whether these finish times meet all deadlines: O(tasks with a deadline)."""
    met = True
    for task in state.due:
        met = met and finish[task] <= state.deadline[task]
    return met


@entry
def take_all(state: ConstraintState, tasks: TaskArrays, hosts: HostArrays, host: Int64s) -> None:
    """Give every task the host that a plan gives it, whatever it had before."""
    for unit in range(len(state.host)):
        if state.host[unit] >= 0:
            give_back(state, tasks, hosts, unit)
    for task in range(len(host)):
        take(state, tasks, hosts, state.unit[task], host[task])


@entry(nogil=True)
def anneal(
    tables: SearchTables,
    solution: Solution,
    trial: Trial,
    best_finish: Floats,
    best_host: Int64s,
    random: RandomState,
    until: float,
    warm: float,
    cold: float,
    makespan: float,
    best: float,
    state: ConstraintState,
    tasks: TaskArrays,
    hosts: HostArrays,
) -> tuple[float, float]:
    """Move until `trial.work` is `until`, at temperatures from `warm` to `cold` (seconds of makespan).

    The best solution seen is kept in `best_finish` and `best_host`. The cost of a rejected move is proportional to the
    distance between the old and the new position; an accepted move also costs the evaluation of the tasks whose times
    it changes, and a check of all others. Hosts always satisfy the constraints in `state`; a solution that misses a
    deadline is not kept. Returns the makespan of the current solution and of the best.
    """
    n = len(solution.order)
    length = _critical_path(solution, trial.path)
    begin = trial.work[0]
    while trial.work[0] < until:
        trial.work[0] += MOVE
        share = min(1.0, (trial.work[0] - begin) / (until - begin))
        temperature = warm * (cold / warm) ** share
        limit = makespan - temperature * np.log(max(next_random(random), 1e-300))
        task = (
            trial.path[int(next_random(random) * length)]
            if next_random(random) < ON_PATH
            else int(next_random(random) * n)
        )
        trial.work[0] += work_of(tables, task)
        old_host, old_position = solution.host[task], solution.position[task]
        if not _change(tables, solution, random, task):
            continue
        moved = state.active and solution.host[task] != old_host
        if moved and not _move_unit(state, tasks, hosts, task, solution.host[task]):
            _take_back(solution, task, old_host, old_position)
            continue
        first, last = min(old_position, solution.position[task]), max(old_position, solution.position[task])
        if may_be_accepted(tables, solution, trial, task, first, last, limit):
            update_solution(tables, solution, trial, task, first, last)
            length = _critical_path(solution, trial.path)
            makespan = solution.returned[trial.path[0]]
            if makespan < best * (1.0 - 1e-12) and meets_deadlines(state, solution.finish):
                best = makespan
                best_finish[:] = solution.finish
                best_host[:] = solution.host
            continue
        _take_back(solution, task, old_host, old_position)
        if moved:
            _return_unit(state, tasks, hosts, task, old_host)
    return makespan, best
