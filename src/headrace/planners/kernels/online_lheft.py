"""The compiled part of L-HEFT as it runs."""

from __future__ import annotations

import numpy as np

from headrace.core.kernels.desk import HERE, RELAY
from headrace.core.kernels.jit import entry, inner


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
def queues_left(case, desk, now):
    """Seconds until each host has worked its queue off: predicted times, less what running tasks have had of theirs.

    A task that is overdue counts nothing, those behind it all they need. Where nobody says when tasks begin, as in
    real runs, the first of each queue has had the time since the last completion there. O(hosts + cores).
    """
    hosts = len(desk.up)
    left = np.zeros(hosts)
    told = False
    for host in range(hosts):
        told = told or desk.busy[host] > 0
    for host in range(hosts):
        had = 0.0
        if told:
            for core in range(case.core_ptr[host], case.core_ptr[host + 1]):
                task = desk.core_task[core]
                if task >= 0 and desk.run_host[task] == host:
                    had += min(desk.predicted[task], now - desk.run_start[task])
        elif desk.q_len[host] > 0:
            had = min(desk.predicted[desk.q_head[host]], now - desk.corrected[host])
        left[host] = max(0.0, desk.backlog[host] - had) / (case.core_ptr[host + 1] - case.core_ptr[host])
    return left


@entry
def place_ready(case, desk, tasks, work, kind, rates, now):
    """Ready tasks by rank, each with its host."""
    hosts = len(desk.up)
    places = len(desk.place_up)
    count = len(tasks)
    traffic = np.empty(count)
    total = np.empty(count)
    serving = np.zeros(places, np.bool_)
    for host in range(hosts):
        if desk.up[host]:
            serving[case.host_place[host]] = True
    for i in range(count):
        task = tasks[i]
        whole = 0.0
        for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
            if not case.free[case.reads[k]]:
                whole += case.size[case.reads[k]]
        most = 0.0
        for place in range(places):
            if serving[place]:
                most = max(most, held_there(case, desk, task, place))
        total[i] = whole
        traffic[i] = max(0.0, whole - most)
    key = np.empty(count, np.int64)
    for i in range(count):
        key[i] = i
    # By level, then traffic, then number: three stable sorts from the last key to the first.
    key = key[np.argsort(tasks[key], kind="mergesort")]
    key = key[np.argsort(traffic[key], kind="mergesort")]
    key = key[np.argsort(case.level[tasks[key]], kind="mergesort")]
    left = queues_left(case, desk, now)
    chosen = np.empty(count, np.int32)
    ordered = np.empty(count, np.int32)
    for i in range(count):
        at = key[i]
        task = tasks[at]
        stays = traffic[at] <= 0.0 and total[at] > 0.0
        best, least = -1, np.inf
        for host in range(hosts):
            if not desk.up[host]:
                continue
            place = case.host_place[host]
            if stays and held_there(case, desk, task, place) < total[at]:
                continue
            ends = max(left[host], arrival(case, desk, task, place)) + work[task] / rates[kind[task], host]
            if best < 0 or ends < least:
                best, least = host, ends
        ordered[i] = task
        chosen[i] = best
        left[best] += work[task] / rates[kind[task], best] / (case.core_ptr[best + 1] - case.core_ptr[best])
    return ordered, chosen


@entry
def rebalance(case, desk, work, kind, rates, now):
    """Tasks from the tail of the longest queue that finish earlier on a host with nothing to do."""
    hosts = len(desk.up)
    moved_tasks = np.empty(hosts, np.int32)
    moved_hosts = np.empty(hosts, np.int32)
    moved = 0
    left = queues_left(case, desk, now)
    for host in range(hosts):
        cores = case.core_ptr[host + 1] - case.core_ptr[host]
        if not desk.up[host] or desk.q_len[host] > 0 or desk.busy[host] >= cores:
            continue
        longest, length = -1, 0.0
        for other in range(hosts):
            held = desk.q_len[other] + desk.busy[other]
            if (
                desk.up[other]
                and desk.q_len[other] > 0
                and held > case.core_ptr[other + 1] - case.core_ptr[other]
            ):
                taken = False
                for k in range(moved):
                    if moved_tasks[k] == desk.q_tail[other]:
                        taken = True
                if not taken and left[other] > length:
                    longest, length = other, left[other]
        if longest < 0:
            break
        task = desk.q_tail[longest]
        here = arrival(case, desk, task, case.host_place[host]) + work[task] / rates[kind[task], host]
        if here < length:
            moved_tasks[moved] = task
            moved_hosts[moved] = host
            moved += 1
    return moved_tasks[:moved], moved_hosts[:moved]
