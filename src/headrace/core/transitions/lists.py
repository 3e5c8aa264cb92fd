"""Linked lists of the state as arrays, for Python."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.state import REQUESTS
from headrace.core.transitions.requests import is_open


@inner
def tasks_in(state, queue):
    """The tasks of a queue, in order; the last queue is the pool of ready tasks."""
    found = np.empty(state.queue_length[queue], np.int32)
    task = state.queue_head[queue]
    for k in range(len(found)):
        found[k] = task
        task = state.queue_next[task]
    return found


@entry
def queued_tasks(state, queue, limit):
    """The first tasks of a queue, in order: O(limit)."""
    found = np.empty(min(limit, state.queue_length[queue]), np.int32)
    task = state.queue_head[queue]
    for k in range(len(found)):
        found[k] = task
        task = state.queue_next[task]
    return found


@entry
def open_requests(problem, state):
    """Items and targets of open requests for existing items, link by link in the order of service."""
    items = np.empty(state.counters[REQUESTS], np.int32)
    targets = np.empty(state.counters[REQUESTS], np.int32)
    n = 0
    for queue in range(len(state.request_head)):
        entry = state.order_head[queue]
        while entry >= 0:
            request = entry // problem.longest_route
            if state.request_queue[request] == queue and state.copy_count[state.request_item[request]] > 0:
                items[n], targets[n] = state.request_item[request], state.request_target[request]
                n += 1
            entry = state.order_next[entry]
        request = state.request_head[queue]
        while request >= 0:
            if is_open(state, request) and state.copy_count[state.request_item[request]] > 0:
                items[n], targets[n] = state.request_item[request], state.request_target[request]
                n += 1
            request = state.request_next[request]
    return items[:n], targets[:n]
