"""Hosts, places and links that go and come; what must be made again, and what comes back."""

from __future__ import annotations

import numpy as np

from headrace.core.state import (
    ABSENT,
    CANCEL,
    CUT,
    DELIVERED,
    DONE,
    HERE,
    MOVES,
    NEWS,
    REDONE,
    REQUESTED,
)
from headrace.core.transitions.data import (
    come_to_be,
    end_move,
    find_holder,
    order,
    request,
    still_needed,
    wanted,
)
from headrace.core.transitions.jit import entry, inner
from headrace.core.transitions.queues import (
    change_want,
    into_pool,
    make_startable,
    out_of_pool,
    unassign,
)


@inner
def put_back(problem, state, task):
    """A task that no longer runs waits for a host again; inputs that are gone meanwhile are made again."""
    missing = 0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        state.pending_readers[item] += 1
        if not state.exists[item]:
            missing += 1
    state.missing_inputs[task] = missing
    if missing == 0:
        into_pool(state, task)
    else:
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            if not state.exists[problem.reads[k]]:
                redo(problem, state, problem.reads[k])


@inner
def leave_core(problem, state, task, copy):
    """The task, or its copy, is no longer on its core."""
    host = state.duplicate_host[task] if copy else state.run_host[task]
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if state.core_task[core] == task:
            state.core_task[core] = -1
    state.busy_cores[host] -= problem.cores[task]
    change_want(problem, state, task, problem.host_place[host], -1)
    state.storage_used[problem.place_site[problem.host_place[host]]] -= output_size(problem, task)
    if copy:
        state.duplicate_host[task] = -1
    else:
        state.backlog[host] -= state.predicted[task]
        if state.duplicate_host[task] >= 0:
            state.run_host[task] = state.duplicate_host[task]
            state.run_core[task] = state.duplicate_core[task]
            state.run_start[task] = state.duplicate_start[task]
            state.duplicate_host[task] = -1
            state.backlog[state.run_host[task]] += state.predicted[task]
        else:
            state.run_host[task] = -1


@inner
def output_size(problem, task):
    total = 0.0
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        total += problem.size[problem.writes[k]]
    return total


@inner
def kill(problem, state, task, host):
    """A running task dies with its host; a copy elsewhere goes on."""
    copy = state.duplicate_host[task] == host and state.run_host[task] != host
    core = state.duplicate_core[task] if copy else state.run_core[task]
    order(state, CANCEL, task, host, core)
    leave_core(problem, state, task, copy)
    if state.run_host[task] < 0:
        put_back(problem, state, task)


@inner
def cut(problem, state, move):
    """A transfer is broken off; it is asked for again if it still serves somebody."""
    item, target = state.transfer_item[move], state.transfer_target[move]
    places = len(state.place_up)
    order(state, CUT, move, state.transfer_source[move], target)
    end_move(problem, state, move)
    state.storage_used[problem.place_site[target]] -= problem.size[item]
    if state.present[item * places + target] == HERE:  # made there meanwhile
        return
    state.present[item * places + target] = ABSENT
    if state.place_up[target] and state.copies[item] > 0 and wanted(problem, state, item, target):
        request(problem, state, item, state.holder[item], target, np.nan)


@inner
def vanish(problem, state, item):
    """No copy is left within reach: its maker runs again if needed.

    Readers that have not begun miss it. They leave the queue they are in, so that none waits there for
    work that has no host yet; and nobody waits on a link for it.
    """
    state.exists[item] = 0
    places = len(state.place_up)
    for place in range(places):
        if state.present[item * places + place] == REQUESTED:
            state.present[item * places + place] = ABSENT
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        if state.done[task] or state.run_host[task] >= 0:
            continue
        if state.assigned[task] >= 0:
            unassign(problem, state, task)
        if state.missing_inputs[task] == 0:
            out_of_pool(state, task)
        state.missing_inputs[task] += 1
    redo(problem, state, item)


@inner
def redo(problem, state, item):
    """Run the maker of a lost item again, and the makers of what that one reads, as far back as needed."""
    state.stack[0] = item
    depth = 1
    while depth > 0:
        depth -= 1
        lost = state.stack[depth]
        maker = problem.producer[lost]
        if maker < 0 or not state.done[maker] or not still_needed(problem, state, lost):
            continue
        state.done[maker] = 0
        state.count[DONE] -= 1
        state.count[REDONE] += 1
        missing = 0
        for k in range(problem.read_ptr[maker], problem.read_ptr[maker + 1]):
            read = problem.reads[k]
            state.pending_readers[read] += 1
            if not state.exists[read]:
                missing += 1
                state.stack[depth] = read
                depth += 1
        state.missing_inputs[maker] = missing
        if missing == 0:
            into_pool(state, maker)


@inner
def come_back(problem, state, item):
    """An item that was out of reach is there again: its maker need not run again, if it has not begun."""
    find_holder(state, item)
    come_to_be(problem, state, item)
    maker = problem.producer[item]
    if maker < 0 or state.done[maker] or state.run_host[maker] >= 0:
        return
    for k in range(problem.write_ptr[maker], problem.write_ptr[maker + 1]):
        other = problem.writes[k]
        if not state.exists[other] and still_needed(problem, state, other):
            return
    if state.assigned[maker] >= 0:
        unassign(problem, state, maker)
    if state.missing_inputs[maker] == 0:
        out_of_pool(state, maker)
    state.done[maker] = 1
    state.count[DONE] += 1
    state.count[REDONE] -= 1
    for k in range(problem.read_ptr[maker], problem.read_ptr[maker + 1]):
        state.pending_readers[problem.reads[k]] -= 1


@inner
def lose_place(problem, state, place, wiped):
    """Data at a place is out of reach, for ever if it is wiped. The origin's data outlives its host."""
    if place == problem.origin or not state.place_up[place]:
        return
    places = len(state.place_up)
    state.place_up[place] = 0
    for k in range(state.count[MOVES] - 1, -1, -1):
        move = state.live_transfers[k]
        if state.transfer_target[move] == place or state.transfer_source[move] == place:
            cut(problem, state, move)
    for item in range(len(state.exists)):
        if state.present[item * places + place] != HERE:
            continue
        state.copies[item] -= 1
        if wiped:
            state.present[item * places + place] = ABSENT
            state.storage_used[problem.place_site[place]] -= problem.size[item]
        if state.replica[item] == place:
            state.replica[item] = -1
        if problem.destination[item] == place:
            state.delivered[item] = 0
            state.count[DELIVERED] -= 1
        find_holder(state, item)
        if state.copies[item] == 0 and not problem.no_transfer[item]:
            vanish(problem, state, item)


@inner
def regain_place(problem, state, place):
    """A place is within reach again, with what it still holds."""
    if state.place_up[place]:
        return
    places = len(state.place_up)
    state.place_up[place] = 1
    for item in range(len(state.exists)):
        if state.present[item * places + place] == HERE:
            state.copies[item] += 1
            if problem.destination[item] == place:
                state.delivered[item] = 1
                state.count[DELIVERED] += 1
            if state.copies[item] == 1:
                come_back(problem, state, item)
        elif problem.destination[item] == place and state.copies[item] > 0:
            request(problem, state, item, state.holder[item], place, np.nan)


@entry
def host_left(problem, state, host, wiped):
    """A host is gone, with what it ran, and (wiped) for good with its own data, unless its site keeps them."""
    if not state.host_up[host]:
        return
    state.host_up[host] = 0
    state.count[NEWS] += 1
    place = problem.host_place[host]
    own = problem.place_host[place] == host
    while state.queue_head[host] >= 0:
        unassign(problem, state, state.queue_head[host])
    for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
        if state.core_task[core] >= 0:
            kill(problem, state, state.core_task[core], host)
    state.backlog[host] = 0.0
    if own:
        lose_place(problem, state, place, wiped)


@entry
def host_joined(problem, state, host, now):
    """A host is there (again), with an empty queue; its own data was lost when it left."""
    if state.host_up[host]:
        return
    state.host_up[host] = 1
    state.count[NEWS] += 1
    state.last_completion[host] = now
    state.backlog[host] = 0.0
    regain_place(problem, state, problem.host_place[host])


@entry
def storage_left(problem, state, place):
    """A site's common storage is out of reach; what it holds is kept. Whether it was within reach before."""
    if place == problem.origin or not state.place_up[place]:
        return False
    lose_place(problem, state, place, False)
    return True


@entry
def storage_joined(problem, state, place):
    """A site's common storage is within reach again; whether it was not before."""
    if state.place_up[place]:
        return False
    regain_place(problem, state, place)
    return True


@entry
def link_left(problem, state, link):
    """A link is down: what moves over it is broken off."""
    state.link_up[link] = 0
    state.count[NEWS] += 1
    places = len(state.place_up)
    for k in range(state.count[MOVES] - 1, -1, -1):
        move = state.live_transfers[k]
        at = state.transfer_source[move] * places + state.transfer_target[move]
        for j in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
            if problem.route_links[j] == link:
                cut(problem, state, move)
                break


@entry
def link_joined(problem, state, link):
    state.link_up[link] = 1
    state.count[NEWS] += 1


@entry
def released(problem, state, task):
    """A task may start from now on."""
    state.missing_inputs[task] -= 1
    if state.missing_inputs[task] > 0:
        return
    if state.assigned[task] < 0:
        into_pool(state, task)
    elif state.absent_inputs[task] == 0:
        make_startable(state, state.assigned[task], task)
