"""The compiled part of L-HEFT as it runs."""

from __future__ import annotations

import numpy as np

from headrace.core.state import HERE, RELAY
from headrace.core.transitions.jit import entry, inner

BUSY_WAY = 2.0
"""A task is moved from a tail only if that pays even where its way takes so many times what free links need."""


@inner
def cores_of(problem, host):
    return problem.core_ptr[host + 1] - problem.core_ptr[host]


@inner
def held_there(problem, state, task, place):
    """Bytes of a task's inputs that lie at a place."""
    places = len(state.place_up)
    held = 0.0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if (
            not problem.no_transfer[item]
            and state.present[item * places + place] == HERE
            and state.place_up[place]
        ):
            held += problem.size[item]
    return held


@inner
def arrival(problem, state, task, place):
    """Seconds to bring what a task lacks to a place, one item after another, from where each lies."""
    places = len(state.place_up)
    total = 0.0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        if problem.no_transfer[item] or state.present[item * places + place] == HERE:
            continue
        source = state.holder[item]
        if source >= 0:
            at = source * places + place
            if problem.policy[RELAY] and not problem.route_seconds_per_byte[at] < np.inf:
                total += problem.relay_cost[at] * problem.size[item] * 1e-6
            else:
                total += problem.route_latency[at] + problem.size[item] * problem.route_seconds_per_byte[at]
    return total


@inner
def queues_left(problem, state, now, told, overdue):
    """Seconds until each host has worked its queue off: predicted times, less what running tasks have had of theirs.

    A task that is overdue needs `overdue` times as long again as it is late, those behind it all they need. Where
    nobody has `told` when tasks begin, as in real runs, the first of each queue has had the time since the last
    completion there. O(hosts + cores).
    """
    hosts = len(state.host_up)
    left = np.zeros(hosts)
    for host in range(hosts):
        had = 0.0
        if told:
            for core in range(problem.core_ptr[host], problem.core_ptr[host + 1]):
                task = state.core_task[core]
                if task >= 0 and state.run_host[task] == host:
                    spent, expected = now - state.run_start[task], state.predicted[task]
                    late = max(0.0, spent - expected)
                    had += (min(spent, expected) - overdue * late) / problem.cores[task]
        elif state.queue_length[host] > 0:
            had = min(state.predicted[state.queue_head[host]], now - state.last_completion[host])
        left[host] = max(0.0, state.backlog[host] - had) / (
            problem.core_ptr[host + 1] - problem.core_ptr[host]
        )
    return left


@entry
def traffic_of(problem, state, tasks):
    """Bytes that each task reads, and those that must be moved wherever it runs (equation 3): O(reads * places)."""
    places = len(state.place_up)
    serving = np.zeros(places, np.bool_)
    for host in range(len(state.host_up)):
        if state.host_up[host]:
            serving[problem.host_place[host]] = True
    total, least = np.zeros(len(tasks)), np.zeros(len(tasks))
    for i in range(len(tasks)):
        task = tasks[i]
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            if not problem.no_transfer[problem.reads[k]]:
                total[i] += problem.size[problem.reads[k]]
        most = 0.0
        for place in range(places):
            if serving[place]:
                most = max(most, held_there(problem, state, task, place))
        least[i] = max(0.0, total[i] - most)
    return total, least


@inner
def first_to_finish(problem, state, task, needed, left, work, rates):
    """The host where a task ends first, of those that hold `needed` bytes of its inputs; -1: none can run it."""
    best, least = -1, np.inf
    for host in range(len(state.host_up)):
        place = problem.host_place[host]
        if not state.host_up[host] or problem.cores[task] > cores_of(problem, host):
            continue
        if needed > 0.0 and held_there(problem, state, task, place) < needed:
            continue
        ends = max(left[host], arrival(problem, state, task, place)) + work / rates[host]
        if best < 0 or ends < least:
            best, least = host, ends
    return best


@entry
def place_in_turn(problem, state, tasks, total, least, work, kind, rates, now, told):
    """A host for each task, in the order given; -1 where none has enough cores.

    One that needs no traffic goes to a host that holds all its inputs, others to where they finish first.
    """
    left = queues_left(problem, state, now, told, 0.0)
    chosen = np.empty(len(tasks), np.int32)
    for i in range(len(tasks)):
        task = tasks[i]
        rate = rates[kind[task]]
        best = -1
        if least[i] == 0.0 and total[i] > 0.0:
            best = first_to_finish(problem, state, task, total[i], left, work[task], rate)
        if best < 0:
            best = first_to_finish(problem, state, task, 0.0, left, work[task], rate)
        chosen[i] = best
        if best >= 0:
            left[best] += problem.cores[task] * work[task] / rate[best] / cores_of(problem, best)
    return chosen


@inner
def longest_queue(problem, state, waiting, left):
    """The host whose queue takes longest, of those with more tasks than cores; -1: none."""
    longest = -1
    for host in range(len(state.host_up)):
        more = waiting[host] + state.busy_cores[host] > cores_of(problem, host)
        if state.host_up[host] and waiting[host] > 0 and more and (longest < 0 or left[host] > left[longest]):
            longest = host
    return longest


@entry
def rebalance(problem, state, work, kind, rates, now, told, overdue):
    """Tasks from the tail of the longest queue that finish earlier on a core with nothing to do.

    Behind a task that is late a queue is longer (`overdue`): it may be stuck on a host that has slowed down. Each move
    shortens the queue it takes from, so that the next one may take from another: O(cores * hosts).
    """
    room = len(state.core_task)
    tasks, hosts = np.empty(room, np.int32), np.empty(room, np.int32)
    moved = 0
    left = queues_left(problem, state, now, told, overdue)
    waiting, tail = state.queue_length.copy(), state.queue_tail.copy()
    for host in range(len(state.host_up)):
        if not state.host_up[host] or state.queue_length[host] > 0:
            continue
        free = cores_of(problem, host) - state.busy_cores[host]
        while free > 0:
            longest = longest_queue(problem, state, waiting, left)
            if longest < 0:
                return tasks[:moved], hosts[:moved]
            task = tail[longest]
            way = BUSY_WAY * arrival(problem, state, task, problem.host_place[host])
            here = way + work[task] / rates[kind[task], host]
            if problem.cores[task] > free or not here < left[longest]:
                break
            tasks[moved], hosts[moved] = task, host
            moved += 1
            free -= problem.cores[task]
            tail[longest] = state.queue_previous[task]
            waiting[longest] -= 1
            left[longest] -= state.predicted[task] / cores_of(problem, longest)
    return tasks[:moved], hosts[:moved]
