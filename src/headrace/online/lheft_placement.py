"""The compiled part of L-HEFT: compute the traffic of ready tasks and place them."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.state import PRESENT
from headrace.core.transitions.balance import arrivals, queues_left
from headrace.core.transitions.dispatch import cores_of
from headrace.core.transitions.lists import tasks_in


@inner
def add_held(problem, state, task, held):
    """Add the bytes of a task's inputs to the places that hold them: O(copies of its inputs)."""
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        item = problem.reads[k]
        record = -1 if problem.no_transfer[item] else state.item_copies[item]
        while record >= 0:
            place = state.copy_place[record]
            if state.copy_status[record] == PRESENT and state.place_up[place]:
                held[place] += state.size[item]
            record = state.copy_next[record]


@inner
def most_held(problem, state, task, held, serving):
    """The most input bytes of a task held by one place with hosts; resets `held` to zero."""
    most = 0.0
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        record = state.item_copies[problem.reads[k]]
        while record >= 0:
            place = state.copy_place[record]
            if serving[place]:
                most = max(most, held[place])
            record = state.copy_next[record]
    clear_held(problem, state, task, held)
    return most


@inner
def clear_held(problem, state, task, held):
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        record = state.item_copies[problem.reads[k]]
        while record >= 0:
            held[state.copy_place[record]] = 0.0
            record = state.copy_next[record]


@inner
def traffic_of(problem, state, tasks):
    """Bytes that each task reads, and the bytes that must be sent at least (equation 3): O(copies of inputs)."""
    places = len(state.place_up)
    serving = np.zeros(places, np.bool_)
    for host in range(len(state.host_up)):
        if state.host_up[host]:
            serving[problem.host_place[host]] = True
    held = np.zeros(places)
    total, least = np.zeros(len(tasks)), np.zeros(len(tasks))
    for i in range(len(tasks)):
        task = tasks[i]
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            if not problem.no_transfer[problem.reads[k]]:
                total[i] += state.size[problem.reads[k]]
        add_held(problem, state, task, held)
        least[i] = max(0.0, total[i] - most_held(problem, state, task, held, serving))
    return total, least


@inner
def first_to_finish(problem, state, task, left, arrive, held, needed, work, rates):
    """The host where a task finishes first among those whose place holds `needed` bytes of its inputs; -1: none."""
    best, least = -1, np.inf
    for host in range(len(state.host_up)):
        place = problem.host_place[host]
        if not state.host_up[host] or problem.cores[task] > cores_of(problem, host):
            continue
        if needed > 0.0 and held[place] < needed:
            continue
        ends = max(left[host], arrive[place]) + work / rates[host]
        if best < 0 or ends < least:
            best, least = host, ends
    return best


@inner
def place_in_turn(problem, state, tasks, total, least, work, speed_class, rates, now, starts_known):
    """Choose a host for each task in the given order; -1 if no host has enough cores.

    A task that needs no traffic goes to a host that holds all its inputs, any other to the host where it finishes
    first. O(tasks * (reads * places + hosts)).
    """
    places = len(state.place_up)
    left = queues_left(problem, state, now, starts_known, 0.0)
    chosen = np.empty(len(tasks), np.int32)
    arrive, held, mark = np.zeros(places), np.zeros(places), np.zeros(places, np.int64)
    stamp = 0
    for i in range(len(tasks)):
        task = tasks[i]
        rate = rates[speed_class[task]]
        stamp = arrivals(problem, state, task, arrive, mark, stamp)
        best = -1
        if least[i] == 0.0 and total[i] > 0.0:
            add_held(problem, state, task, held)
            best = first_to_finish(problem, state, task, left, arrive, held, total[i], work[task], rate)
            clear_held(problem, state, task, held)
        if best < 0:
            best = first_to_finish(problem, state, task, left, arrive, held, 0.0, work[task], rate)
        chosen[i] = best
        if best >= 0:
            left[best] += problem.cores[task] * work[task] / rate[best] / cores_of(problem, best)
    return chosen


@inner
def by_rank(tasks, level, least, seconds):
    """Positions of tasks by level, then least traffic, then longest run time, then number."""
    order = np.argsort(tasks, kind="mergesort")
    order = order[np.argsort(-seconds[order], kind="mergesort")]
    order = order[np.argsort(least[order], kind="mergesort")]
    return order[np.argsort(level[order], kind="mergesort")]


@entry
def place_ready(problem, state, work, speed_class, rates, mean, now, starts_known):
    """Ready tasks without a host, by rank, each with its host; those that no host can run now are left out.

    `mean` are the seconds that a unit of work of each speed class takes on average.
    """
    ready = tasks_in(state, len(state.host_up))
    total, least = traffic_of(problem, state, ready)
    order = by_rank(ready, problem.level[ready], least, work[ready] * mean[speed_class[ready]])
    tasks = ready[order]
    hosts = place_in_turn(
        problem, state, tasks, total[order], least[order], work, speed_class, rates, now, starts_known
    )
    runnable = hosts >= 0
    return tasks[runnable], hosts[runnable]


@entry
def backlog_and_arrivals(problem, state, tasks, now, starts_known):
    """What L-HEFT estimates finishes by: seconds until each host has worked off its backlog, and [tasks, hosts] seconds
    until the inputs of each task could be there. O(tasks * (reads * places + hosts))."""
    places, hosts = len(state.place_up), len(state.host_up)
    arrive, mark = np.zeros(places), np.zeros(places, np.int64)
    seconds = np.empty((len(tasks), hosts))
    stamp = 0
    for i in range(len(tasks)):
        stamp = arrivals(problem, state, tasks[i], arrive, mark, stamp)
        for host in range(hosts):
            seconds[i, host] = arrive[problem.host_place[host]]
    return queues_left(problem, state, now, starts_known, 0.0), seconds
