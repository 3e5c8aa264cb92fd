"""Simulated annealing over (order of tasks, host of each task) where links are not limited.

A solution is decoded by appending: each task, in order, starts when its core is free and its inputs have arrived.
Every left-shifted schedule has an order that gives it. Moves are made on the critical path. A move is screened
first; what an accepted one changes is settled task by task.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.planners.kernels.screening import may_pass, work_of
from headrace.planners.kernels.search_arrays import BLOCK, MOVE
from headrace.planners.kernels.settling import compute_finish, compute_rest, settle

ON_PATH = 0.75
"""Share of moves that are made on the critical path."""
REACH = 256
"""A task moves by at most so many positions at a time."""


@inner
def _random(state):
    """The next of a fixed sequence of numbers from 0 to below 1 (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@inner
def _critical(s, path):
    """The chain of tasks, each waiting for the one before, that ends last; returns its length."""
    over, task = s.over, 0
    for i in range(len(over)):
        if over[i] > over[task]:
            task = i
    count = 0
    while task >= 0 and count < len(path):
        path[count] = task
        count += 1
        task = s.cause[task]
    return count


@inner
def _shift(s, source, target):
    """Move the task at one position to another; those between move up by one."""
    task = s.order[source]
    step = 1 if target > source else -1
    i = source
    while i != target:
        s.order[i] = s.order[i + step]
        s.position[s.order[i]] = i
        i += step
    s.order[target] = task
    s.position[task] = target


@inner
def _range(f, s, task):
    """The positions that a task may take: after all it reads from, before all that read from it."""
    low, high = 0, len(s.order) - 1
    for k in range(f.read_ptr[task], f.read_ptr[task + 1]):
        low = max(low, s.position[f.maker[k]] + 1)
    for k in range(f.after_ptr[task], f.after_ptr[task + 1]):
        high = min(high, s.position[f.after[k]] - 1)
    return low, high


@inner
def _neighbour_host(f, s, task, state):
    """The host of a random task that this one reads from or that reads from it; -1 if there is none."""
    reads = f.read_ptr[task + 1] - f.read_ptr[task]
    readers = f.after_ptr[task + 1] - f.after_ptr[task]
    if reads + readers == 0:
        return -1
    k = int(_random(state) * (reads + readers))
    if k < reads:
        return s.host[f.maker[f.read_ptr[task] + k]]
    return s.host[f.after[f.after_ptr[task] + k - reads]]


@inner
def _change(f, s, state, task):
    """Give a task another host, another position, or both; returns whether anything changed."""
    position = s.position[task]
    kind = _random(state)
    changed = False
    if kind < 0.65:
        host = _neighbour_host(f, s, task, state) if kind < 0.35 else -1
        if host < 0:
            host = int(_random(state) * len(f.place_of))
        if host != s.host[task]:
            s.host[task] = host
            changed = True
    if kind >= 0.5:
        low, high = _range(f, s, task)
        low, high = max(low, position - REACH), min(high, position + REACH)
        target = low + int(_random(state) * (high - low + 1))
        if target != position:
            _shift(s, position, target)
            changed = True
    return changed


@entry
def restart(f, s, t):
    """Decode the solution from the beginning, each task on the core of its host that is free first.

    Returns the makespan. O(tasks * (reads + cores of a host) + blocks * cores).
    """
    makespan = 0.0
    latest = np.full(len(s.first), -1)
    s.first[:] = -1
    for i in range(len(s.order)):
        if i % BLOCK == 0:
            s.last[i // BLOCK] = latest
        task = s.order[i]
        host = s.host[task]
        core, since = -1, np.inf
        for c in range(f.core_ptr[host], f.core_ptr[host + 1]):
            free = s.finish[latest[c]] if latest[c] >= 0 else f.free_at[c]
            if free < since:
                core, since = c, free
        s.position[task], s.core[task], s.before[task], s.next[task] = i, core, latest[core], -1
        if latest[core] >= 0:
            s.next[latest[core]] = task
        else:
            s.first[core] = task
        latest[core] = task
        compute_finish(f, s, task)
        t.finish[task] = s.finish[task]
        makespan = max(makespan, s.over[task])
    for i in range(len(s.order) - 1, -1, -1):
        compute_rest(f, s, s.order[i])
    return makespan


@entry
def anneal(f, s, t, best_finish, best_host, state, until, warm, cold, makespan, best):
    """Move until `t.work` is `until`, at temperatures from `warm` to `cold` (seconds of makespan).

    The best solution seen is kept in `best_finish` and `best_host`. A move that is refused costs what lies
    between the old and the new position; one that is taken costs the tasks whose times it changes, and a look
    at each of the others. Returns the makespan of the current solution and of the best.
    """
    n = len(s.order)
    length = _critical(s, t.path)
    begin = t.work[0]
    while t.work[0] < until:
        t.work[0] += MOVE
        share = min(1.0, (t.work[0] - begin) / (until - begin))
        temperature = warm * (cold / warm) ** share
        limit = makespan - temperature * np.log(max(_random(state), 1e-300))
        task = t.path[int(_random(state) * length)] if _random(state) < ON_PATH else int(_random(state) * n)
        t.work[0] += work_of(f, task)
        old_host, old_position = s.host[task], s.position[task]
        if not _change(f, s, state, task):
            continue
        first, last = min(old_position, s.position[task]), max(old_position, s.position[task])
        if may_pass(f, s, t, task, first, last, limit):
            settle(f, s, t, task, first, last)
            length = _critical(s, t.path)
            makespan = s.over[t.path[0]]
            if makespan < best * (1.0 - 1e-12):
                best = makespan
                best_finish[:] = s.finish
                best_host[:] = s.host
            continue
        if s.position[task] != old_position:
            _shift(s, s.position[task], old_position)
        s.host[task] = old_host
    return makespan, best
