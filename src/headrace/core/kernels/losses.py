"""Hosts, places and links that go and come; what must be made again, and what comes back."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.data import (
    come_to_be,
    end_move,
    find_holder,
    order,
    request,
    still_needed,
    wanted,
)
from headrace.core.kernels.desk import (
    ABSENT,
    ASKED,
    CANCEL,
    CUT,
    DELIVERED,
    DONE,
    HERE,
    MOVES,
    NEWS,
    REDONE,
)
from headrace.core.kernels.queues import (
    change_want,
    into_pool,
    make_startable,
    out_of_pool,
    unassign,
)


@inner
def put_back(case, desk, task):
    """A task that no longer runs waits for a host again; inputs that are gone meanwhile are made again."""
    missing = 0
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        item = case.reads[k]
        desk.usage[item] += 1
        if not desk.born[item]:
            missing += 1
    desk.missing[task] = missing
    if missing == 0:
        into_pool(desk, task)
    else:
        for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
            if not desk.born[case.reads[k]]:
                redo(case, desk, case.reads[k])


@inner
def leave_core(case, desk, task, copy):
    """The task, or its copy, is no longer on its core."""
    host = desk.dup_host[task] if copy else desk.run_host[task]
    for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
        if desk.core_task[core] == task:
            desk.core_task[core] = -1
    desk.busy[host] -= case.cores[task]
    change_want(case, desk, task, case.host_place[host], -1)
    desk.used[case.place_site[case.host_place[host]]] -= output_size(case, task)
    if copy:
        desk.dup_host[task] = -1
    else:
        desk.backlog[host] -= desk.predicted[task]
        if desk.dup_host[task] >= 0:
            desk.run_host[task] = desk.dup_host[task]
            desk.run_core[task] = desk.dup_core[task]
            desk.run_start[task] = desk.dup_start[task]
            desk.dup_host[task] = -1
            desk.backlog[desk.run_host[task]] += desk.predicted[task]
        else:
            desk.run_host[task] = -1


@inner
def output_size(case, task):
    total = 0.0
    for k in range(case.write_ptr[task], case.write_ptr[task + 1]):
        total += case.size[case.writes[k]]
    return total


@inner
def kill(case, desk, task, host):
    """A running task dies with its host; a copy elsewhere goes on."""
    copy = desk.dup_host[task] == host and desk.run_host[task] != host
    core = desk.dup_core[task] if copy else desk.run_core[task]
    order(desk, CANCEL, task, host, core)
    leave_core(case, desk, task, copy)
    if desk.run_host[task] < 0:
        put_back(case, desk, task)


@inner
def cut(case, desk, move):
    """A transfer is broken off; it is asked for again if it still serves somebody."""
    item, target = desk.mv_item[move], desk.mv_target[move]
    places = len(desk.place_up)
    order(desk, CUT, move, desk.mv_source[move], target)
    end_move(case, desk, move)
    desk.used[case.place_site[target]] -= case.size[item]
    if desk.present[item * places + target] == HERE:  # made there meanwhile
        return
    desk.present[item * places + target] = ABSENT
    if desk.place_up[target] and desk.copies[item] > 0 and wanted(case, desk, item, target):
        request(case, desk, item, desk.holder[item], target, np.nan)


@inner
def vanish(case, desk, item):
    """No copy is left within reach: its maker runs again if needed.

    Readers that have not begun miss it. They leave the queue they are in, so that none waits there for
    work that has no host yet; and nobody waits on a link for it.
    """
    desk.born[item] = 0
    places = len(desk.place_up)
    for place in range(places):
        if desk.present[item * places + place] == ASKED:
            desk.present[item * places + place] = ABSENT
    for k in range(case.reader_ptr[item], case.reader_ptr[item + 1]):
        task = case.readers[k]
        if desk.done[task] or desk.run_host[task] >= 0:
            continue
        if desk.assigned[task] >= 0:
            unassign(case, desk, task)
        if desk.missing[task] == 0:
            out_of_pool(desk, task)
        desk.missing[task] += 1
    redo(case, desk, item)


@inner
def redo(case, desk, item):
    """Run the maker of a lost item again, and the makers of what that one reads, as far back as needed."""
    desk.stack[0] = item
    depth = 1
    while depth > 0:
        depth -= 1
        lost = desk.stack[depth]
        maker = case.producer[lost]
        if maker < 0 or not desk.done[maker] or not still_needed(case, desk, lost):
            continue
        desk.done[maker] = 0
        desk.count[DONE] -= 1
        desk.count[REDONE] += 1
        missing = 0
        for k in range(case.read_ptr[maker], case.read_ptr[maker + 1]):
            read = case.reads[k]
            desk.usage[read] += 1
            if not desk.born[read]:
                missing += 1
                desk.stack[depth] = read
                depth += 1
        desk.missing[maker] = missing
        if missing == 0:
            into_pool(desk, maker)


@inner
def come_back(case, desk, item):
    """An item that was out of reach is there again: its maker need not run again, if it has not begun."""
    find_holder(desk, item)
    come_to_be(case, desk, item)
    maker = case.producer[item]
    if maker < 0 or desk.done[maker] or desk.run_host[maker] >= 0:
        return
    for k in range(case.write_ptr[maker], case.write_ptr[maker + 1]):
        other = case.writes[k]
        if not desk.born[other] and still_needed(case, desk, other):
            return
    if desk.assigned[maker] >= 0:
        unassign(case, desk, maker)
    if desk.missing[maker] == 0:
        out_of_pool(desk, maker)
    desk.done[maker] = 1
    desk.count[DONE] += 1
    desk.count[REDONE] -= 1
    for k in range(case.read_ptr[maker], case.read_ptr[maker + 1]):
        desk.usage[case.reads[k]] -= 1


@inner
def lose_place(case, desk, place, wiped):
    """Data at a place is out of reach, for ever if it is wiped. The origin's data outlives its host."""
    if place == case.origin or not desk.place_up[place]:
        return
    places = len(desk.place_up)
    desk.place_up[place] = 0
    for k in range(desk.count[MOVES] - 1, -1, -1):
        move = desk.mv_live[k]
        if desk.mv_target[move] == place or desk.mv_source[move] == place:
            cut(case, desk, move)
    for item in range(len(desk.born)):
        if desk.present[item * places + place] != HERE:
            continue
        desk.copies[item] -= 1
        if wiped:
            desk.present[item * places + place] = ABSENT
            desk.used[case.place_site[place]] -= case.size[item]
        if desk.replica[item] == place:
            desk.replica[item] = -1
        if case.goal[item] == place:
            desk.delivered[item] = 0
            desk.count[DELIVERED] -= 1
        find_holder(desk, item)
        if desk.copies[item] == 0 and not case.free[item]:
            vanish(case, desk, item)


@inner
def regain_place(case, desk, place):
    """A place is within reach again, with what it still holds."""
    if desk.place_up[place]:
        return
    places = len(desk.place_up)
    desk.place_up[place] = 1
    for item in range(len(desk.born)):
        if desk.present[item * places + place] == HERE:
            desk.copies[item] += 1
            if case.goal[item] == place:
                desk.delivered[item] = 1
                desk.count[DELIVERED] += 1
            if desk.copies[item] == 1:
                come_back(case, desk, item)
        elif case.goal[item] == place and desk.copies[item] > 0:
            request(case, desk, item, desk.holder[item], place, np.nan)


@entry
def host_left(case, desk, host, wiped):
    """A host is gone, with what it ran, and (wiped) for good with its own data, unless its site keeps them."""
    if not desk.up[host]:
        return
    desk.up[host] = 0
    desk.count[NEWS] += 1
    place = case.host_place[host]
    own = case.place_host[place] == host
    while desk.q_head[host] >= 0:
        unassign(case, desk, desk.q_head[host])
    for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
        if desk.core_task[core] >= 0:
            kill(case, desk, desk.core_task[core], host)
    desk.backlog[host] = 0.0
    if own:
        lose_place(case, desk, place, wiped)


@entry
def host_joined(case, desk, host, now):
    """A host is there (again), with an empty queue; its own data was lost when it left."""
    if desk.up[host]:
        return
    desk.up[host] = 1
    desk.count[NEWS] += 1
    desk.corrected[host] = now
    desk.backlog[host] = 0.0
    regain_place(case, desk, case.host_place[host])


@entry
def storage_left(case, desk, place):
    """A site's common storage is out of reach; what it holds is kept. Whether it was within reach before."""
    if place == case.origin or not desk.place_up[place]:
        return False
    lose_place(case, desk, place, False)
    return True


@entry
def storage_joined(case, desk, place):
    """A site's common storage is within reach again; whether it was not before."""
    if desk.place_up[place]:
        return False
    regain_place(case, desk, place)
    return True


@entry
def link_left(case, desk, link):
    """A link is down: what moves over it is broken off."""
    desk.link_up[link] = 0
    desk.count[NEWS] += 1
    places = len(desk.place_up)
    for k in range(desk.count[MOVES] - 1, -1, -1):
        move = desk.mv_live[k]
        at = desk.mv_source[move] * places + desk.mv_target[move]
        for j in range(case.pair_ptr[at], case.pair_ptr[at + 1]):
            if case.pair_links[j] == link:
                cut(case, desk, move)
                break


@entry
def link_joined(case, desk, link):
    desk.link_up[link] = 1
    desk.count[NEWS] += 1


@entry
def released(case, desk, task):
    """A task may start from now on."""
    desk.missing[task] -= 1
    if desk.missing[task] > 0:
        return
    if desk.assigned[task] < 0:
        into_pool(desk, task)
    elif desk.lacking[task] == 0:
        make_startable(desk, desk.assigned[task], task)
