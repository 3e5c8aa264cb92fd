"""Recovery: hosts, places and links that leave and return, and the tasks that must run again."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner, leaf
from headrace.core.state import (
    ABORT,
    ABSENT,
    COPIES,
    DELIVERED,
    DONE,
    GATED,
    HOSTS_UP,
    PRESENT,
    REDONE,
    REQUESTED,
    RUNNING_WRITES,
    STOP,
    TRANSFERS,
)
from headrace.core.transitions.copies import copy_at, find_copy, find_holder, is_present
from headrace.core.transitions.data import come_to_exist, command, end_transfer, still_needed
from headrace.core.transitions.load import change_needs, count_running, note_load
from headrace.core.transitions.queues import (
    change_needed,
    into_pool,
    make_startable,
    mark_host,
    mark_queue,
    out_of_pool,
    requeue,
)
from headrace.core.transitions.requests import (
    abandon_outgoing,
    abandon_source,
    drop_request,
    planned_requests,
    request_item,
    take_back,
    wanted,
)


@leaf
def count_at_gates(problem, state, task, host, change):
    """Count a task that starts or stops running on a host in the limits on tasks at once."""
    if problem.policy[GATED]:
        for k in range(problem.gate_ptr[task], problem.gate_ptr[task + 1]):
            if problem.gate_hosts[problem.gates[k], host]:
                state.gate_running[problem.gates[k]] += change


@leaf
def leave_core(problem, state, task, duplicate):
    """Release the cores of a task or its duplicate."""
    host = state.duplicate_host[task] if duplicate else state.run_host[task]
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if state.core_task[core] == task:
            state.core_task[core] = -1
    state.busy_cores[host] -= problem.cores[task]
    change_needs(problem, state, task, host, -1.0)
    note_load(problem, state, host)
    state.counters[RUNNING_WRITES] -= problem.write_ptr[task + 1] - problem.write_ptr[task]
    change_needed(problem, state, task, problem.host_place[host], -1)
    state.storage_used[problem.place_site[problem.host_place[host]]] -= state.reserved[task]
    mark_host(state, host)
    if duplicate:
        state.duplicate_host[task] = -1
        return
    state.backlog[host] -= state.predicted[task]
    count_running(state, task, host, -1)
    count_at_gates(problem, state, task, host, -1)
    if state.duplicate_host[task] >= 0:
        state.run_host[task] = state.duplicate_host[task]
        state.run_core[task] = state.duplicate_core[task]
        state.run_start[task] = state.duplicate_start[task]
        state.duplicate_host[task] = -1
        state.backlog[state.run_host[task]] += state.predicted[task]
        count_running(state, task, state.run_host[task], 1)
    else:
        state.run_host[task] = -1


@leaf
def stop_task(problem, state, task, host):
    """Stop a running task; a duplicate elsewhere continues."""
    duplicate = state.duplicate_host[task] == host and state.run_host[task] != host
    core = state.duplicate_core[task] if duplicate else state.run_core[task]
    command(state, STOP, task, host, core)
    leave_core(problem, state, task, duplicate)
    if state.run_host[task] < 0:
        wait_again(problem, state, task)


@leaf
def wait_again(problem, state, task):
    """Return a stopped task to the pool; inputs that were lost in the meantime are recomputed."""
    missing = 0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        state.pending_readers[item] += 1
        if not state.exists[item]:
            missing += 1
    state.missing_inputs[task] = missing
    if missing == 0:
        into_pool(state, task)
        return
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        if not state.exists[problem.reads[k]]:
            make_again(problem, state, problem.reads[k])


@entry
def cancel(problem, state, task):
    """Stop a running task and its duplicate, or remove a queued one from its queue; it waits for a host again."""
    if state.assigned[task] >= 0:
        requeue(problem, state, task)
    while state.run_host[task] >= 0:
        stop_task(problem, state, task, state.run_host[task])


@leaf
def abort_transfer(problem, state, transfer):
    """Abort a transfer; it is requested again if it is still needed."""
    item, target = state.transfer_item[transfer], state.transfer_target[transfer]
    command(state, ABORT, transfer, state.transfer_source[transfer], target)
    end_transfer(problem, state, transfer)
    state.storage_used[problem.place_site[target]] -= state.size[item]
    record = copy_at(state, item, target)
    if state.copy_status[record] == PRESENT:  # produced there in the meantime
        return
    state.copy_status[record] = ABSENT
    if state.place_up[target] and state.copy_count[item] > 0 and wanted(problem, state, item, target):
        request_item(problem, state, item, state.holder[item], target, np.nan)
    else:
        abandon_outgoing(problem, state, record)


@leaf
def cease_to_exist(problem, state, item):
    """No copy is reachable: the producer runs again if the item is needed.

    Readers that have not started miss an input. They are removed from their queues, so that none waits there for a task
    that has no host yet, and requests for the item are dropped.
    """
    state.exists[item] = 0
    record = state.item_copies[item]
    while record >= 0:
        if state.copy_status[record] == REQUESTED:
            state.copy_status[record] = ABSENT
            if state.copy_request[record] >= 0:
                drop_request(problem, state, state.copy_request[record])
        record = state.copy_next[record]
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        if state.done[task] or state.run_host[task] >= 0:
            continue
        if state.assigned[task] >= 0:
            requeue(problem, state, task)
        if state.missing_inputs[task] == 0:
            out_of_pool(state, task)
        state.missing_inputs[task] += 1
    make_again(problem, state, item)


@leaf
def make_again(problem, state, item):
    """Run the producer of a lost item again, and recursively the producers of its missing inputs."""
    state.stack[0] = item
    depth = 1
    while depth > 0:
        depth -= 1
        lost = state.stack[depth]
        producer = problem.producer[lost]
        if producer < 0 or not state.done[producer] or not still_needed(problem, state, lost):
            continue
        state.done[producer] = 0
        state.counters[DONE] -= 1
        state.counters[REDONE] += 1
        missing = 0
        for k in range(problem.read_ptr[producer], problem.read_ptr[producer + 1]):
            read = problem.reads[k]
            state.pending_readers[read] += 1
            if not state.exists[read]:
                missing += 1
                state.stack[depth] = read
                depth += 1
        state.missing_inputs[producer] = missing
        if missing == 0:
            into_pool(state, producer)


@leaf
def come_back(problem, state, item):
    """An item is reachable again: its producer need not run again unless it has already started."""
    find_holder(state, item)
    come_to_exist(problem, state, item)
    producer = problem.producer[item]
    if producer < 0 or state.done[producer] or state.run_host[producer] >= 0:
        return
    for k in range(problem.write_ptr[producer], problem.write_ptr[producer + 1]):
        other = problem.writes[k]
        if not state.exists[other] and still_needed(problem, state, other):
            return
    if state.assigned[producer] >= 0:
        requeue(problem, state, producer)
    if state.missing_inputs[producer] == 0:
        out_of_pool(state, producer)
    state.done[producer] = 1
    state.counters[DONE] += 1
    state.counters[REDONE] -= 1
    for k in range(problem.read_ptr[producer], problem.read_ptr[producer + 1]):
        state.pending_readers[problem.reads[k]] -= 1


@inner
def records_at(state, place):
    """Items with a copy record at a place, by number: O(records)."""
    found = np.empty(state.counters[COPIES], np.int32)
    n = 0
    for record in range(state.counters[COPIES]):
        if state.copy_place[record] == place:
            found[n] = state.copy_item[record]
            n += 1
    return np.sort(found[:n])


@leaf
def forget_copy(problem, state, item, place):
    """Count one reachable copy less; with the last one the item ceases to exist."""
    state.copy_count[item] -= 1
    if state.replica[item] == place:
        state.replica[item] = -1
    if problem.destination[item] == place:
        state.delivered[item] = 0
        state.counters[DELIVERED] -= 1
    find_holder(state, item)
    if state.copy_count[item] == 0 and not problem.no_transfer[item]:
        cease_to_exist(problem, state, item)


@inner
def lose_place(problem, state, place, wiped):
    """Mark the data at a place as unreachable, or as lost if it is wiped. Data at the origin survives its host."""
    if place == problem.origin or not state.place_up[place]:
        return
    state.place_up[place] = 0
    for k in range(state.counters[TRANSFERS] - 1, -1, -1):
        transfer = state.live_transfers[k]
        if state.transfer_target[transfer] == place or state.transfer_source[transfer] == place:
            abort_transfer(problem, state, transfer)
    for item in records_at(state, place):
        record = find_copy(state, item, place)
        abandon_outgoing(problem, state, record)
        if state.copy_request[record] >= 0:
            take_back(problem, state, state.copy_request[record])
        if state.copy_status[record] != PRESENT:
            continue
        if wiped:
            state.copy_status[record] = ABSENT
            state.storage_used[problem.place_site[place]] -= state.size[item]
        forget_copy(problem, state, item, place)


@leaf
def regain_place(problem, state, place):
    """Mark a place as reachable again, with the data it still holds."""
    if state.place_up[place]:
        return
    state.place_up[place] = 1
    mark_all_queues(state)
    for item in range(len(state.exists)):
        if is_present(state, item, place):
            state.copy_count[item] += 1
            if problem.destination[item] == place:
                state.delivered[item] = 1
                state.counters[DELIVERED] += 1
            if state.copy_count[item] == 1:
                come_back(problem, state, item)
        elif problem.destination[item] == place and state.copy_count[item] > 0:
            request_item(problem, state, item, state.holder[item], place, np.nan)


@leaf
def mark_all_queues(state):
    for queue in range(len(state.request_head)):
        mark_queue(state, queue)


@entry
def host_left(problem, state, host, wiped):
    """A host has left: its running tasks are stopped and, if wiped, the data on its own disk is lost."""
    if not state.host_up[host]:
        return
    state.host_up[host] = 0
    state.counters[HOSTS_UP] -= 1
    note_load(problem, state, host)
    place = problem.host_place[host]
    while state.queue_head[host] >= 0:
        requeue(problem, state, state.queue_head[host])
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if state.core_task[core] >= 0:
            stop_task(problem, state, state.core_task[core], host)
    state.backlog[host] = 0.0
    if problem.place_host[place] == host:
        lose_place(problem, state, place, wiped)


@entry
def host_paused(problem, state, host):
    """A host takes no more tasks: its queue is emptied; what it runs goes on, and its data stays."""
    if not state.host_up[host]:
        return
    state.host_up[host] = 0
    state.counters[HOSTS_UP] -= 1
    while state.queue_head[host] >= 0:
        requeue(problem, state, state.queue_head[host])
    state.backlog[host] = 0.0
    note_load(problem, state, host)


@entry
def copy_lost(problem, state, item, place):
    """A place has lost a copy: tasks queued there that read it wait again; the last copy is made anew if needed."""
    record = find_copy(state, item, place)
    if record < 0 or state.copy_status[record] != PRESENT or not state.place_up[place]:
        return
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        host = state.assigned[task]
        if host >= 0 and problem.host_place[host] == place:
            requeue(problem, state, task)
    abandon_outgoing(problem, state, record)
    state.copy_status[record] = ABSENT
    state.storage_used[problem.place_site[place]] -= state.size[item]
    forget_copy(problem, state, item, place)


@entry
def host_joined(problem, state, host, now):
    """A host has joined or returned with an empty queue; data on its own disk was lost when it left."""
    if state.host_up[host]:
        return
    state.host_up[host] = 1
    state.counters[HOSTS_UP] += 1
    note_load(problem, state, host)
    state.last_completion[host] = now
    state.backlog[host] = 0.0
    mark_host(state, host)
    regain_place(problem, state, problem.host_place[host])


@entry
def storage_left(problem, state, place):
    """Mark a site's shared storage as unreachable, contents intact; returns whether it was reachable before."""
    if place == problem.origin or not state.place_up[place]:
        return False
    lose_place(problem, state, place, False)
    return True


@entry
def storage_joined(problem, state, place):
    """Mark a site's shared storage as reachable again; returns whether it was unreachable before."""
    if state.place_up[place]:
        return False
    regain_place(problem, state, place)
    return True


@leaf
def uses_link(problem, state, source, target, link):
    at = source * len(state.place_up) + target
    used = False
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        used = used or problem.route_links[k] == link
    return used


@entry
def link_left(problem, state, link):
    """A link is down: transfers over it are aborted, and planned ones are rerouted."""
    state.link_up[link] = 0
    for k in range(state.counters[TRANSFERS] - 1, -1, -1):
        transfer = state.live_transfers[k]
        if uses_link(problem, state, state.transfer_source[transfer], state.transfer_target[transfer], link):
            abort_transfer(problem, state, transfer)
    for request in planned_requests(state):
        if uses_link(problem, state, state.request_source[request], state.request_target[request], link):
            abandon_source(problem, state, request)


@entry
def link_joined(problem, state, link):
    state.link_up[link] = 1
    mark_all_queues(state)


@entry
def task_released(problem, state, task):
    """Record that the release time of a task has passed."""
    state.missing_inputs[task] -= 1
    if state.missing_inputs[task] > 0:
        return
    if state.assigned[task] < 0:
        into_pool(state, task)
    elif state.absent_inputs[task] == 0:
        make_startable(state, state.assigned[task], task)
