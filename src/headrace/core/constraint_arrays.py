"""Constraints on hosts as arrays for the coordinator: where it may move tasks by itself, and limits on tasks at once.

Schedulers obey constraints when they assign tasks. The coordinator keeps them where it acts by itself: stealing,
duplicates, moves to idle hosts, and the moment at which a queued task starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays import Int64s
from headrace.model.constraints import Constraints, Limit
from headrace.model.graph import Bools, Ints


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
    move = constraints.allowed[constraints.allowed_class]
    move[(constraints.together >= 0) | (constraints.together_at_site >= 0)] = False
    for members in constraints.apart:
        move[members] = False
    for limit in constraints.limits:
        move[np.ix_(limit.tasks, limit.hosts)] = False
    rows, number = np.unique(move, axis=0, return_inverse=True)
    gates = [limit for limit in constraints.limits if np.isfinite(limit.at_once)]
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


def running_by_gate(arrays: ConstraintArrays, run_host: Ints) -> Int64s:
    """How many running tasks each limit on tasks at once counts."""
    running = np.zeros(len(arrays.gate_most), np.int64)
    if len(running):
        task = np.repeat(np.arange(len(run_host)), np.diff(arrays.gate_ptr))
        host = run_host[task]
        counted = (host >= 0) & arrays.gate_hosts[arrays.gates, host]
        np.add.at(running, arrays.gates[counted], 1)
    return running
