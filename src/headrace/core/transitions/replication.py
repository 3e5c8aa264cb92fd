"""Lazy replication: which items are copied to a second host, when, and to which.

With a step of n, items that cross level 0, n, 2n, ... are due for a copy: those made at or before that level and read
after it. After a loss, tasks then run again back to the last such level, unless copies had not arrived yet.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import ABSENT, REPLICAS, REPLICATE
from headrace.core.transitions.copies import status_of
from headrace.core.transitions.data import still_needed
from headrace.core.transitions.load import cores_of
from headrace.core.transitions.requests import request_item


@leaf
def is_due(problem, item, step):
    """Whether an item crosses a level that is a multiple of `step`: O(readers)."""
    made = problem.level[problem.producer[item]]
    cut = (made + step - 1) // step * step
    if cut == made:
        return True
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        if problem.level[problem.readers[k]] > cut:
            return True
    return False


@leaf
def enqueue_copy(state, item):
    """Let an item wait for replication."""
    state.to_replicate[state.to_replicate_at[1] % len(state.to_replicate)] = item
    state.to_replicate_at[1] += 1


@entry
def enqueue_results(problem, state, task):
    """Let results of a task wait for replication that are not due anyway: they are at risk until the run ends."""
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        item = problem.writes[k]
        if problem.result_anywhere[item] and not is_due(problem, item, problem.policy[REPLICATE]):
            enqueue_copy(state, item)


@entry
def enqueue_single(problem, state):
    """After a loss, let all items wait that are due, or results, and have one copy: O(reads).

    Call it while none waits, as there is room for each item once.
    """
    for item in range(len(state.exists)):
        target = state.replica[item]
        on_its_way = target >= 0 and state.place_up[target] and target != state.holder[item]
        if state.copy_count[item] != 1 or on_its_way or problem.producer[item] < 0:
            continue
        if problem.no_transfer[item] or not state.done[problem.producer[item]]:
            continue
        if problem.result_anywhere[item] or is_due(problem, item, problem.policy[REPLICATE]):
            enqueue_copy(state, item)


@leaf
def replicate(problem, state):
    """Replicate waiting items to idle hosts, one transfer per host at a time."""
    for _ in range(state.to_replicate_at[1] - state.to_replicate_at[0]):
        item = state.to_replicate[state.to_replicate_at[0] % len(state.to_replicate)]
        if state.copy_count[item] != 1 or not still_needed(problem, state, item):
            state.to_replicate_at[0] += 1
            continue
        target = idle_place(problem, state, item)
        if target < 0:
            return
        state.to_replicate_at[0] += 1
        if status_of(state, item, target) == ABSENT:
            state.replica[item] = target
            state.counters[REPLICAS] += 1
            request_item(problem, state, item, state.holder[item], target, np.inf)


@leaf
def may_be_needed(problem, state, item):
    """Whether the item is still needed, or was read by a task whose output is."""
    if still_needed(problem, state, item):
        return True
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        for m in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
            if still_needed(problem, state, problem.writes[m]):
                return True
    return False


@leaf
def least_busy_host(problem, state, holder, given):
    """The host elsewhere than `holder` with the fewest startable tasks and `given` copies per core; -1: none."""
    chosen, least = -1, np.inf
    for host in range(len(state.host_up)):
        if not state.host_up[host] or problem.host_place[host] == holder:
            continue
        ready = given[host]
        task = state.queue_head[host]
        while task >= 0:
            if state.missing_inputs[task] == 0:
                ready += 1
            task = state.queue_next[task]
        load = ready / cores_of(problem, host)
        if load < least:
            chosen, least = host, load
    return chosen


@entry
def replicas_due(problem, state):
    """As `replicate`, for workers with their own queues: items and the places to which to copy them now.

    Such workers hold tasks long before they can start them, so the target is the host with the fewest tasks that could
    start, per core. Copies are counted when they arrive.
    """
    waiting = state.to_replicate_at[1] - state.to_replicate_at[0]
    items, places, n = np.empty(waiting, np.int32), np.empty(waiting, np.int32), 0
    given = np.zeros(len(state.host_up), np.int64)
    for _ in range(waiting):
        item = state.to_replicate[state.to_replicate_at[0] % len(state.to_replicate)]
        state.to_replicate_at[0] += 1
        if state.copy_count[item] != 1 or not may_be_needed(problem, state, item):
            continue
        host = least_busy_host(problem, state, state.holder[item], given)
        if host >= 0:
            given[host] += 1
            items[n], places[n] = item, problem.host_place[host]
            state.replica[item] = places[n]
            state.counters[REPLICAS] += 1
            n += 1
    return items[:n], places[:n]


@leaf
def idle_place(problem, state, item):
    """The place of an idle host with idle links, other than the item's holder."""
    holder = state.holder[item]
    for host in range(len(state.host_up)):
        place = problem.host_place[host]
        if (
            not state.host_up[host]
            or place == holder
            or state.busy_cores[host] > 0
            or state.queue_head[host] >= 0
        ):
            continue
        at = holder * len(state.place_up) + place
        idle = True
        for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
            if state.link_busy[problem.route_links[k]] > 0:
                idle = False
        if idle:
            return place
    return -1
