"""Check whether a move can stay within a makespan, without decoding the whole solution.

Each task has a `tail`: the time from its start to the end of everything that depends on it, through data or cores. A
move affects the positions between the old and the new position of a task. Only these are decoded, and every task whose
finish has changed is combined with the tails of its successors. Other paths keep their length. Tasks keep their cores,
except the moved one, which goes to the core of its host that is free first.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.model.graph import Floats
from headrace.planners.search.records import BLOCK, COMPUTE, EDGE, SearchTables, Solution, Trial


@inner
def work_of(tables: SearchTables, task: int) -> float:
    """Counted seconds of work to compute the times of a task."""
    edges = (
        tables.predecessor_ptr[task + 1]
        - tables.predecessor_ptr[task]
        + tables.successor_ptr[task + 1]
        - tables.successor_ptr[task]
    )
    return COMPUTE + EDGE * edges


@inner
def longest_after(tables: SearchTables, solution: Solution, task: int, follower: int, behind: int) -> float:
    """Time from the end of a task to the end of everything after a position that depends on it.

    `follower` is next on its core, or -1. O(readers).
    """
    place = tables.host_place[solution.host[task]]
    longest = tables.return_seconds[0 if tables.return_seconds.shape[0] == 1 else task, place]
    if follower >= 0:
        longest = max(longest, solution.tail[follower])
    for k in range(tables.successor_ptr[task], tables.successor_ptr[task + 1]):
        reader, size = tables.successor[k], tables.sent_bytes[k]
        if solution.position[reader] <= behind:
            continue
        target = tables.host_place[solution.host[reader]]
        way = solution.tail[reader]
        if target != place and size > 0.0:
            way += tables.latency[place, target] + size * tables.seconds_per_byte[place, target]
        longest = max(longest, way)
    return longest


@inner
def may_be_accepted(
    tables: SearchTables, solution: Solution, trial: Trial, moved: int, first: int, last: int, limit: float
) -> bool:
    """Whether the solution, with positions first .. last changed by moving a task, ends before `limit`.

    `trial.finish` holds the finishes of the solution on entry and on return. O(changed positions * (reads + readers)).
    """
    order, finish = solution.order, trial.finish
    passed, at = True, first
    while passed and at <= last:
        task = order[at]
        host = solution.host[task]
        low, high = (
            (tables.core_ptr[host], tables.core_ptr[host + 1])
            if task == moved
            else (solution.core[task], solution.core[task] + 1)
        )
        core, before, free = _earliest_core(tables, solution, trial, low, high, moved, first)
        end = (
            max(_inputs_arrive(tables, solution, finish, task), free)
            + tables.run_seconds[task, tables.speed_class[host]]
        )
        finish[task] = end
        trial.last[core] = task
        trial.core[task] = core
        at += 1
        trial.work[0] += work_of(tables, task)
        if task == moved:
            trial.insertion[0], trial.insertion[1] = core, before
        if task == moved or end != solution.finish[task]:
            follower = _follower(solution, before, core, task, moved, last)
            passed = end + longest_after(tables, solution, task, follower, last) < limit
    for i in range(first, at):
        finish[order[i]] = solution.finish[order[i]]
        trial.last[trial.core[order[i]]] = -1
    return passed


@inner
def _inputs_arrive(tables: SearchTables, solution: Solution, finish: Floats, task: int) -> float:
    """When the inputs of a task are at its place."""
    place = tables.host_place[solution.host[task]]
    ready = tables.outside_arrival[0 if tables.outside_arrival.shape[0] == 1 else task, place]
    for k in range(tables.predecessor_ptr[task], tables.predecessor_ptr[task + 1]):
        maker, size = tables.predecessor[k], tables.read_bytes[k]
        source = tables.host_place[solution.host[maker]]
        since = finish[maker]
        if source != place and size > 0.0:
            since += tables.latency[source, place] + size * tables.seconds_per_byte[source, place]
        ready = max(ready, since)
    return ready


@inner
def _earliest_core(
    tables: SearchTables, solution: Solution, trial: Trial, low: int, high: int, moved: int, first: int
) -> tuple[int, int, float]:
    """The core among low .. high - 1 that is free first, its last task (-1: none), and when it is free."""
    best, best_before, best_free = -1, -1, np.inf
    for core in range(low, high):
        before = trial.last[core]
        if before < 0:
            before = solution.last[first // BLOCK, core]
            follower = solution.next[before] if before >= 0 else solution.first[core]
            while follower >= 0 and follower != moved and solution.position[follower] < first:
                before, follower = follower, solution.next[follower]
        free = trial.finish[before] if before >= 0 else tables.core_free_at[core]
        if free < best_free:
            best, best_before, best_free = core, before, free
    return best, best_before, best_free


@inner
def _follower(solution: Solution, before: int, core: int, task: int, moved: int, last: int) -> int:
    """The first task behind the window that would follow a task on its core, or -1."""
    in_front = task if task != moved else before
    follower = solution.next[in_front] if in_front >= 0 else solution.first[core]
    while follower >= 0 and (follower == moved or solution.position[follower] <= last):
        follower = solution.next[follower]
    return follower
