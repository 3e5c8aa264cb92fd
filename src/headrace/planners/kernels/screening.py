"""Whether a changed order or host can keep within a makespan, without decoding the whole solution.

Each task carries the time from its start to the end of everything that waits for it, over data and over cores
(`rest`). A move changes what lies between the old and the new position of a task. So these positions are decoded,
and every task whose finish has changed is joined with the rests of those that come after them. Paths that pass by
are as long as before. Tasks keep their cores, but for the one that is moved: it goes to the core of its host that
is free first.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.planners.kernels.search_arrays import BLOCK, COMPUTE, EDGE


@inner
def work_of(f, task):
    """Seconds to compute the times of a task, as they are counted."""
    edges = f.read_ptr[task + 1] - f.read_ptr[task] + f.after_ptr[task + 1] - f.after_ptr[task]
    return COMPUTE + EDGE * edges


@inner
def longest_after(f, s, task, follower, behind):
    """From the end of a task to the end of all that waits for it behind a position.

    `follower` is next on its core, or -1. O(readers).
    """
    place = f.place_of[s.host[task]]
    longest = f.back[0 if f.back.shape[0] == 1 else task, place]
    if follower >= 0:
        longest = max(longest, s.rest[follower])
    for k in range(f.after_ptr[task], f.after_ptr[task + 1]):
        reader, size = f.after[k], f.after_size[k]
        if s.position[reader] <= behind:
            continue
        target = f.place_of[s.host[reader]]
        way = s.rest[reader]
        if target != place and size > 0.0:
            way += f.latency[place, target] + size * f.per_byte[place, target]
        longest = max(longest, way)
    return longest


@inner
def may_pass(f, s, t, moved, first, last, limit):
    """Whether the solution, with positions first .. last changed by moving a task, ends before `limit`.

    `t.finish` holds the finishes of the solution, before and after. O(positions changed * (reads + readers)).
    """
    order, finish = s.order, t.finish
    passed, at = True, first
    while passed and at <= last:
        task = order[at]
        host = s.host[task]
        low, high = (
            (f.core_ptr[host], f.core_ptr[host + 1]) if task == moved else (s.core[task], s.core[task] + 1)
        )
        core, before, free = _earliest_core(f, s, t, low, high, moved, first)
        end = max(_ready(f, s, finish, task), free) + f.seconds[task, f.speed_of[host]]
        finish[task] = end
        t.inside[core] = task
        t.core[task] = core
        at += 1
        t.work[0] += work_of(f, task)
        if task == moved:
            t.choice[0], t.choice[1] = core, before
        if task == moved or end != s.finish[task]:
            follower = _follower(s, before, core, task, moved, last)
            passed = end + longest_after(f, s, task, follower, last) < limit
    for i in range(first, at):
        finish[order[i]] = s.finish[order[i]]
        t.inside[t.core[order[i]]] = -1
    return passed


@inner
def _ready(f, s, finish, task):
    """When the inputs of a task are at its place."""
    place = f.place_of[s.host[task]]
    ready = f.outside[0 if f.outside.shape[0] == 1 else task, place]
    for k in range(f.read_ptr[task], f.read_ptr[task + 1]):
        maker, size = f.maker[k], f.size[k]
        source = f.place_of[s.host[maker]]
        since = finish[maker]
        if source != place and size > 0.0:
            since += f.latency[source, place] + size * f.per_byte[source, place]
        ready = max(ready, since)
    return ready


@inner
def _earliest_core(f, s, t, low, high, moved, first):
    """Of the cores low .. high - 1 the one that is free first, its last task (-1: none), and since when."""
    best, best_before, best_free = -1, -1, np.inf
    for core in range(low, high):
        before = t.inside[core]
        if before < 0:
            before = s.last[first // BLOCK, core]
            follower = s.next[before] if before >= 0 else s.first[core]
            while follower >= 0 and follower != moved and s.position[follower] < first:
                before, follower = follower, s.next[follower]
        free = t.finish[before] if before >= 0 else f.free_at[core]
        if free < best_free:
            best, best_before, best_free = core, before, free
    return best, best_before, best_free


@inner
def _follower(s, before, core, task, moved, last):
    """The first task behind the window that would follow a task on its core, or -1."""
    in_front = task if task != moved else before
    follower = s.next[in_front] if in_front >= 0 else s.first[core]
    while follower >= 0 and (follower == moved or s.position[follower] <= last):
        follower = s.next[follower]
    return follower
