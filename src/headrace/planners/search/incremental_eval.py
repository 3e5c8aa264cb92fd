"""Incremental evaluation after a move: only the tasks that the move changes are recomputed."""

from __future__ import annotations

from headrace.arrays.compiling import inner
from headrace.planners.search.move_filter import longest_after, work_of
from headrace.planners.search.records import BLOCK, LOOK, SearchTables, Solution, Trial


@inner
def compute_finish(tables: SearchTables, solution: Solution, task: int) -> bool:
    """Compute finish, return of results and cause of a task; returns whether the finish has changed."""
    host = solution.host[task]
    place = tables.host_place[host]
    ready, why = tables.outside_arrival[0 if tables.outside_arrival.shape[0] == 1 else task, place], -1
    for k in range(tables.predecessor_ptr[task], tables.predecessor_ptr[task + 1]):
        maker, size = tables.predecessor[k], tables.read_bytes[k]
        source = tables.host_place[solution.host[maker]]
        since = solution.finish[maker]
        if source != place and size > 0.0:
            since += tables.latency[source, place] + size * tables.seconds_per_byte[source, place]
        if since > ready:
            ready, why = since, maker
    before = solution.before[task]
    free = solution.finish[before] if before >= 0 else tables.core_free_at[solution.core[task]]
    if free > ready:
        ready, why = free, before
    end = ready + tables.run_seconds[task, tables.speed_class[host]]
    changed = end != solution.finish[task]
    solution.finish[task], solution.cause[task] = end, why
    solution.returned[task] = (
        end + tables.return_seconds[0 if tables.return_seconds.shape[0] == 1 else task, place]
    )
    return changed


@inner
def compute_tail(tables: SearchTables, solution: Solution, task: int) -> bool:
    """Compute the tail of a task from its successors; returns whether it has changed."""
    tail = tables.run_seconds[task, tables.speed_class[solution.host[task]]] + longest_after(
        tables, solution, task, solution.next[task], -1
    )
    changed = tail != solution.tail[task]
    solution.tail[task] = tail
    return changed


@inner
def update_solution(
    tables: SearchTables, solution: Solution, trial: Trial, moved: int, first: int, last: int
) -> None:
    """Update the solution after a task was moved within the positions first .. last, to the core in `trial.insertion`.

    O(tasks) to check all tasks, O(reads + readers) for each task whose times change.
    """
    old_core, old_before, old_next = solution.core[moved], solution.before[moved], solution.next[moved]
    _unlink(solution, moved)
    core, before = trial.insertion[0], trial.insertion[1]
    trial.work[0] += LOOK * 2 * len(solution.order)
    _link(solution, moved, core, before)
    _update_last(solution, moved, old_core, old_before, first, last)
    _update_finishes(tables, solution, trial, moved, old_next, first)
    _update_tails(tables, solution, trial, moved, old_before, last)


@inner
def _unlink(solution: Solution, task: int) -> None:
    before, behind = solution.before[task], solution.next[task]
    if before >= 0:
        solution.next[before] = behind
    else:
        solution.first[solution.core[task]] = behind
    if behind >= 0:
        solution.before[behind] = before


@inner
def _link(solution: Solution, task: int, core: int, before: int) -> None:
    behind = solution.next[before] if before >= 0 else solution.first[core]
    solution.core[task], solution.before[task], solution.next[task] = core, before, behind
    if before >= 0:
        solution.next[before] = task
    else:
        solution.first[core] = task
    if behind >= 0:
        solution.before[behind] = task


@inner
def _update_last(
    solution: Solution, moved: int, old_core: int, old_before: int, first: int, last: int
) -> None:
    """Update the last task per core before each block, for both cores and for tasks that crossed a block boundary."""
    for block in range(first // BLOCK + 1, solution.last.shape[0]):
        if solution.last[block, old_core] == moved:
            solution.last[block, old_core] = old_before
        changed = _find_last(solution, block, old_core)
        changed = _find_last(solution, block, solution.core[moved]) or changed
        if block * BLOCK <= last:
            _find_last(solution, block, solution.core[solution.order[block * BLOCK]])
            _find_last(solution, block, solution.core[solution.order[block * BLOCK - 1]])
        elif (
            not changed
            and solution.last[block, solution.core[moved]] != moved
            and solution.last[block, old_core] != old_before
        ):
            return


@inner
def _find_last(solution: Solution, block: int, core: int) -> bool:
    """Update the last task of a core before a block, starting from the old one; returns whether it has changed."""
    was = solution.last[block, core]
    task = was
    while task >= 0 and solution.position[task] >= block * BLOCK:
        task = solution.before[task]
    behind = solution.next[task] if task >= 0 else solution.first[core]
    while behind >= 0 and solution.position[behind] < block * BLOCK:
        task, behind = behind, solution.next[behind]
    solution.last[block, core] = task
    return task != was


@inner
def _mark(trial: Trial, task: int) -> int:
    """Mark a task; returns 1 if it was not marked yet, else 0."""
    if task < 0 or trial.marked[task]:
        return 0
    trial.marked[task] = True
    return 1


@inner
def _update_finishes(
    tables: SearchTables, solution: Solution, trial: Trial, moved: int, old_next: int, first: int
) -> None:
    """Recompute, in order, the finishes of all tasks that wait for a task whose finish or place has changed."""
    left = _mark(trial, moved) + _mark(trial, old_next) + _mark(trial, solution.next[moved])
    i = first
    while left > 0:
        task = solution.order[i]
        i += 1
        if not trial.marked[task]:
            continue
        trial.marked[task] = False
        left -= 1
        trial.work[0] += work_of(tables, task)
        if compute_finish(tables, solution, task) or task == moved:
            trial.finish[task] = solution.finish[task]
            left += _mark(trial, solution.next[task])
            for k in range(tables.successor_ptr[task], tables.successor_ptr[task + 1]):
                left += _mark(trial, tables.successor[k])


@inner
def _update_tails(
    tables: SearchTables, solution: Solution, trial: Trial, moved: int, old_before: int, last: int
) -> None:
    """Recompute, from the end, the tails of all tasks with a successor whose tail or place has changed."""
    left = _mark(trial, moved) + _mark(trial, old_before) + _mark(trial, solution.before[moved])
    i = last
    while left > 0:
        task = solution.order[i]
        i -= 1
        if not trial.marked[task]:
            continue
        trial.marked[task] = False
        left -= 1
        trial.work[0] += work_of(tables, task)
        if compute_tail(tables, solution, task) or task == moved:
            left += _mark(trial, solution.before[task])
            for k in range(tables.predecessor_ptr[task], tables.predecessor_ptr[task + 1]):
                left += _mark(trial, tables.predecessor[k])
