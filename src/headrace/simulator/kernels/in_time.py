"""A plan carried out event by event: for links that are shared, and for inputs that are sent just ahead."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.simulator.kernels.heaps import drop_event, put_event, settle_pair
from headrace.simulator.kernels.records import (
    COUNTERS,
    EVENT,
    EVENTS,
    FLOW,
    MARK,
    PAIRS,
    REACHED,
    READY,
    TOUCHED,
)
from headrace.simulator.kernels.sharing import end_first, join, over_now, share


@entry(nogil=True)
def carry_out_in_time(
    ptr, successors, waits, call_ptr, calls, called, delay, start, size, pair_of, pairs, steps, links
):
    """Start and finish of all nodes, tasks first, then transfers; and how many were reached.

    A task takes `delay` and starts no sooner than its `start`. A transfer takes `delay`, and after it shares the
    links of its pair, if it has one, until `size` bytes have come. A transfer that is not `called` is not sent
    before one of the tasks that call it has started. `waits`, `called`, `start` and the records of pairs, steps and
    links are used up.

    An event costs O(log events), and where flows begin or end O(pairs connected with them by links).
    """
    total = len(delay)
    n = total - len(size)
    finish = np.zeros(total)
    flows = np.empty(len(size), FLOW)
    events = np.empty(total, EVENT)
    ready = np.empty(total, np.int32)
    touched = np.empty(len(links), np.int32)
    members = np.empty(len(pairs), np.int32)
    order = np.empty(len(pairs), np.int32)
    counts = np.zeros(COUNTERS, np.int64)
    counts[MARK] = 1
    for node in range(total):
        if waits[node] == 0:
            _make_ready(node, n, called, ready, counts)
    now = 0.0
    while True:
        while counts[READY] > 0:
            counts[READY] -= 1
            node = ready[counts[READY]]
            wait = max(now, start[node]) + (delay[node] if start[node] <= now else 0.0)
            if start[node] > now:
                node = ~node
            else:
                start[node] = now
                if node < n:
                    for i in range(call_ptr[node], call_ptr[node + 1]):
                        _call(calls[i], n, waits, called, ready, counts)
            if wait > now:
                put_event(events, counts[EVENTS], wait, node)
                counts[EVENTS] += 1
            elif node >= n and pair_of[node - n] >= 0:
                flow = node - n
                join(flows, pairs, steps, links, touched, counts, pair_of[flow], flow, size[flow], now)
            else:
                _finish(node, n, now, finish, ptr, successors, waits, called, ready, counts)
        if counts[TOUCHED] > 0:
            share(flows, pairs, steps, links, touched, members, order, counts, now)
        now = events[0].time if counts[EVENTS] > 0 else np.inf
        if counts[PAIRS] > 0:
            now = min(now, pairs[order[0]].end)
        if now == np.inf:
            return start, finish, counts[REACHED]
        while counts[EVENTS] > 0 and events[0].time <= now:
            node = events[0].node
            drop_event(events, counts[EVENTS])
            counts[EVENTS] -= 1
            if node < 0:
                ready[counts[READY]] = ~node
                counts[READY] += 1
            elif node >= n and pair_of[node - n] >= 0:
                flow = node - n
                join(flows, pairs, steps, links, touched, counts, pair_of[flow], flow, size[flow], now)
            else:
                _finish(node, n, now, finish, ptr, successors, waits, called, ready, counts)
        while counts[PAIRS] > 0 and pairs[order[0]].end <= now:
            pair = order[0]
            pairs[pair].end = np.inf  # until the links are shared anew
            settle_pair(pairs, order, counts[PAIRS], pair, 0)
            while True:
                flow = pairs[pair].root
                end_first(flows, pairs, steps, links, touched, order, counts, pair, now)
                _finish(n + flow, n, now, finish, ptr, successors, waits, called, ready, counts)
                if not over_now(flows, pairs, pair, now):
                    break


@inner
def _make_ready(node, n, called, ready, counts):
    """A node that waits for nothing any more, unless it is a transfer that nobody has called."""
    if node < n or called[node - n]:
        ready[counts[READY]] = node
        counts[READY] += 1


@inner
def _call(move, n, waits, called, ready, counts):
    if not called[move]:
        called[move] = True
        if waits[n + move] == 0:
            _make_ready(n + move, n, called, ready, counts)


@inner
def _finish(node, n, now, finish, ptr, successors, waits, called, ready, counts):
    finish[node] = now
    counts[REACHED] += 1
    for i in range(ptr[node], ptr[node + 1]):
        later = successors[i]
        waits[later] -= 1
        if waits[later] == 0:
            _make_ready(later, n, called, ready, counts)
