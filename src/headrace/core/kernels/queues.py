"""Queues of tasks, one a host, kept by rank; and the pool of ready tasks that no host has."""

from __future__ import annotations

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.desk import HERE, WAITING


@inner
def goes_after(rank, first, second):
    """Whether `first` belongs behind `second`: by rank, ties by number."""
    return rank[first] > rank[second] or (rank[first] == rank[second] and first > second)


@inner
def insert(desk, queue, task):
    """Put a task into a host's queue, looked for from the end: O(1) when work comes in order."""
    after, before, rank = desk.q_next, desk.q_prev, desk.rank
    at = desk.q_tail[queue]
    while at >= 0 and goes_after(rank, at, task):
        at = before[at]
    link_in(after, before, desk.q_head, desk.q_tail, queue, task, at)
    desk.q_len[queue] += 1


@inner
def link_in(after, before, head, tail, queue, task, at):
    """Insert into a doubly linked list behind `at`; at the front for -1."""
    before[task] = at
    follower = head[queue] if at < 0 else after[at]
    after[task] = follower
    if at < 0:
        head[queue] = task
    else:
        after[at] = task
    if follower < 0:
        tail[queue] = task
    else:
        before[follower] = task


@inner
def link_out(after, before, head, tail, queue, task):
    """Take out of a doubly linked list."""
    p, q = before[task], after[task]
    if p < 0:
        head[queue] = q
    else:
        after[p] = q
    if q < 0:
        tail[queue] = p
    else:
        before[q] = p
    after[task] = -1
    before[task] = -1


@inner
def remove(desk, queue, task):
    link_out(desk.q_next, desk.q_prev, desk.q_head, desk.q_tail, queue, task)
    desk.q_len[queue] -= 1


@inner
def into_pool(desk, task):
    """A ready task that nobody has waits at the end of the pool."""
    pool = len(desk.up)
    link_in(desk.q_next, desk.q_prev, desk.q_head, desk.q_tail, pool, task, desk.q_tail[pool])
    desk.q_len[pool] += 1
    desk.count[WAITING] += 1


@inner
def out_of_pool(desk, task):
    remove(desk, len(desk.up), task)
    desk.count[WAITING] -= 1


@inner
def make_startable(desk, host, task):
    """All inputs are there: among those that can start, by rank."""
    if desk.startable[task]:
        return
    desk.startable[task] = 1
    at = desk.s_tail[host]
    while at >= 0 and goes_after(desk.rank, at, task):
        at = desk.s_prev[at]
    link_in(desk.s_next, desk.s_prev, desk.s_head, desk.s_tail, host, task, at)


@inner
def not_startable(desk, host, task):
    if desk.startable[task]:
        desk.startable[task] = 0
        link_out(desk.s_next, desk.s_prev, desk.s_head, desk.s_tail, host, task)


@inner
def count_lacking(case, desk, task, place):
    """Inputs of a task that are not at a place."""
    places = len(desk.place_up)
    lacking = 0
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        item = case.reads[k]
        if not case.free[item] and desk.present[item * places + place] != HERE:
            lacking += 1
    return lacking


@inner
def change_want(case, desk, task, place, by):
    places = len(desk.place_up)
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        item = case.reads[k]
        if not case.free[item]:
            desk.want[item * places + place] += by


@inner
def assign(case, desk, task, host, rank, predicted):
    """Put a task into a host's queue, away from where it was; not if it runs, is done, or the host is gone."""
    if desk.done[task] or desk.run_host[task] >= 0 or not desk.up[host]:
        return False
    if desk.assigned[task] >= 0:
        unassign(case, desk, task)
    if desk.missing[task] == 0:
        out_of_pool(desk, task)
    place = case.host_place[host]
    desk.assigned[task] = host
    desk.rank[task] = rank
    desk.predicted[task] = predicted
    desk.backlog[host] += predicted
    insert(desk, host, task)
    change_want(case, desk, task, place, 1)
    desk.lacking[task] = count_lacking(case, desk, task, place)
    if desk.missing[task] == 0 and desk.lacking[task] == 0:
        make_startable(desk, host, task)
    return True


@inner
def forget(case, desk, task):
    """A task leaves its host's queue for good or for another; it is in no queue then."""
    host = desk.assigned[task]
    not_startable(desk, host, task)
    remove(desk, host, task)
    desk.assigned[task] = -1
    desk.asked[task] = 0


@inner
def unassign(case, desk, task):
    """A queued task goes back to the pool, or waits for its inputs to exist."""
    host = desk.assigned[task]
    forget(case, desk, task)
    desk.backlog[host] -= desk.predicted[task]
    change_want(case, desk, task, case.host_place[host], -1)
    if desk.missing[task] == 0:
        into_pool(desk, task)


@entry
def assign_all(case, desk, tasks, hosts, ranks, predicted):
    """Assign many; how many took."""
    taken = 0
    for k in range(len(tasks)):
        if assign(case, desk, tasks[k], hosts[k], ranks[k], predicted[k]):
            taken += 1
    return taken


@entry
def truncate(case, desk, keep):
    """Leave each host the first `keep` tasks of its queue; the others go back to the pool."""
    for host in range(len(desk.up)):
        task = desk.q_head[host]
        kept = 0
        while task >= 0:
            following = desk.q_next[task]
            if kept >= keep:
                unassign(case, desk, task)
            kept += 1
            task = following
