"""What starts next: tasks on free cores, transfers on free links; what follows when a task ends."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.data import (
    add_copy,
    ask_ahead,
    come_to_be,
    fits,
    order,
    request,
    serve_link,
    still_needed,
)
from headrace.core.kernels.desk import (
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
from headrace.core.kernels.losses import leave_core, output_size
from headrace.core.kernels.queues import (
    change_want,
    count_lacking,
    forget,
    make_startable,
    out_of_pool,
)


@inner
def take_cores(case, desk, task, host):
    """Put a task on as many free cores of a host as it needs; the first of them."""
    first, left = -1, case.cores[task]
    for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
        if left > 0 and desk.core_task[core] < 0:
            desk.core_task[core] = task
            left -= 1
            if first < 0:
                first = core - case.core_ptr[host]
    desk.busy[host] += case.cores[task]
    return first


@inner
def has_room(case, desk, task, host):
    return desk.busy[host] + case.cores[task] <= case.core_ptr[host + 1] - case.core_ptr[host]


@inner
def begin_task(case, desk, task, host, now):
    """Start a queued task on a free core of its host."""
    core = take_cores(case, desk, task, host)
    forget(case, desk, task)
    desk.run_host[task] = host
    desk.run_core[task] = core
    desk.run_start[task] = now
    desk.used[case.place_site[case.host_place[host]]] += output_size(case, task)
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        desk.usage[case.reads[k]] -= 1
    order(desk, START, task, host, core)


@inner
def serve_host(case, desk, host, now):
    """Start what can start: by rank, or only the head of the queue where order is strict."""
    cores = case.core_ptr[host + 1] - case.core_ptr[host]
    while desk.busy[host] < cores:
        task = desk.s_head[host]
        if (
            task < 0
            or not has_room(case, desk, task, host)
            or (case.rule[STRICT] and task != desk.q_head[host])
        ):
            break
        if not fits(case, desk, case.host_place[host], output_size(case, task)):
            break
        begin_task(case, desk, task, host, now)
    ask_ahead(case, desk, host)


@inner
def steal(case, desk, host, now):
    """An idle host takes the last task that can start from the fullest queue at the same place."""
    place = case.host_place[host]
    victim = -1
    for other in range(len(desk.up)):
        if other != host and case.host_place[other] == place and desk.s_tail[other] >= 0:
            cores = case.core_ptr[other + 1] - case.core_ptr[other]
            waits = desk.busy[other] >= cores
            if waits and (victim < 0 or desk.q_len[other] > desk.q_len[victim]):
                victim = other
    if victim < 0:
        return False
    task = desk.s_tail[victim]
    rank, predicted = desk.rank[task], desk.predicted[task]
    if not has_room(case, desk, task, host) or not fits(case, desk, place, output_size(case, task)):
        return False
    desk.backlog[victim] -= predicted
    desk.backlog[host] += predicted
    forget(case, desk, task)
    desk.assigned[task] = host
    desk.rank[task] = rank
    desk.q_next[task] = -1
    desk.q_prev[task] = -1
    take_stolen(case, desk, task, host)
    begin_task(case, desk, task, host, now)
    desk.count[STOLEN] += 1
    return True


@inner
def take_stolen(case, desk, task, host):
    """Into the (empty) front of the thief's queue, so that it starts like any other."""
    from_head = desk.q_head[host]
    desk.q_next[task] = from_head
    if from_head >= 0:
        desk.q_prev[from_head] = task
    else:
        desk.q_tail[host] = task
    desk.q_head[host] = task
    desk.q_len[host] += 1
    make_startable(desk, host, task)


@inner
def duplicate(case, desk, host, now):
    """An idle host starts a copy of the task that is latest, of those that run more than twice as long as predicted
    and whose inputs it has; whichever ends first counts."""
    place = case.host_place[host]
    chosen, latest = -1, 0.0
    for core in range(len(desk.core_task)):
        task = desk.core_task[core]
        if task < 0 or desk.dup_host[task] >= 0 or desk.run_host[task] == host:
            continue
        late = now - desk.run_start[task] - desk.predicted[task]
        overdue = now - desk.run_start[task] > 2.0 * desk.predicted[task]
        if overdue and (chosen < 0 or late > latest) and count_lacking(case, desk, task, place) == 0:
            chosen, latest = task, late
    if chosen < 0 or not has_room(case, desk, chosen, host):
        return
    if not fits(case, desk, place, output_size(case, chosen)):
        return
    if count_lacking(case, desk, chosen, place) > 0:  # to make room has cost one of them
        return
    core = take_cores(case, desk, chosen, host)
    desk.dup_host[chosen] = host
    desk.dup_core[chosen] = core
    desk.dup_start[chosen] = now
    desk.used[case.place_site[place]] += output_size(case, chosen)
    change_want(case, desk, chosen, place, 1)
    order(desk, START, chosen, host, core)
    desk.count[COPIED] += 1


@inner
def replicate(case, desk, now):
    """Copy items that wish for a replica to hosts that are not busy, one transfer a host at a time."""
    places = len(desk.place_up)
    head, tail = desk.wish_at[0], desk.wish_at[1]
    for _ in range(tail - head):
        item = desk.wish[desk.wish_at[0] % len(desk.wish)]
        if desk.copies[item] != 1 or not still_needed(case, desk, item):
            desk.wish_at[0] += 1
            continue
        target = idle_place(case, desk, item)
        if target < 0:
            return
        desk.wish_at[0] += 1
        if desk.present[item * places + target] == ABSENT:
            desk.replica[item] = target
            desk.count[REPLICAS] += 1
            request(case, desk, item, desk.holder[item], target, np.inf)


@inner
def idle_place(case, desk, item):
    """The place of a host with nothing to do and nothing on its links, other than the item's holder."""
    places = len(desk.place_up)
    for host in range(len(desk.up)):
        place = case.host_place[host]
        if not desk.up[host] or place == desk.holder[item] or desk.busy[host] > 0 or desk.q_head[host] >= 0:
            continue
        at = desk.holder[item] * places + place
        idle = True
        for k in range(case.pair_ptr[at], case.pair_ptr[at + 1]):
            if desk.link_busy[case.pair_links[k]] > 0:
                idle = False
        if idle:
            return place
    return -1


@inner
def dispatch(case, desk, now):
    """Start everything that can start now: O(hosts + links + what starts)."""
    hosts = len(desk.up)
    for host in range(hosts):
        if not desk.up[host]:
            continue
        serve_host(case, desk, host, now)
        cores = case.core_ptr[host + 1] - case.core_ptr[host]
        if case.rule[STEAL]:
            while desk.busy[host] < cores and desk.s_head[host] < 0:
                if not steal(case, desk, host, now):
                    break
        idle = desk.busy[host] < cores and desk.q_head[host] < 0
        if case.rule[DUPLICATE] and idle and desk.count[WAITING] == 0:
            duplicate(case, desk, host, now)
    if case.rule[REPLICATE] > 0:
        replicate(case, desk, now)
    if case.rule[RELAY]:  # items without a direct way first: they ask for one link more
        serve_link(case, desk, len(desk.link_up), now)
    for queue in range(len(desk.r_head)):
        if desk.r_head[queue] >= 0:
            serve_link(case, desk, queue, now)


@inner
def task_done(case, desk, task, host, now):
    """A task has ended on a host: its outputs are there, a copy elsewhere is cancelled."""
    copy = desk.run_host[task] != host
    if desk.dup_host[task] >= 0:
        loser = desk.run_host[task] if copy else desk.dup_host[task]
        core = desk.run_core[task] if copy else desk.dup_core[task]
        order(desk, CANCEL, task, loser, core)
        leave_core(case, desk, task, not copy)
    leave_core(case, desk, task, False)
    made(case, desk, task, host, now)


@inner
def made(case, desk, task, host, now):
    """A task is done, and what it makes lies where it ran."""
    desk.done[task] = 1
    desk.count[DONE] += 1
    desk.corrected[host] = now
    place = case.host_place[host]
    places = len(desk.place_up)
    for k in range(case.write_ptr[task], case.write_ptr[task + 1]):
        item = case.writes[k]
        if not case.free[item] and desk.present[item * places + place] != HERE:
            desk.used[case.place_site[place]] += case.size[item]
            add_copy(case, desk, item, place)
        if not desk.born[item]:
            come_to_be(case, desk, item)
        if case.rule[REPLICATE] > 0 and not case.free[item] and case.level[task] % case.rule[REPLICATE] == 0:
            desk.wish[desk.wish_at[1] % len(desk.wish)] = item
            desk.wish_at[1] += 1


@inner
def is_uneven(case, desk):
    """Whether a host has nothing to do while another has more tasks than cores."""
    idle = queued = False
    for host in range(len(desk.up)):
        if desk.up[host]:
            cores = case.core_ptr[host + 1] - case.core_ptr[host]
            held = desk.q_len[host] + desk.busy[host]
            queued = queued or held > cores
            idle = idle or (desk.q_len[host] == 0 and desk.busy[host] < cores)
    return idle and queued


@entry
def uneven_now(case, desk):
    """As `is_uneven`, for Python."""
    return is_uneven(case, desk)


@entry
def note_done(case, desk, task, host, now):
    """News from workers that have their own queues: a task is done on a host, wherever it was expected."""
    if desk.done[task] or not desk.up[host]:
        return
    if desk.assigned[task] >= 0:
        queue = desk.assigned[task]
        forget(case, desk, task)
        desk.backlog[queue] -= desk.predicted[task]
        change_want(case, desk, task, case.host_place[queue], -1)
    elif desk.missing[task] == 0:
        out_of_pool(desk, task)
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        desk.usage[case.reads[k]] -= 1
    made(case, desk, task, host, now)


@entry
def note_moved(case, desk, item, place):
    """News from workers that fetch data themselves: a copy has arrived at a place."""
    at = item * len(desk.place_up) + place
    if not case.free[item] and desk.born[item] and desk.place_up[place] and desk.present[at] != HERE:
        desk.used[case.place_site[place]] += case.size[item]
        add_copy(case, desk, item, place)
