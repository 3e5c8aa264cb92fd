"""Task queues, one per host in rank order, and the pool of ready tasks without a host."""

from __future__ import annotations

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import BLOCK, READY
from headrace.core.transitions.copies import copy_at, is_present
from headrace.core.transitions.load import note_load


@leaf
def mark(flags, blocks, number):
    """Mark a host or a queue for the next dispatch."""
    if not flags[number]:
        flags[number] = 1
        blocks[number // BLOCK] += 1


@leaf
def unmark(flags, blocks, number):
    if flags[number]:
        flags[number] = 0
        blocks[number // BLOCK] -= 1


@leaf
def mark_host(state, host):
    mark(state.dirty_host, state.dirty_host_block, host)


@leaf
def mark_queue(state, queue):
    mark(state.dirty_queue, state.dirty_queue_block, queue)


@leaf
def goes_after(rank, first, second):
    """Whether `first` belongs behind `second`: by rank, ties by number."""
    return rank[first] > rank[second] or (rank[first] == rank[second] and first > second)


@leaf
def insert(state, host, task):
    """Enqueue a task by rank, searching from the tail: O(1) when tasks arrive in order."""
    at = state.queue_tail[host]
    while at >= 0 and goes_after(state.rank, at, task):
        at = state.queue_previous[at]
    link_in(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, host, task, at)
    state.queue_length[host] += 1


@leaf
def link_in(following, previous, head, tail, queue, entry, at):
    """Insert an entry into a doubly linked list behind `at`; -1: at the front."""
    previous[entry] = at
    after = head[queue] if at < 0 else following[at]
    following[entry] = after
    if at < 0:
        head[queue] = entry
    else:
        following[at] = entry
    if after < 0:
        tail[queue] = entry
    else:
        previous[after] = entry


@leaf
def link_out(following, previous, head, tail, queue, entry):
    """Remove an entry from a doubly linked list."""
    before, after = previous[entry], following[entry]
    if before < 0:
        head[queue] = after
    else:
        following[before] = after
    if after < 0:
        tail[queue] = before
    else:
        previous[after] = before
    following[entry] = -1
    previous[entry] = -1


@leaf
def remove(state, queue, task):
    link_out(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, queue, task)
    state.queue_length[queue] -= 1


@leaf
def into_pool(state, task):
    """Append a ready task without a host to the pool."""
    pool = len(state.host_up)
    at = state.queue_tail[pool]
    link_in(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, pool, task, at)
    state.queue_length[pool] += 1
    state.counters[READY] += 1


@leaf
def out_of_pool(state, task):
    remove(state, len(state.host_up), task)
    state.counters[READY] -= 1


@leaf
def make_startable(state, host, task):
    """Mark a queued task as startable: all its inputs are at its host."""
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
    mark_host(state, host)


@leaf
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


@leaf
def count_absent(problem, state, task, place):
    """Number of a task's inputs that are not at a place."""
    absent = 0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if not problem.no_transfer[item] and not is_present(state, item, place):
            absent += 1
    return absent


@leaf
def change_needed(problem, state, task, place, by):
    """Add `by` to the number of tasks that need each of the task's inputs at this place."""
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if not problem.no_transfer[item]:
            state.copy_needed[copy_at(state, item, place)] += by


@leaf
def assign(problem, state, task, host, rank, predicted, in_order):
    """Move a task to a host's queue, unless it is running or done or the host is down."""
    if state.done[task] or state.run_host[task] >= 0 or not state.host_up[host]:
        return
    if state.assigned[task] >= 0:
        requeue(problem, state, task)
    if state.missing_inputs[task] == 0:
        out_of_pool(state, task)
    place = problem.host_place[host]
    state.assigned[task] = host
    state.rank[task] = rank
    state.in_order[task] = in_order
    state.predicted[task] = predicted
    state.backlog[host] += predicted
    insert(state, host, task)
    note_load(problem, state, host)
    change_needed(problem, state, task, place, 1)
    state.absent_inputs[task] = count_absent(problem, state, task, place)
    if state.missing_inputs[task] == 0 and state.absent_inputs[task] == 0:
        make_startable(state, host, task)
    mark_host(state, host)


@leaf
def take_off_queue(problem, state, task):
    """Remove a task from its host's queue, because it starts or moves to another queue."""
    host = state.assigned[task]
    not_startable(state, host, task)
    remove(state, host, task)
    note_load(problem, state, host)
    state.assigned[task] = -1
    state.inputs_requested[task] = 0
    mark_host(state, host)


@leaf
def requeue(problem, state, task):
    """Return a queued task to the pool, or let it wait until its inputs exist."""
    host = state.assigned[task]
    take_off_queue(problem, state, task)
    state.backlog[host] -= state.predicted[task]
    change_needed(problem, state, task, problem.host_place[host], -1)
    if state.missing_inputs[task] == 0:
        into_pool(state, task)


@entry
def assign_all(problem, state, tasks, hosts, ranks, work, speed_class, rates, in_order):
    """Assign many tasks; their run times are predicted from the work and the speeds of the hosts."""
    for k in range(len(tasks)):
        predicted = work[tasks[k]] / rates[speed_class[tasks[k]], hosts[k]]
        assign(problem, state, tasks[k], hosts[k], ranks[k], predicted, in_order)


@entry
def requeue_all(problem, state, tasks):
    """Return queued tasks to the pool; other tasks are ignored."""
    for k in range(len(tasks)):
        if state.assigned[tasks[k]] >= 0:
            requeue(problem, state, tasks[k])


@entry
def requeue_tails(problem, state, keep):
    """Keep the first `keep` tasks of each host's queue; return the others to the pool."""
    for host in range(len(state.host_up)):
        task = state.queue_head[host]
        kept = 0
        while task >= 0:
            following = state.queue_next[task]
            if kept >= keep:
                requeue(problem, state, task)
            kept += 1
            task = following
