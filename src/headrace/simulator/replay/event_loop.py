"""A plan replayed event by event: for links that are shared, and for inputs that are prefetched."""

from __future__ import annotations

import heapq
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.compiling import entry, leaf
from headrace.arrays.fair_share import FairShare, next_end, start_flow, take_finished, update_rates
from headrace.arrays.heap import NONE
from headrace.arrays.records import Records, row_type
from headrace.model.graph import Ints
from headrace.simulator.replay.dependencies import TURN, Dependencies
from headrace.simulator.replay.prefetch import Calls

Longs: TypeAlias = NDArray[np.int64]

NODE = row_type(
    ("start", np.float64),  # not before; once it has started, when
    ("finish", np.float64),
    ("delay", np.float64),  # all it takes or, if it shares links, before it has its share
    ("size", np.float64),  # bytes of a transfer
    ("rest", np.float64),  # how many of these are sent after its turn; 0 if none, or if turns do not matter
    ("pair", np.int32),  # of places, whose links a transfer shares, or NONE
    ("called", np.bool_),  # a transfer that is not called waits for that too
)
"""A task or a transfer; tasks come first."""

READY, REACHED = 0, 1
"""Counters: nodes to start now, and nodes that have finished."""


@entry(nogil=True)
def replay_events(nodes: Records, depends: Dependencies, calls: Calls, share: FairShare) -> int:
    """Find the start and finish of all nodes; how many could finish.

    A task takes `delay`. A transfer takes `delay` and then, if it shares links, until all its bytes have come.
    `nodes`, `depends.waits` and `share` are used up.
    An event costs O(log events), and where flows start or end O(pairs connected with them by links).
    """
    ptr, successors, waits, lag = depends
    call_ptr, called, _ = calls
    tasks = len(nodes) - len(share.flows)
    ready, counters = np.empty(len(nodes), np.int64), np.zeros(2, np.int64)
    for node in range(len(nodes)):
        if waits[node] == 0:
            _make_ready(ready, counters, node)
    events = [(0.0, 0)]
    events.pop()
    now = 0.0
    while True:
        if counters[READY] > 0:
            event, moment = _start_next(nodes, waits, call_ptr, called, ready, counters, now)
            for i in range(ptr[event], ptr[event + 1] if event >= 0 else 0):
                if 0.0 <= lag[i] < np.inf:
                    heapq.heappush(events, (now + lag[i], len(nodes) + i))
            if moment > now:
                heapq.heappush(events, (moment, event))
                continue
        elif len(events) > 0 and events[0][0] <= now:
            event = heapq.heappop(events)[1]
        else:
            flow = take_finished(share, now)
            if flow != NONE:
                _flow_is_over(nodes, depends, share, ready, counters, tasks + flow, now)
                continue
            update_rates(share, now)
            now = next_end(share)
            if len(events) > 0:
                now = min(now, events[0][0])
            if now == np.inf:
                return int(counters[REACHED])
            continue
        if event < 0:
            _make_ready(ready, counters, ~event)
        elif event >= len(nodes):
            _wait_is_over(waits, ready, counters, successors[event - len(nodes)])
        elif nodes[event].pair != NONE:
            node = nodes[event]
            start_flow(share, node.pair, event - tasks, node.size - node.rest, now)
        else:
            _finish(nodes, depends, ready, counters, event, now)


@leaf
def _start_next(
    nodes: Records, waits: Ints, call_ptr: Ints, calls: Ints, ready: Longs, counters: Longs, now: float
) -> tuple[int, float]:
    """Start a ready node: what happens to it next, and when.

    The event ~node is that it may start; those above all nodes are that a successor need not wait for it any more.
    """
    counters[READY] -= 1
    number = int(ready[counters[READY]])
    node = nodes[number]
    if node.start > now:
        return ~number, float(node.start)
    node.start = now
    if number < len(call_ptr) - 1:
        for i in range(call_ptr[number], call_ptr[number + 1]):
            transfer = calls[i]
            if not nodes[transfer].called:
                nodes[transfer].called = True
                _wait_is_over(waits, ready, counters, transfer)
    return number, now + node.delay


@leaf
def _make_ready(ready: Longs, counters: Longs, node: int) -> None:
    ready[counters[READY]] = node
    counters[READY] += 1


@leaf
def _wait_is_over(waits: Ints, ready: Longs, counters: Longs, node: int) -> None:
    waits[node] -= 1
    if waits[node] == 0:
        _make_ready(ready, counters, node)


@leaf
def _flow_is_over(
    nodes: Records,
    depends: Dependencies,
    share: FairShare,
    ready: Longs,
    counters: Longs,
    number: int,
    now: float,
) -> None:
    """A transfer has all its bytes, or those of its turn: then the rest of them follow."""
    node = nodes[number]
    if node.rest == 0.0:
        _finish(nodes, depends, ready, counters, number, now)
        return
    start_flow(share, node.pair, number - len(nodes) + len(share.flows), node.rest, now)
    node.rest = 0.0
    ptr, successors, waits, lag = depends
    for i in range(ptr[number], ptr[number + 1]):
        if lag[i] == TURN:
            _wait_is_over(waits, ready, counters, successors[i])


@leaf
def _finish(
    nodes: Records, depends: Dependencies, ready: Longs, counters: Longs, node: int, now: float
) -> None:
    ptr, successors, waits, lag = depends
    nodes[node].finish = now
    counters[REACHED] += 1
    for i in range(ptr[node], ptr[node + 1]):
        if lag[i] == np.inf:
            _wait_is_over(waits, ready, counters, successors[i])
