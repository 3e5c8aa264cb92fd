"""Constraints on hosts as arrays for the coordinator: where it may move tasks by itself, and limits on tasks at once.

Schedulers obey constraints when they assign tasks. The coordinator keeps them where it acts by itself: stealing,
duplicates, moves to idle hosts, and the moment at which a queued task starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.core.state import GATED, CoordinatorState, StaticProblem
from headrace.model.constraints import Constraints, Limit
from headrace.model.graph import Bools, Graph, Ints


class ConstraintArrays(NamedTuple):
    """The fields of `StaticProblem` of the same names."""

    move_class: Ints
    may_move: Bools
    gate_ptr: Ints
    gates: Ints
    gate_hosts: Bools
    gate_most: Int64s


NO_CONSTRAINTS = ConstraintArrays(
    np.empty(0, np.int32),
    np.empty((0, 0), np.bool_),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty((0, 0), np.bool_),
    np.empty(0, np.int64),
)


def constraint_arrays(constraints: Constraints | None) -> ConstraintArrays:
    """Where each task may be moved, and the limits on tasks at once: O(tasks * hosts + limits * tasks).

    Tasks of groups stay where the scheduler puts them. Tasks that a limit counts may move to allowed hosts where it
    does not count them.

    >>> from dataclasses import replace
    >>> limit = Limit(np.array([True, False]), np.array([False, True]), at_once=1)
    >>> made = constraint_arrays(replace(Constraints.none(2, 2), limits=(limit,)))
    >>> made.may_move[made.move_class].tolist(), made.gate_ptr.tolist(), made.gate_most.tolist()
    ([[True, False], [True, True]], [0, 1, 1], [1])
    """
    if constraints is None:
        return NO_CONSTRAINTS
    if constraints.needs == "all":
        return NO_CONSTRAINTS._replace(move_class=constraints.allowed_class, may_move=constraints.allowed)
    move = constraints.allowed[constraints.allowed_class]
    move[(constraints.together >= 0) | (constraints.together_at_site >= 0)] = False
    for members in constraints.apart:
        move[members] = False
    asked = [limit for limit in constraints.limits if not limit.need]  # needs are a matter of every run
    for limit in asked:
        move[np.ix_(limit.tasks, limit.hosts)] = False
    rows, number = np.unique(move, axis=0, return_inverse=True)
    gates = [limit for limit in asked if np.isfinite(limit.at_once)]
    return ConstraintArrays(
        number.reshape(-1).astype(np.int32),
        np.ascontiguousarray(rows),
        *_gates(gates, len(move), move.shape[1]),
    )


def _gates(limits: list[Limit], tasks: int, hosts: int) -> tuple[Ints, Ints, Bools, Int64s]:
    if not limits:
        return NO_CONSTRAINTS[2:]
    counts = np.array([limit.tasks for limit in limits], np.bool_).reshape(len(limits), tasks)
    task, gate = np.nonzero(counts.T)
    ptr = np.concatenate(([0], np.cumsum(np.bincount(task, minlength=tasks))))
    return (
        ptr.astype(np.int32),
        gate.astype(np.int32),
        np.array([limit.hosts for limit in limits], np.bool_),
        np.array([int(limit.at_once) for limit in limits], np.int64),
    )


class Unseen(NamedTuple):
    """Items that tasks wait for and that workers with their own queues do not know: the order that rules ask for."""

    task: Ints
    item: Ints
    """[pairs] the item that a task reads."""

    @staticmethod
    def of(graph: Graph, first: int) -> Unseen:
        """All items from this number on."""
        reads = np.flatnonzero(graph.reads >= first)
        reader = np.searchsorted(graph.read_ptr, reads, "right") - 1
        return Unseen(reader.astype(np.int32), graph.reads[reads])


def passed_on(problem: StaticProblem, state: CoordinatorState, known: Ints, unseen: Unseen) -> Ints:
    """The hosts of tasks that workers with their own queues may be told, so that order and limits hold.

    Such a worker starts a task when it likes. So a task is told when all its unseen items exist; one that a limit on
    tasks at once counts, when its inputs exist and fewer than the limit have been told and not finished. The others
    wait here. O(tasks * limits + unseen items).

    Args:
        problem: The static problem.
        state: The state of the run.
        known: What the workers have been told: the host of each task, or -1.
        unseen: What they do not know.
    """
    hosts: Ints = state.assigned.copy()
    blocked = unseen.task[state.exists[unseen.item] == 0]
    hosts[blocked[known[blocked] != hosts[blocked]]] = -1  # what has been told may have started
    if not problem.policy[GATED]:
        return hosts
    counted = np.diff(problem.gate_ptr) > 0
    told = counted & (hosts >= 0) & (known == hosts)
    running = running_by_gate(problem, np.where(told, hosts, -1).astype(np.int32))
    later = np.flatnonzero(counted & (hosts >= 0) & ~told)
    hosts[later] = -1
    for task in later[np.lexsort((later, state.rank[later]))].tolist():
        gates = problem.gates[problem.gate_ptr[task] : problem.gate_ptr[task + 1]]
        gates = gates[problem.gate_hosts[gates, state.assigned[task]]]
        if state.missing_inputs[task] == 0 and (running[gates] < problem.gate_most[gates]).all():
            running[gates] += 1
            hosts[task] = state.assigned[task]
    return hosts


def running_by_gate(arrays: ConstraintArrays | StaticProblem, run_host: Ints) -> Int64s:
    """How many running tasks each limit on tasks at once counts."""
    running = np.zeros(len(arrays.gate_most), np.int64)
    if len(running):
        task = np.repeat(np.arange(len(run_host)), np.diff(arrays.gate_ptr))
        host = run_host[task]
        counted = (host >= 0) & arrays.gate_hosts[arrays.gates, host]
        np.add.at(running, arrays.gates[counted], 1)
    return running
