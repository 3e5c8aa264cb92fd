"""What starts next: tasks on free cores, transfers on free links; what follows when a task ends."""

from __future__ import annotations

import numpy as np

from headrace.core.state import (
    ABSENT,
    CANCEL,
    COPIED,
    DONE,
    DUPLICATE,
    HERE,
    RELAY,
    REPLICAS,
    REPLICATE,
    START,
    STEAL,
    STOLEN,
    STRICT,
    WAITING,
)
from headrace.core.transitions.data import (
    add_copy,
    ask_ahead,
    come_to_be,
    fits,
    order,
    request,
    serve_link,
    still_needed,
)
from headrace.core.transitions.jit import entry, inner
from headrace.core.transitions.losses import leave_core, output_size
from headrace.core.transitions.queues import (
    change_want,
    count_lacking,
    forget,
    make_startable,
    out_of_pool,
)


@inner
def take_cores(problem, state, task, host):
    """Put a task on as many free cores of a host as it needs; the first of them."""
    first, left = -1, problem.cores[task]
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if left > 0 and state.core_task[core] < 0:
            state.core_task[core] = task
            left -= 1
            if first < 0:
                first = core - problem.core_ptr[host]
    state.busy_cores[host] += problem.cores[task]
    return first


@inner
def has_room(problem, state, task, host):
    return state.busy_cores[host] + problem.cores[task] <= problem.core_ptr[host + 1] - problem.core_ptr[host]


@inner
def begin_task(problem, state, task, host, now):
    """Start a queued task on a free core of its host."""
    core = take_cores(problem, state, task, host)
    forget(problem, state, task)
    state.run_host[task] = host
    state.run_core[task] = core
    state.run_start[task] = now
    state.storage_used[problem.place_site[problem.host_place[host]]] += output_size(problem, task)
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        state.pending_readers[problem.reads[k]] -= 1
    order(state, START, task, host, core)


@inner
def serve_host(problem, state, host, now):
    """Start what can start: by rank, or only the head of the queue where order is strict."""
    cores = problem.core_ptr[host + 1] - problem.core_ptr[host]
    while state.busy_cores[host] < cores:
        task = state.startable_head[host]
        if (
            task < 0
            or not has_room(problem, state, task, host)
            or (problem.policy[STRICT] and task != state.queue_head[host])
        ):
            break
        if not fits(problem, state, problem.host_place[host], output_size(problem, task)):
            break
        begin_task(problem, state, task, host, now)
    ask_ahead(problem, state, host)


@inner
def steal(problem, state, host, now):
    """An idle host takes the last task that can start from the fullest queue at the same place."""
    place = problem.host_place[host]
    victim = -1
    for other in range(len(state.host_up)):
        if other != host and problem.host_place[other] == place and state.startable_tail[other] >= 0:
            cores = problem.core_ptr[other + 1] - problem.core_ptr[other]
            waits = state.busy_cores[other] >= cores
            if waits and (victim < 0 or state.queue_length[other] > state.queue_length[victim]):
                victim = other
    if victim < 0:
        return False
    task = state.startable_tail[victim]
    rank, predicted = state.rank[task], state.predicted[task]
    if not has_room(problem, state, task, host) or not fits(
        problem, state, place, output_size(problem, task)
    ):
        return False
    state.backlog[victim] -= predicted
    state.backlog[host] += predicted
    forget(problem, state, task)
    state.assigned[task] = host
    state.rank[task] = rank
    state.queue_next[task] = -1
    state.queue_previous[task] = -1
    take_stolen(problem, state, task, host)
    begin_task(problem, state, task, host, now)
    state.count[STOLEN] += 1
    return True


@inner
def take_stolen(problem, state, task, host):
    """Into the (empty) front of the thief's queue, so that it starts like any other."""
    from_head = state.queue_head[host]
    state.queue_next[task] = from_head
    if from_head >= 0:
        state.queue_previous[from_head] = task
    else:
        state.queue_tail[host] = task
    state.queue_head[host] = task
    state.queue_length[host] += 1
    make_startable(state, host, task)


@inner
def duplicate(problem, state, host, now):
    """An idle host starts a copy of the task that is latest, of those that run more than twice as long as predicted
    and whose inputs it has; whichever ends first counts."""
    place = problem.host_place[host]
    chosen, latest = -1, 0.0
    for core in range(len(state.core_task)):
        task = state.core_task[core]
        if task < 0 or state.duplicate_host[task] >= 0 or state.run_host[task] == host:
            continue
        late = now - state.run_start[task] - state.predicted[task]
        overdue = now - state.run_start[task] > 2.0 * state.predicted[task]
        if overdue and (chosen < 0 or late > latest) and count_lacking(problem, state, task, place) == 0:
            chosen, latest = task, late
    if chosen < 0 or not has_room(problem, state, chosen, host):
        return
    if not fits(problem, state, place, output_size(problem, chosen)):
        return
    if count_lacking(problem, state, chosen, place) > 0:  # to make room has cost one of them
        return
    core = take_cores(problem, state, chosen, host)
    state.duplicate_host[chosen] = host
    state.duplicate_core[chosen] = core
    state.duplicate_start[chosen] = now
    state.storage_used[problem.place_site[place]] += output_size(problem, chosen)
    change_want(problem, state, chosen, place, 1)
    order(state, START, chosen, host, core)
    state.count[COPIED] += 1


@inner
def replicate(problem, state, now):
    """Copy items that wish for a replica to hosts that are not busy, one transfer a host at a time."""
    places = len(state.place_up)
    head, tail = state.to_replicate_at[0], state.to_replicate_at[1]
    for _ in range(tail - head):
        item = state.to_replicate[state.to_replicate_at[0] % len(state.to_replicate)]
        if state.copies[item] != 1 or not still_needed(problem, state, item):
            state.to_replicate_at[0] += 1
            continue
        target = idle_place(problem, state, item)
        if target < 0:
            return
        state.to_replicate_at[0] += 1
        if state.present[item * places + target] == ABSENT:
            state.replica[item] = target
            state.count[REPLICAS] += 1
            request(problem, state, item, state.holder[item], target, np.inf)


@inner
def idle_place(problem, state, item):
    """The place of a host with nothing to do and nothing on its links, other than the item's holder."""
    places = len(state.place_up)
    for host in range(len(state.host_up)):
        place = problem.host_place[host]
        if (
            not state.host_up[host]
            or place == state.holder[item]
            or state.busy_cores[host] > 0
            or state.queue_head[host] >= 0
        ):
            continue
        at = state.holder[item] * places + place
        idle = True
        for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
            if state.link_busy[problem.route_links[k]] > 0:
                idle = False
        if idle:
            return place
    return -1


@inner
def dispatch(problem, state, now):
    """Start everything that can start now: O(hosts + links + what starts)."""
    hosts = len(state.host_up)
    for host in range(hosts):
        if not state.host_up[host]:
            continue
        serve_host(problem, state, host, now)
        cores = problem.core_ptr[host + 1] - problem.core_ptr[host]
        if problem.policy[STEAL]:
            while state.busy_cores[host] < cores and state.startable_head[host] < 0:
                if not steal(problem, state, host, now):
                    break
        idle = state.busy_cores[host] < cores and state.queue_head[host] < 0
        if problem.policy[DUPLICATE] and idle and state.count[WAITING] == 0:
            duplicate(problem, state, host, now)
    if problem.policy[REPLICATE] > 0:
        replicate(problem, state, now)
    if problem.policy[RELAY]:  # items without a direct way first: they ask for one link more
        serve_link(problem, state, len(state.link_up), now)
    for queue in range(len(state.request_head)):
        if state.request_head[queue] >= 0:
            serve_link(problem, state, queue, now)


@inner
def task_done(problem, state, task, host, now):
    """A task has ended on a host: its outputs are there, a copy elsewhere is cancelled."""
    copy = state.run_host[task] != host
    if state.duplicate_host[task] >= 0:
        loser = state.run_host[task] if copy else state.duplicate_host[task]
        core = state.run_core[task] if copy else state.duplicate_core[task]
        order(state, CANCEL, task, loser, core)
        leave_core(problem, state, task, not copy)
    leave_core(problem, state, task, False)
    made(problem, state, task, host, now)


@inner
def made(problem, state, task, host, now):
    """A task is done, and what it makes lies where it ran."""
    state.done[task] = 1
    state.count[DONE] += 1
    state.last_completion[host] = now
    place = problem.host_place[host]
    places = len(state.place_up)
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        item = problem.writes[k]
        if not problem.no_transfer[item] and state.present[item * places + place] != HERE:
            state.storage_used[problem.place_site[place]] += problem.size[item]
            add_copy(problem, state, item, place)
        if not state.exists[item]:
            come_to_be(problem, state, item)
        if (
            problem.policy[REPLICATE] > 0
            and not problem.no_transfer[item]
            and problem.level[task] % problem.policy[REPLICATE] == 0
        ):
            state.to_replicate[state.to_replicate_at[1] % len(state.to_replicate)] = item
            state.to_replicate_at[1] += 1


@inner
def is_uneven(problem, state):
    """Whether a host has nothing to do while another has more tasks than cores."""
    idle = queued = False
    for host in range(len(state.host_up)):
        if state.host_up[host]:
            cores = problem.core_ptr[host + 1] - problem.core_ptr[host]
            held = state.queue_length[host] + state.busy_cores[host]
            queued = queued or held > cores
            idle = idle or (state.queue_length[host] == 0 and state.busy_cores[host] < cores)
    return idle and queued


@entry
def uneven_now(problem, state):
    """As `is_uneven`, for Python."""
    return is_uneven(problem, state)


@entry
def note_done(problem, state, task, host, now):
    """News from workers that have their own queues: a task is done on a host, wherever it was expected."""
    if state.done[task] or not state.host_up[host]:
        return
    if state.assigned[task] >= 0:
        queue = state.assigned[task]
        forget(problem, state, task)
        state.backlog[queue] -= state.predicted[task]
        change_want(problem, state, task, problem.host_place[queue], -1)
    elif state.missing_inputs[task] == 0:
        out_of_pool(state, task)
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        state.pending_readers[problem.reads[k]] -= 1
    made(problem, state, task, host, now)


@entry
def note_moved(problem, state, item, place):
    """News from workers that fetch data themselves: a copy has arrived at a place."""
    at = item * len(state.place_up) + place
    if (
        not problem.no_transfer[item]
        and state.exists[item]
        and state.place_up[place]
        and state.present[at] != HERE
    ):
        state.storage_used[problem.place_site[place]] += problem.size[item]
        add_copy(problem, state, item, place)
