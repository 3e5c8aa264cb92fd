"""Simulated annealing over (order of tasks, host of each task) where links are not limited.

A solution is decoded by appending: each task, in order, starts when a core of its host is free and its inputs
have arrived. Every left-shifted schedule has an order that gives it. Moves are made on the critical path.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from headrace.planners.kernels.jit import inner

BLOCK = 64
"""Free times of cores are kept every so many positions, so that a move need not start from the beginning."""


class Fixed(NamedTuple):
    """What does not change during the search."""

    seconds: Any
    """[tasks, speeds] run time of each task on each kind of host."""
    speed_of: Any
    """The column of `seconds` for each host."""
    place_of: Any
    core_ptr: Any
    latency: Any
    """[places, places]; 0 on the diagonal, inf where there is no route."""
    per_byte: Any
    """[places, places] seconds per byte; 0 on the diagonal."""
    read_ptr: Any
    maker: Any
    """For each read of an item that another task makes: that task. Others are in `outside`."""
    size: Any
    """For each of these reads: bytes."""
    outside: Any
    """[1 or tasks, places] when what a task reads from outside can be at each place."""
    back: Any
    """[1 or tasks, places] how long a task's results take to return from each place."""
    after_ptr: Any
    after: Any
    """For each task: the tasks that read from it."""
    tail: Any
    """The least time from the end of each task to the end of everything."""


class Solution(NamedTuple):
    """The current solution and what follows from it."""

    order: Any
    position: Any
    host: Any
    finish: Any
    over: Any
    """When a task has ended and its results have returned."""
    cause: Any
    """The task that each task had to wait for last, or -1."""
    free: Any
    """[blocks, cores] when each core is free before the block's first position."""
    last: Any
    """[blocks, cores] the last task of each core by then."""


class Trial(NamedTuple):
    """Room for one decoding; between trials `finish` is that of the solution."""

    free: Any
    last: Any
    finish: Any
    over: Any
    cause: Any
    core: Any
    path: Any


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
def _decode(f, s, t, first, limit):
    """Times of all tasks from the block of position `first` on; stops as soon as `limit` must be passed.

    Returns the latest end among these positions, or inf, and the position reached. O(tasks after the block *
    (reads + cores of a host)).
    """
    order, host, place_of, core_ptr = s.order, s.host, f.place_of, f.core_ptr
    read_ptr, maker, size, latency, per_byte = f.read_ptr, f.maker, f.size, f.latency, f.per_byte
    finish, over, cause, free, last, tail = t.finish, t.over, t.cause, t.free, t.last, f.tail
    one_outside, one_back = f.outside.shape[0] == 1, f.back.shape[0] == 1
    block = first // BLOCK
    free[:] = s.free[block]
    last[:] = s.last[block]
    latest = 0.0
    for i in range(block * BLOCK, len(order)):
        task = order[i]
        h = host[task]
        place = place_of[h]
        ready, why = f.outside[0 if one_outside else task, place], -1
        for k in range(read_ptr[task], read_ptr[task + 1]):
            a = maker[k]
            source = place_of[host[a]]
            since = finish[a]
            if source != place and size[k] > 0.0:
                since += latency[source, place] + size[k] * per_byte[source, place]
            if since > ready:
                ready, why = since, a
        core = core_ptr[h]
        for c in range(core + 1, core_ptr[h + 1]):
            if free[c] < free[core]:
                core = c
        if free[core] > ready:
            ready, why = free[core], last[core]
        end = ready + f.seconds[task, f.speed_of[h]]
        finish[task] = end
        cause[task] = why
        free[core] = end
        last[core] = task
        t.core[task] = core
        over[task] = end + f.back[0 if one_back else task, place]
        if over[task] > latest:
            latest = over[task]
        if not (over[task] < limit and end + tail[task] < limit):
            return np.inf, i + 1
    return latest, len(order)


@inner
def _commit(f, s, t, first):
    """Make the trial's times those of the solution, and renew what is kept for each block."""
    block = first // BLOCK
    free, last = t.free, t.last
    free[:] = s.free[block]
    last[:] = s.last[block]
    for i in range(block * BLOCK, len(s.order)):
        if i % BLOCK == 0:
            s.free[i // BLOCK] = free
            s.last[i // BLOCK] = last
        task = s.order[i]
        s.finish[task] = t.finish[task]
        s.over[task] = t.over[task]
        s.cause[task] = t.cause[task]
        free[t.core[task]] = t.finish[task]
        last[t.core[task]] = task


@inner
def _critical(s, path):
    """The chain of tasks, each waiting for the one before, that ends last; returns its length."""
    task = 0
    for i in range(len(s.order)):
        if s.over[i] > s.over[task]:
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
    """Give a task another host, another position, or both; returns the first position affected, or -1."""
    position = s.position[task]
    kind = _random(state)
    first = -1
    if kind < 0.65:
        host = _neighbour_host(f, s, task, state) if kind < 0.35 else -1
        if host < 0:
            host = int(_random(state) * len(f.place_of))
        if host != s.host[task]:
            s.host[task] = host
            first = position
    if kind >= 0.5:
        low, high = _range(f, s, task)
        target = low + int(_random(state) * (high - low + 1))
        if target != position:
            _shift(s, position, target)
            first = min(position, target)
    return first


@njit(cache=True)
def restart(f, s, t):
    """Decode the solution from the beginning; returns its makespan."""
    for i in range(len(s.order)):
        s.position[s.order[i]] = i
    makespan, _ = _decode(f, s, t, 0, np.inf)
    _commit(f, s, t, 0)
    return makespan


@njit(cache=True)
def anneal(f, s, t, best_order, best_host, state, steps, warm, cold, makespan, best):
    """Try `steps` moves at temperatures from `warm` to `cold` (seconds of makespan); returns (current, best).

    The best solution seen is kept in `best_order` and `best_host`.
    """
    n = len(s.order)
    length = _critical(s, t.path)
    for step in range(steps):
        temperature = warm * (cold / warm) ** (step / steps)
        limit = makespan - temperature * np.log(max(_random(state), 1e-300))
        task = t.path[int(_random(state) * length)] if _random(state) < 0.85 else int(_random(state) * n)
        old_host, old_position = s.host[task], s.position[task]
        first = _change(f, s, state, task)
        if first < 0:
            continue
        found, reached = _decode(f, s, t, first, limit)
        begin = (first // BLOCK) * BLOCK
        if found < np.inf:
            for i in range(begin):
                found = max(found, s.over[s.order[i]])
        if found < limit:
            _commit(f, s, t, first)
            makespan = found
            length = _critical(s, t.path)
            if makespan < best * (1.0 - 1e-12):
                best = makespan
                best_order[:] = s.order
                best_host[:] = s.host
            continue
        for i in range(begin, reached):
            t.finish[s.order[i]] = s.finish[s.order[i]]
        if s.position[task] != old_position:
            _shift(s, s.position[task], old_position)
        s.host[task] = old_host
    return makespan, best
