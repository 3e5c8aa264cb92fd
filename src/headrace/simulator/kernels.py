"""The compiled loops of a replay."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True)
def carry_out(ptr, successors, waits, seconds):
    """Every node starts when the last of its predecessors has finished: O(nodes + edges)."""
    n = len(seconds)
    start = np.zeros(n)
    finish = np.zeros(n)
    stack = np.empty(n, np.int64)
    top = 0
    for node in range(n):
        if waits[node] == 0:
            stack[top] = node
            top += 1
    reached = 0
    while top > 0:
        top -= 1
        node = stack[top]
        reached += 1
        finish[node] = start[node] + seconds[node]
        for i in range(ptr[node], ptr[node + 1]):
            later = successors[i]
            start[later] = max(start[later], finish[node])
            waits[later] -= 1
            if waits[later] == 0:
                stack[top] = later
                top += 1
    return start, finish, reached


@njit(cache=True)
def share_fairly(flows, count, route_ptr, route_links, bandwidth, rate, left, users):
    """Max-min fair rates of the active flows by progressive filling: the most contended link first.

    O(rounds * links in use), one round for each link that limits somebody.
    """
    for f in range(count):
        flow = flows[f]
        rate[flow] = -1.0
        for i in range(route_ptr[flow], route_ptr[flow + 1]):
            left[route_links[i]] = bandwidth[route_links[i]]
            users[route_links[i]] = 0
    for f in range(count):
        for i in range(route_ptr[flows[f]], route_ptr[flows[f] + 1]):
            users[route_links[i]] += 1
    open_flows = count
    while open_flows > 0:
        least = np.inf
        for f in range(count):
            flow = flows[f]
            if rate[flow] < 0.0:
                for i in range(route_ptr[flow], route_ptr[flow + 1]):
                    link = route_links[i]
                    least = min(least, left[link] / users[link])
        for f in range(count):
            flow = flows[f]
            if rate[flow] >= 0.0:
                continue
            limited = least == np.inf
            for i in range(route_ptr[flow], route_ptr[flow + 1]):
                link = route_links[i]
                if left[link] / users[link] <= least * (1.0 + 1e-12):
                    limited = True
            if limited:
                rate[flow] = -2.0
        for f in range(count):
            flow = flows[f]
            if rate[flow] == -2.0:
                rate[flow] = least
                open_flows -= 1
                for i in range(route_ptr[flow], route_ptr[flow + 1]):
                    left[route_links[i]] -= least
                    users[route_links[i]] -= 1


@njit(cache=True)
def carry_out_fair(ptr, successors, waits, seconds, latency, size, route_ptr, route_links, bandwidth):
    """As `carry_out`, with transfers that share links: an event loop over starts, arrivals and ends.

    Nodes below n are tasks with known seconds; the others transfers. O(events * active flows * route).
    """
    total = len(seconds)
    n = total - len(size)
    start = np.zeros(total)
    finish = np.zeros(total)
    remaining = size.copy()
    rate = np.zeros(len(size))
    left = np.zeros(len(bandwidth))
    users = np.zeros(len(bandwidth), np.int64)
    flows = np.empty(len(size), np.int64)
    flowing = 0
    reached = 0
    now = 0.0
    # (time, node): a task that ends, or a transfer whose first byte arrives.
    queue = [(0.0, -1)]
    heapq.heappop(queue)
    ready = np.empty(total, np.int64)
    n_ready = 0
    for node in range(total):
        if waits[node] == 0:
            ready[n_ready] = node
            n_ready += 1
    while True:
        changed = False
        while n_ready > 0:
            n_ready -= 1
            node = ready[n_ready]
            start[node] = now
            heapq.heappush(queue, (now + (seconds[node] if node < n else latency[node - n]), node))
        next_event = queue[0][0] if len(queue) > 0 else np.inf
        next_end = np.inf
        for f in range(flowing):
            next_end = min(next_end, now + remaining[flows[f]] / rate[flows[f]])
        if next_event == np.inf and next_end == np.inf:
            break
        time = min(next_event, next_end)
        kept = 0
        for f in range(flowing):
            flow = flows[f]
            ends = now + remaining[flow] / rate[flow]
            if ends <= time * (1.0 + 1e-14):
                finish[n + flow] = time
                reached += 1
                changed = True
                for i in range(ptr[n + flow], ptr[n + flow + 1]):
                    waits[successors[i]] -= 1
                    if waits[successors[i]] == 0:
                        ready[n_ready] = successors[i]
                        n_ready += 1
            else:
                remaining[flow] -= (time - now) * rate[flow]
                flows[kept] = flow
                kept += 1
        flowing = kept
        now = time
        while len(queue) > 0 and queue[0][0] <= now:
            _, node = heapq.heappop(queue)
            done = node < n
            if not done:
                flow = node - n
                if route_ptr[flow] == route_ptr[flow + 1] or size[flow] == 0.0:
                    done = True
                else:
                    flows[flowing] = flow
                    flowing += 1
                    changed = True
            if done:
                finish[node] = now
                reached += 1
                for i in range(ptr[node], ptr[node + 1]):
                    waits[successors[i]] -= 1
                    if waits[successors[i]] == 0:
                        ready[n_ready] = successors[i]
                        n_ready += 1
        if changed:
            share_fairly(flows, flowing, route_ptr, route_links, bandwidth, rate, left, users)
    return start, finish, reached
