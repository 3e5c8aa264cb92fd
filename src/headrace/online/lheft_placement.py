"""The compiled part of L-HEFT: compute the traffic of ready tasks and place them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.arrays.compiling import entry, inner, leaf
from headrace.core.state import PRESENT
from headrace.core.transitions.balance import arrivals, least_queues_left, queue_left, queues_left
from headrace.core.transitions.lists import tasks_in
from headrace.core.transitions.load import cores_of
from headrace.model.graph import Bools, Floats, Ints


class Batch(NamedTuple):
    """Tasks to be placed, in this order, and the hosts chosen for them."""

    tasks: Ints
    total: Floats
    """Bytes that each reads."""
    least: Floats
    """Bytes that must be sent at least."""
    hosts: Ints


class Scratch(NamedTuple):
    """Arrays that are filled for each task or each batch."""

    left: Floats
    """Seconds until each host has worked off its backlog; -1: not yet known."""
    bound: Floats
    """At least so many."""
    arrive: Floats
    """Seconds until the inputs of a task are at each place."""
    runs: Floats
    """Seconds that a task takes on each host."""
    kept: Floats
    held: Floats
    """Bytes of a task's inputs at each place; zero between tasks."""
    serving: Bools
    """Places of hosts that are up."""


@leaf
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


@leaf
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


@leaf
def clear_held(problem, state, task, held):
    for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
        record = state.item_copies[problem.reads[k]]
        while record >= 0:
            held[state.copy_place[record]] = 0.0
            record = state.copy_next[record]


@leaf
def traffic_of(problem, state, tasks, scratch, total, least):
    """Bytes that each task reads, and the bytes that must be sent at least (equation 3): O(copies of inputs)."""
    scratch.serving[:] = False
    for host in range(len(state.host_up)):
        if state.host_up[host]:
            scratch.serving[problem.host_place[host]] = True
    for i in range(len(tasks)):
        task = tasks[i]
        total[i] = 0.0
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            if not problem.no_transfer[problem.reads[k]]:
                total[i] += state.size[problem.reads[k]]
        add_held(problem, state, task, scratch.held)
        least[i] = max(0.0, total[i] - most_held(problem, state, task, scratch.held, scratch.serving))


@leaf
def first_to_finish(problem, state, task, scratch, needed, now, starts_known):
    """The host where a task finishes first among those whose place holds `needed` bytes of its inputs; -1: none.

    Most hosts are ruled out by a lower bound of their backlogs; the backlog itself is computed when it first matters.
    """
    best, least = -1, np.inf
    left, bound, arrive, runs = scratch.left, scratch.bound, scratch.arrive, scratch.runs
    for host in range(len(left)):
        place = problem.host_place[host]
        if max(bound[host], arrive[place]) + runs[host] >= least and best >= 0:
            continue
        if not state.host_up[host] or problem.cores[task] > cores_of(problem, host):
            continue
        if needed > 0.0 and scratch.held[place] < needed:
            continue
        if left[host] < 0.0:
            left[host] = queue_left(problem, state, host, now, starts_known, 0.0)
            bound[host] = left[host]
        ends = max(left[host], arrive[place]) + runs[host]
        if best < 0 or ends < least:
            best, least = host, ends
    return best


@leaf
def run_times(work, rates, runs):
    """Seconds that a task takes on each host."""
    for host in range(len(runs)):
        runs[host] = work / rates[host]


@leaf
def place_in_turn(problem, state, batch, scratch, work, speed_class, rates, now, starts_known):
    """Choose a host for each task in the given order; -1 if no host has enough cores.

    A task that needs no traffic goes to a host that holds all its inputs, any other to the host where it finishes
    first. O(tasks * (reads * places + hosts)).
    """
    scratch.left[:] = -1.0
    scratch.bound[:] = 0.0
    if starts_known:
        least_queues_left(problem, state, now, scratch.bound)
    for i in range(len(batch.tasks)):
        task = batch.tasks[i]
        run_times(work[task], rates[speed_class[task]], scratch.runs)
        arrivals(problem, state, task, scratch.arrive, scratch.kept)
        best = -1
        if batch.least[i] == 0.0 and batch.total[i] > 0.0:
            add_held(problem, state, task, scratch.held)
            best = first_to_finish(problem, state, task, scratch, batch.total[i], now, starts_known)
            clear_held(problem, state, task, scratch.held)
        if best < 0:
            best = first_to_finish(problem, state, task, scratch, 0.0, now, starts_known)
        batch.hosts[i] = best
        if best >= 0:
            rate = rates[speed_class[task], best]
            scratch.left[best] += problem.cores[task] * work[task] / rate / cores_of(problem, best)
            scratch.bound[best] = scratch.left[best]


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
    hosts, places = len(state.host_up), len(state.place_up)
    scratch = Scratch(
        left=np.empty(hosts),
        bound=np.empty(hosts),
        arrive=np.empty(places),
        runs=np.empty(hosts),
        kept=np.empty(places),
        held=np.zeros(places),
        serving=np.empty(places, np.bool_),
    )
    ready = tasks_in(state, hosts)
    total, least = np.empty(len(ready)), np.empty(len(ready))
    traffic_of(problem, state, ready, scratch, total, least)
    order = by_rank(ready, problem.level[ready], least, work[ready] * mean[speed_class[ready]])
    batch = Batch(ready[order], total[order], least[order], np.empty(len(ready), np.int32))
    place_in_turn(problem, state, batch, scratch, work, speed_class, rates, now, starts_known)
    runnable = batch.hosts >= 0
    return batch.tasks[runnable], batch.hosts[runnable]


@entry
def queue_ranks(level, tasks, span, placed):
    """Ranks that order tasks by level, then by the order in which they were placed; `placed` tasks came before."""
    ranks = np.empty(len(tasks))
    for i in range(len(tasks)):
        ranks[i] = level[tasks[i]] * span + (placed + i)
    return ranks


@entry
def backlog_and_arrivals(problem, state, tasks, now, starts_known):
    """What L-HEFT estimates finishes by: seconds until each host has worked off its backlog, and [tasks, hosts] seconds
    until the inputs of each task could be there. O(tasks * (reads * places + hosts))."""
    places, hosts = len(state.place_up), len(state.host_up)
    arrive, kept, left = np.empty(places), np.empty(places), np.empty(hosts)
    seconds = np.empty((len(tasks), hosts))
    for i in range(len(tasks)):
        arrivals(problem, state, tasks[i], arrive, kept)
        for host in range(hosts):
            seconds[i, host] = arrive[problem.host_place[host]]
    queues_left(problem, state, now, starts_known, 0.0, left)
    return left, seconds
