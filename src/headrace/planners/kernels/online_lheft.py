"""The compiled part of L-HEFT as it runs."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.desk import HERE, RELAY

BUSY_WAY = 2.0
"""A task is moved from a tail only if that pays even where its way takes so many times what free links need."""


@inner
def cores_of(case, host):
    return case.core_ptr[host + 1] - case.core_ptr[host]


@inner
def held_there(case, desk, task, place):
    """Bytes of a task's inputs that lie at a place."""
    places = len(desk.place_up)
    held = 0.0
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        item = case.reads[k]
        if not case.free[item] and desk.present[item * places + place] == HERE and desk.place_up[place]:
            held += case.size[item]
    return held


@inner
def arrival(case, desk, task, place):
    """Seconds to bring what a task lacks to a place, one item after another, from where each lies."""
    places = len(desk.place_up)
    total = 0.0
    for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
        item = case.reads[k]
        if case.free[item] or desk.present[item * places + place] == HERE:
            continue
        source = desk.holder[item]
        if source >= 0:
            at = source * places + place
            if case.rule[RELAY] and not case.pair_seconds[at] < np.inf:
                total += case.far[at] * case.size[item] * 1e-6
            else:
                total += case.pair_latency[at] + case.size[item] * case.pair_seconds[at]
    return total


@inner
def queues_left(case, desk, now, told, overdue):
    """Seconds until each host has worked its queue off: predicted times, less what running tasks have had of theirs.

    A task that is overdue needs `overdue` times as long again as it is late, those behind it all they need. Where
    nobody has `told` when tasks begin, as in real runs, the first of each queue has had the time since the last
    completion there. O(hosts + cores).
    """
    hosts = len(desk.up)
    left = np.zeros(hosts)
    for host in range(hosts):
        had = 0.0
        if told:
            for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
                task = desk.core_task[core]
                if task >= 0 and desk.run_host[task] == host:
                    spent, expected = now - desk.run_start[task], desk.predicted[task]
                    late = max(0.0, spent - expected)
                    had += (min(spent, expected) - overdue * late) / case.cores[task]
        elif desk.q_len[host] > 0:
            had = min(desk.predicted[desk.q_head[host]], now - desk.corrected[host])
        left[host] = max(0.0, desk.backlog[host] - had) / (case.core_ptr[host + 1] - case.core_ptr[host])
    return left


@entry
def traffic_of(case, desk, tasks):
    """Bytes that each task reads, and those that must be moved wherever it runs (equation 3): O(reads * places)."""
    places = len(desk.place_up)
    serving = np.zeros(places, np.bool_)
    for host in range(len(desk.up)):
        if desk.up[host]:
            serving[case.host_place[host]] = True
    total, least = np.zeros(len(tasks)), np.zeros(len(tasks))
    for i in range(len(tasks)):
        task = tasks[i]
        for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
            if not case.free[case.reads[k]]:
                total[i] += case.size[case.reads[k]]
        most = 0.0
        for place in range(places):
            if serving[place]:
                most = max(most, held_there(case, desk, task, place))
        least[i] = max(0.0, total[i] - most)
    return total, least


@inner
def first_to_finish(case, desk, task, needed, left, work, rates):
    """The host where a task ends first, of those that hold `needed` bytes of its inputs; -1: none can run it."""
    best, least = -1, np.inf
    for host in range(len(desk.up)):
        place = case.host_place[host]
        if not desk.up[host] or case.cores[task] > cores_of(case, host):
            continue
        if needed > 0.0 and held_there(case, desk, task, place) < needed:
            continue
        ends = max(left[host], arrival(case, desk, task, place)) + work / rates[host]
        if best < 0 or ends < least:
            best, least = host, ends
    return best


@entry
def place_in_turn(case, desk, tasks, total, least, work, kind, rates, now, told):
    """A host for each task, in the order given; -1 where none has enough cores.

    One that needs no traffic goes to a host that holds all its inputs, others to where they finish first.
    """
    left = queues_left(case, desk, now, told, 0.0)
    chosen = np.empty(len(tasks), np.int32)
    for i in range(len(tasks)):
        task = tasks[i]
        rate = rates[kind[task]]
        best = -1
        if least[i] == 0.0 and total[i] > 0.0:
            best = first_to_finish(case, desk, task, total[i], left, work[task], rate)
        if best < 0:
            best = first_to_finish(case, desk, task, 0.0, left, work[task], rate)
        chosen[i] = best
        if best >= 0:
            left[best] += case.cores[task] * work[task] / rate[best] / cores_of(case, best)
    return chosen


@inner
def longest_queue(case, desk, waiting, left):
    """The host whose queue takes longest, of those with more tasks than cores; -1: none."""
    longest = -1
    for host in range(len(desk.up)):
        more = waiting[host] + desk.busy[host] > cores_of(case, host)
        if desk.up[host] and waiting[host] > 0 and more and (longest < 0 or left[host] > left[longest]):
            longest = host
    return longest


@entry
def rebalance(case, desk, work, kind, rates, now, told, overdue):
    """Tasks from the tail of the longest queue that finish earlier on a core with nothing to do.

    Behind a task that is late a queue is longer (`overdue`): it may be stuck on a host that has slowed down. Each move
    shortens the queue it takes from, so that the next one may take from another: O(cores * hosts).
    """
    room = len(desk.core_task)
    tasks, hosts = np.empty(room, np.int32), np.empty(room, np.int32)
    moved = 0
    left = queues_left(case, desk, now, told, overdue)
    waiting, tail = desk.q_len.copy(), desk.q_tail.copy()
    for host in range(len(desk.up)):
        if not desk.up[host] or desk.q_len[host] > 0:
            continue
        free = cores_of(case, host) - desk.busy[host]
        while free > 0:
            longest = longest_queue(case, desk, waiting, left)
            if longest < 0:
                return tasks[:moved], hosts[:moved]
            task = tail[longest]
            way = BUSY_WAY * arrival(case, desk, task, case.host_place[host])
            here = way + work[task] / rates[kind[task], host]
            if case.cores[task] > free or not here < left[longest]:
                break
            tasks[moved], hosts[moved] = task, host
            moved += 1
            free -= case.cores[task]
            tail[longest] = desk.q_prev[task]
            waiting[longest] -= 1
            left[longest] -= desk.predicted[task] / cores_of(case, longest)
    return tasks[:moved], hosts[:moved]
