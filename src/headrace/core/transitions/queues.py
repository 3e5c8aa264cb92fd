"""Queues of tasks, one a host, kept by rank; and the pool of ready tasks that no host has."""

from __future__ import annotations

from headrace.core.state import HERE, WAITING
from headrace.core.transitions.jit import entry, inner


@inner
def goes_after(rank, first, second):
    """Whether `first` belongs behind `second`: by rank, ties by number."""
    return rank[first] > rank[second] or (rank[first] == rank[second] and first > second)


@inner
def insert(state, queue, task):
    """Put a task into a host's queue, looked for from the end: O(1) when work comes in order."""
    after, before, rank = state.queue_next, state.queue_previous, state.rank
    at = state.queue_tail[queue]
    while at >= 0 and goes_after(rank, at, task):
        at = before[at]
    link_in(after, before, state.queue_head, state.queue_tail, queue, task, at)
    state.queue_length[queue] += 1


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
def remove(state, queue, task):
    link_out(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, queue, task)
    state.queue_length[queue] -= 1


@inner
def into_pool(state, task):
    """A ready task that nobody has waits at the end of the pool."""
    pool = len(state.host_up)
    link_in(
        state.queue_next,
        state.queue_previous,
        state.queue_head,
        state.queue_tail,
        pool,
        task,
        state.queue_tail[pool],
    )
    state.queue_length[pool] += 1
    state.count[WAITING] += 1


@inner
def out_of_pool(state, task):
    remove(state, len(state.host_up), task)
    state.count[WAITING] -= 1


@inner
def make_startable(state, host, task):
    """All inputs are there: among those that can start, by rank."""
    if state.startable[task]:
        return
    state.startable[task] = 1
    at = state.startable_tail[host]
    while at >= 0 and goes_after(state.rank, at, task):
        at = state.startable_previous[at]
    link_in(
        state.startable_next,
        state.startable_previous,
        state.startable_head,
        state.startable_tail,
        host,
        task,
        at,
    )


@inner
def not_startable(state, host, task):
    if state.startable[task]:
        state.startable[task] = 0
        link_out(
            state.startable_next,
            state.startable_previous,
            state.startable_head,
            state.startable_tail,
            host,
            task,
        )


@inner
def count_lacking(problem, state, task, place):
    """Inputs of a task that are not at a place."""
    places = len(state.place_up)
    lacking = 0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if not problem.no_transfer[item] and state.present[item * places + place] != HERE:
            lacking += 1
    return lacking


@inner
def change_want(problem, state, task, place, by):
    places = len(state.place_up)
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if not problem.no_transfer[item]:
            state.needed[item * places + place] += by


@inner
def assign(problem, state, task, host, rank, predicted):
    """Put a task into a host's queue, away from where it was; not if it runs, is done, or the host is gone."""
    if state.done[task] or state.run_host[task] >= 0 or not state.host_up[host]:
        return False
    if state.assigned[task] >= 0:
        unassign(problem, state, task)
    if state.missing_inputs[task] == 0:
        out_of_pool(state, task)
    place = problem.host_place[host]
    state.assigned[task] = host
    state.rank[task] = rank
    state.predicted[task] = predicted
    state.backlog[host] += predicted
    insert(state, host, task)
    change_want(problem, state, task, place, 1)
    state.absent_inputs[task] = count_lacking(problem, state, task, place)
    if state.missing_inputs[task] == 0 and state.absent_inputs[task] == 0:
        make_startable(state, host, task)
    return True


@inner
def forget(problem, state, task):
    """A task leaves its host's queue for good or for another; it is in no queue then."""
    host = state.assigned[task]
    not_startable(state, host, task)
    remove(state, host, task)
    state.assigned[task] = -1
    state.inputs_requested[task] = 0


@inner
def unassign(problem, state, task):
    """A queued task goes back to the pool, or waits for its inputs to exist."""
    host = state.assigned[task]
    forget(problem, state, task)
    state.backlog[host] -= state.predicted[task]
    change_want(problem, state, task, problem.host_place[host], -1)
    if state.missing_inputs[task] == 0:
        into_pool(state, task)


@entry
def assign_all(problem, state, tasks, hosts, ranks, predicted):
    """Assign many; how many took."""
    taken = 0
    for k in range(len(tasks)):
        if assign(problem, state, tasks[k], hosts[k], ranks[k], predicted[k]):
            taken += 1
    return taken


@entry
def truncate(problem, state, keep):
    """Leave each host the first `keep` tasks of its queue; the others go back to the pool."""
    for host in range(len(state.host_up)):
        task = state.queue_head[host]
        kept = 0
        while task >= 0:
            following = state.queue_next[task]
            if kept >= keep:
                unassign(problem, state, task)
            kept += 1
            task = following
