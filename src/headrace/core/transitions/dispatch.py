"""Dispatch tasks to free cores and transfers to free links, and update the state when a task finishes."""

from __future__ import annotations

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import (
    BLOCK,
    COMMANDS,
    CONTENTION,
    DONE,
    DUPLICATE,
    DUPLICATES,
    FIFO,
    GATED,
    HYBRID,
    LIMITED,
    LINK_ORDER,
    READY,
    RELAY,
    REPLICATE,
    RUNNING_WRITES,
    START,
    STEAL,
    STOLEN,
    STOP,
    STRICT,
    TRANSFERS,
)
from headrace.core.transitions.copies import is_present
from headrace.core.transitions.data import (
    add_copy,
    can_be_free,
    come_to_exist,
    command,
    fits,
    is_turn_of_task,
    output_size,
    serve_order,
    serve_queue,
    transfer_done,
)
from headrace.core.transitions.load import change_needs, cores_of, count_running, meets_needs, note_load
from headrace.core.transitions.losses import count_at_gates, leave_core
from headrace.core.transitions.queues import (
    change_needed,
    count_absent,
    make_startable,
    mark_queue,
    out_of_pool,
    take_off_queue,
    unmark,
)
from headrace.core.transitions.replication import enqueue_copy, is_due, replicate
from headrace.core.transitions.requests import prefetch


@leaf
def has_room(problem, state, task, host):
    if state.busy_cores[host] + problem.cores[task] > cores_of(problem, host):
        return False
    return meets_needs(problem, state, task, host)


@leaf
def take_cores(problem, state, task, host):
    """Occupy as many free cores of a host as a task needs; returns the first of them."""
    first, left = -1, problem.cores[task]
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if left > 0 and state.core_task[core] < 0:
            state.core_task[core] = task
            left -= 1
            if first < 0:
                first = core - problem.core_ptr[host]
    state.busy_cores[host] += problem.cores[task]
    change_needs(problem, state, task, host, 1.0)
    note_load(problem, state, host)
    if state.run_host[task] < 0:  # a duplicate keeps as much free
        state.reserved[task] = output_size(problem, state, task)
    state.storage_used[problem.place_site[problem.host_place[host]]] += state.reserved[task]
    state.counters[RUNNING_WRITES] += problem.write_ptr[task + 1] - problem.write_ptr[task]
    command(state, START, task, host, first)
    return first


@leaf
def start_task(problem, state, task, host, now):
    """Start a queued task on free cores of its host."""
    take_off_queue(problem, state, task)
    state.run_core[task] = take_cores(problem, state, task, host)
    state.run_host[task] = host
    state.run_start[task] = now
    count_running(state, task, host, 1)
    count_at_gates(problem, state, task, host, 1)
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        state.pending_readers[problem.reads[k]] -= 1


@leaf
def may_move(problem, task, host):
    """Whether constraints let the coordinator move or duplicate a task to a host."""
    return len(problem.move_class) == 0 or problem.may_move[problem.move_class[task], host]


@leaf
def passes_gates(problem, state, task, host):
    """Whether one more task like this may run on a host now: it has what the task needs, besides cores, and limits on
    tasks at once permit it."""
    if not meets_needs(problem, state, task, host):
        return False
    if not problem.policy[GATED]:
        return True
    for k in range(problem.gate_ptr[task], problem.gate_ptr[task + 1]):
        gate = problem.gates[k]
        if problem.gate_hosts[gate, host] and state.gate_running[gate] >= problem.gate_most[gate]:
            return False
    return True


@leaf
def next_startable(problem, state, host):
    """The first startable task of a host that neither needs nor limits on tasks at once hold back; -1: none."""
    task = state.startable_head[host]
    while task >= 0 and not passes_gates(problem, state, task, host):
        task = state.startable_next[task]
    return task


@leaf
def must_wait(problem, state, task, host):
    """Whether a startable task must wait for its turn in a queue that is processed in order."""
    head = state.queue_head[host]
    return task != head and (problem.policy[STRICT] or state.in_order[head])


@leaf
def serve_host(problem, state, host, now):
    """Start all tasks that can start, by rank, and prefetch inputs."""
    while state.busy_cores[host] < cores_of(problem, host):
        task = next_startable(problem, state, host)
        if task < 0 or not has_room(problem, state, task, host) or must_wait(problem, state, task, host):
            break
        if not is_turn_of_task(problem, state, task, problem.host_place[host]):
            break
        if not fits(problem, state, problem.host_place[host], output_size(problem, state, task), -1):
            break
        start_task(problem, state, task, host, now)
    prefetch(problem, state, host)


@leaf
def last_movable(problem, state, victim, host):
    """The last startable task of a host that may move to another; -1: none."""
    task = state.startable_tail[victim]
    while task >= 0 and not may_move(problem, task, host):
        task = state.startable_previous[task]
    return task


@leaf
def victim_of(problem, state, host):
    """The host to steal from: same storage, startable tasks, no free core, and the longest queue of those; -1: none."""
    victim = -1
    for other in range(len(state.host_up)):
        neighbour = other != host and problem.host_place[other] == problem.host_place[host]
        if neighbour and last_movable(problem, state, other, host) >= 0:
            waits = state.busy_cores[other] >= cores_of(problem, other)
            if waits and (victim < 0 or state.queue_length[other] > state.queue_length[victim]):
                victim = other
    return victim


@leaf
def steal(problem, state, host, now):
    """An idle host takes the last startable task from the longest queue with the same storage."""
    victim = victim_of(problem, state, host)
    if victim < 0:
        return False
    task = last_movable(problem, state, victim, host)
    place = problem.host_place[host]
    if not has_room(problem, state, task, host) or not fits(
        problem, state, place, output_size(problem, state, task), -1
    ):
        return False
    state.backlog[victim] -= state.predicted[task]
    state.backlog[host] += state.predicted[task]
    take_off_queue(problem, state, task)
    put_in_front(problem, state, task, host)
    start_task(problem, state, task, host, now)
    state.counters[STOLEN] += 1
    return True


@leaf
def put_in_front(problem, state, task, host):
    """Insert a stolen task at the head of the thief's queue, from which it starts like any other."""
    state.assigned[task] = host
    head = state.queue_head[host]
    state.queue_next[task] = head
    state.queue_previous[task] = -1
    if head >= 0:
        state.queue_previous[head] = task
    else:
        state.queue_tail[host] = task
    state.queue_head[host] = task
    state.queue_length[host] += 1
    note_load(problem, state, host)
    make_startable(state, host, task)


@leaf
def latest_task(problem, state, host, now):
    """The most overdue task on another host that has run more than twice its predicted time and whose inputs are all at
    this host; -1: none."""
    place = problem.host_place[host]
    chosen, latest = -1, 0.0
    for core in range(len(state.core_task)):
        task = state.core_task[core]
        if task < 0 or state.duplicate_host[task] >= 0 or state.run_host[task] == host:
            continue
        if not may_move(problem, task, host):
            continue
        late = now - state.run_start[task] - state.predicted[task]
        overdue = now - state.run_start[task] > 2.0 * state.predicted[task]
        if overdue and (chosen < 0 or late > latest) and count_absent(problem, state, task, place) == 0:
            chosen, latest = task, late
    return chosen


@leaf
def duplicate(problem, state, host, now):
    """Start a duplicate of the most overdue task on an idle host; whichever execution finishes first counts."""
    chosen = latest_task(problem, state, host, now)
    place = problem.host_place[host]
    if chosen < 0 or not has_room(problem, state, chosen, host):
        return
    if not can_be_free(problem, state, place, output_size(problem, state, chosen)):
        return
    if count_absent(problem, state, chosen, place) > 0:  # making room has dropped one of them
        return
    state.duplicate_core[chosen] = take_cores(problem, state, chosen, host)
    state.duplicate_host[chosen] = host
    state.duplicate_start[chosen] = now
    change_needed(problem, state, chosen, place, 1)
    state.counters[DUPLICATES] += 1


@leaf
def look_at_host(problem, state, host, now):
    """Start tasks on a host; if it stays idle, let it steal or duplicate a task."""
    unmark(state.dirty_host, state.dirty_host_block, host)
    if not state.host_up[host]:
        return
    serve_host(problem, state, host, now)
    unmark(state.dirty_host, state.dirty_host_block, host)
    if problem.policy[STEAL]:
        while state.busy_cores[host] < cores_of(problem, host) and state.startable_head[host] < 0:
            if not steal(problem, state, host, now):
                break
    idle = state.busy_cores[host] < cores_of(problem, host) and state.queue_head[host] < 0
    if problem.policy[DUPLICATE] and idle and state.counters[READY] == 0:
        duplicate(problem, state, host, now)


@leaf
def look_at_queue(problem, state, queue, now):
    """Start transfers from a queue; it stays marked if the remaining requests wait for more than its own link.

    Returns whether a planned transfer started, in which case another one may now be first in its order.
    """
    unmark(state.dirty_queue, state.dirty_queue_block, queue)
    started = serve_order(problem, state, queue, now)
    serve_queue(problem, state, queue, now)
    fifo = problem.policy[CONTENTION] == FIFO
    own_link_busy = fifo and queue < len(state.link_up) and state.link_busy[queue] > 0
    if state.request_head[queue] >= 0 and not own_link_busy:
        mark_queue(state, queue)
    return started


@leaf
def serve_hosts(problem, state, now):
    """Start tasks on all marked hosts, by number."""
    everybody = problem.policy[STEAL] or problem.policy[DUPLICATE] or problem.policy[LIMITED]
    everybody = everybody or problem.policy[GATED]
    for block in range(len(state.dirty_host_block)):
        if not everybody and state.dirty_host_block[block] == 0:
            continue
        for host in range(block * BLOCK, min((block + 1) * BLOCK, len(state.host_up))):
            if everybody or state.dirty_host[host]:
                look_at_host(problem, state, host, now)


@leaf
def serve_queues(problem, state, now):
    """Start transfers from all marked queues, by number; repeats while planned transfers start."""
    everything = problem.policy[LIMITED] or problem.policy[LINK_ORDER] == HYBRID
    started = True
    while started:
        started = False
        for block in range(len(state.dirty_queue_block)):
            if not everything and state.dirty_queue_block[block] == 0:
                continue
            for queue in range(block * BLOCK, min((block + 1) * BLOCK, len(state.request_head))):
                if everything or state.dirty_queue[queue]:
                    started = look_at_queue(problem, state, queue, now) or started


@leaf
def dispatch(problem, state, now):
    """Start every task and transfer that can start now: O(marked hosts and queues + starts).

    Where storage is taken up in a planned order, what starts lets others have their turn.
    """
    before = -1
    while before < state.counters[COMMANDS]:
        before = state.counters[COMMANDS]
        serve_hosts(problem, state, now)
        if problem.policy[REPLICATE] > 0:
            replicate(problem, state)
        if problem.policy[RELAY]:  # first, so that items without a direct route request their next hop
            serve_queue(problem, state, len(state.link_up), now)
        serve_queues(problem, state, now)
        if len(state.disk_task) == 0:
            return


@leaf
def task_done(problem, state, task, host, now):
    """Record that a task has finished on a host: add its outputs there and stop a duplicate elsewhere."""
    is_duplicate = state.run_host[task] != host
    state.ran_for[task] = now - (state.duplicate_start[task] if is_duplicate else state.run_start[task])
    if state.duplicate_host[task] >= 0:
        loser = state.run_host[task] if is_duplicate else state.duplicate_host[task]
        core = state.run_core[task] if is_duplicate else state.duplicate_core[task]
        command(state, STOP, task, loser, core)
        leave_core(problem, state, task, not is_duplicate)
    leave_core(problem, state, task, False)
    complete(problem, state, task, host, now)


@leaf
def complete(problem, state, task, host, now):
    """Mark a task as done and add its outputs where it ran."""
    state.done[task] = 1
    state.ran_on[task] = host
    state.counters[DONE] += 1
    state.last_completion[host] = now
    place = problem.host_place[host]
    step = problem.policy[REPLICATE]
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        item = problem.writes[k]
        moves = not problem.no_transfer[item]
        if moves and not is_present(state, item, place):
            state.storage_used[problem.place_site[place]] += state.size[item]
            add_copy(problem, state, item, place)
        if not state.exists[item]:
            come_to_exist(problem, state, item)
        if step > 0 and moves and is_due(problem, item, step):
            enqueue_copy(state, item)


# Reports of back ends.


@entry
def dispatch_all(problem, state, now):
    """As `dispatch`, called from Python."""
    dispatch(problem, state, now)


@entry
def task_finished(problem, state, task, host, now):
    """Record that a task has finished on any host, as workers with their own queues report it."""
    if state.run_host[task] == host or (state.run_host[task] >= 0 and state.duplicate_host[task] == host):
        task_done(problem, state, task, host, now)
        return
    # A host that is paused still finishes what it has begun.
    if state.done[task] or not (state.host_up[host] or state.place_up[problem.host_place[host]]):
        return
    if state.assigned[task] >= 0:
        queue = state.assigned[task]
        take_off_queue(problem, state, task)
        state.backlog[queue] -= state.predicted[task]
        change_needed(problem, state, task, problem.host_place[queue], -1)
    elif state.missing_inputs[task] == 0:
        out_of_pool(state, task)
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        state.pending_readers[problem.reads[k]] -= 1
    complete(problem, state, task, host, now)


@entry
def copy_arrived(problem, state, item, place):
    """Record that a copy has arrived at a place, sent by the coordinator or fetched by a worker."""
    for k in range(state.counters[TRANSFERS]):
        transfer = state.live_transfers[k]
        if state.transfer_item[transfer] == item and state.transfer_target[transfer] == place:
            transfer_done(problem, state, transfer)
            return
    present = is_present(state, item, place)
    if not problem.no_transfer[item] and state.exists[item] and state.place_up[place] and not present:
        state.storage_used[problem.place_site[place]] += state.size[item]
        add_copy(problem, state, item, place)
