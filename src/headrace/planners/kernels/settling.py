"""Bring a solution up to date after a move: only what the move changes is computed again."""

from __future__ import annotations

from headrace.arrays.compiling import entry, inner
from headrace.planners.kernels.screening import longest_after, work_of
from headrace.planners.kernels.search_arrays import BLOCK, LOOK


@entry
def compute_finish(f, s, task):
    """Finish, end and cause of a task from those in front of it; returns whether the finish is another one."""
    host = s.host[task]
    place = f.place_of[host]
    ready, why = f.outside[0 if f.outside.shape[0] == 1 else task, place], -1
    for k in range(f.read_ptr[task], f.read_ptr[task + 1]):
        maker, size = f.maker[k], f.size[k]
        source = f.place_of[s.host[maker]]
        since = s.finish[maker]
        if source != place and size > 0.0:
            since += f.latency[source, place] + size * f.per_byte[source, place]
        if since > ready:
            ready, why = since, maker
    before = s.before[task]
    free = s.finish[before] if before >= 0 else f.free_at[s.core[task]]
    if free > ready:
        ready, why = free, before
    end = ready + f.seconds[task, f.speed_of[host]]
    changed = end != s.finish[task]
    s.finish[task], s.cause[task] = end, why
    s.over[task] = end + f.back[0 if f.back.shape[0] == 1 else task, place]
    return changed


@entry
def compute_rest(f, s, task):
    """The rest of a task from those behind it; returns whether it is another one."""
    rest = f.seconds[task, f.speed_of[s.host[task]]] + longest_after(f, s, task, s.next[task], -1)
    changed = rest != s.rest[task]
    s.rest[task] = rest
    return changed


@inner
def settle(f, s, t, moved, first, last):
    """A task was moved within the positions first .. last, to the core that `t.choice` says.

    O(tasks in front of and behind it) to look at, O(reads + readers) for each whose times change.
    """
    old_core, old_before, old_next = s.core[moved], s.before[moved], s.next[moved]
    _unlink(s, moved)
    core, before = t.choice[0], t.choice[1]
    t.work[0] += LOOK * 2 * len(s.order)
    _link(s, moved, core, before)
    _renew_last(s, moved, old_core, old_before, first, last)
    _forwards(f, s, t, moved, old_next, first)
    _backwards(f, s, t, moved, old_before, last)


@inner
def _unlink(s, task):
    before, behind = s.before[task], s.next[task]
    if before >= 0:
        s.next[before] = behind
    else:
        s.first[s.core[task]] = behind
    if behind >= 0:
        s.before[behind] = before


@inner
def _link(s, task, core, before):
    behind = s.next[before] if before >= 0 else s.first[core]
    s.core[task], s.before[task], s.next[task] = core, before, behind
    if before >= 0:
        s.next[before] = task
    else:
        s.first[core] = task
    if behind >= 0:
        s.before[behind] = task


@inner
def _renew_last(s, moved, old_core, old_before, first, last):
    """Find again what is last on its core in front of each block: of both cores, and of tasks that crossed."""
    for block in range(first // BLOCK + 1, s.last.shape[0]):
        if s.last[block, old_core] == moved:
            s.last[block, old_core] = old_before
        changed = _find_last(s, block, old_core)
        changed = _find_last(s, block, s.core[moved]) or changed
        if block * BLOCK <= last:
            _find_last(s, block, s.core[s.order[block * BLOCK]])
            _find_last(s, block, s.core[s.order[block * BLOCK - 1]])
        elif not changed and s.last[block, s.core[moved]] != moved and s.last[block, old_core] != old_before:
            return


@inner
def _find_last(s, block, core):
    """Walk from what was last to what is; returns whether it is another one."""
    was = s.last[block, core]
    task = was
    while task >= 0 and s.position[task] >= block * BLOCK:
        task = s.before[task]
    behind = s.next[task] if task >= 0 else s.first[core]
    while behind >= 0 and s.position[behind] < block * BLOCK:
        task, behind = behind, s.next[behind]
    s.last[block, core] = task
    return task != was


@inner
def _mark(t, task):
    """1 if the task was not marked yet."""
    if task < 0 or t.marked[task]:
        return 0
    t.marked[task] = True
    return 1


@inner
def _forwards(f, s, t, moved, old_next, first):
    """Finishes, in order, of all tasks that wait for something whose finish or place has changed."""
    left = _mark(t, moved) + _mark(t, old_next) + _mark(t, s.next[moved])
    i = first
    while left > 0:
        task = s.order[i]
        i += 1
        if not t.marked[task]:
            continue
        t.marked[task] = False
        left -= 1
        t.work[0] += work_of(f, task)
        if compute_finish(f, s, task) or task == moved:
            t.finish[task] = s.finish[task]
            left += _mark(t, s.next[task])
            for k in range(f.after_ptr[task], f.after_ptr[task + 1]):
                left += _mark(t, f.after[k])


@inner
def _backwards(f, s, t, moved, old_before, last):
    """Rests, from the end, of all tasks that something with another rest or place waits for."""
    left = _mark(t, moved) + _mark(t, old_before) + _mark(t, s.before[moved])
    i = last
    while left > 0:
        task = s.order[i]
        i -= 1
        if not t.marked[task]:
            continue
        t.marked[task] = False
        left -= 1
        t.work[0] += work_of(f, task)
        if compute_rest(f, s, task) or task == moved:
            left += _mark(t, s.before[task])
            for k in range(f.read_ptr[task], f.read_ptr[task + 1]):
                left += _mark(t, f.maker[k])
