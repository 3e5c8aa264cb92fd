"""Transfers under way: alone on their links, or sharing them max-min fairly."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.simulator.world.traces import next_step, value_at


@inner
def bandwidth_at(world, link, now):
    trace = world.link_trace[link]
    return world.link_bandwidth[link] if trace < 0 else value_at(world.table, trace, now)


@inner
def latency_at(case, world, pair, now):
    """Latency of the way, with what the traces of its links add to their means."""
    latency = case.pair_latency[pair]
    for k in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
        link = case.pair_links[k]
        if world.link_delay[link] >= 0:
            latency += value_at(world.table, world.link_delay[link], now) - world.link_delay_mean[link]
    return max(0.0, latency)


@inner
def traced(case, world, pair):
    found = False
    for k in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
        found = found or world.link_trace[case.pair_links[k]] >= 0
    return found


@inner
def rate_at(case, world, pair, now):
    rate = np.inf
    for k in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
        rate = min(rate, bandwidth_at(world, case.pair_links[k], now))
    return rate


@inner
def step_after(case, world, pair, now):
    after = np.inf
    for k in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
        trace = world.link_trace[case.pair_links[k]]
        if trace >= 0:
            after = min(after, next_step(world.table, trace, now))
    return after


@inner
def alone_until(case, world, pair, now, size):
    """When a transfer that has its links to itself is over: piece by piece of their traces."""
    if size <= 0.0:
        return now
    if not traced(case, world, pair):
        return now + size * case.pair_seconds[pair]
    first = now
    still = 0
    while True:
        rate = rate_at(case, world, pair, now)
        after = step_after(case, world, pair, now)
        if rate > 0.0:
            still = 0
            if now + size / rate <= after:
                return now + size / rate
            size -= rate * (after - now)
        else:
            still += 1
        if after == np.inf or (still > 100_000 and now > first):
            return np.inf
        now = after


@inner
def sent_between(case, world, pair, start, end):
    """Bytes that a transfer alone on its links sends in a span of time."""
    if not traced(case, world, pair):
        return (end - start) / case.pair_seconds[pair]
    sent = 0.0
    while start < end:
        after = min(end, step_after(case, world, pair, start))
        sent += rate_at(case, world, pair, start) * (after - start)
        start = after
    return sent


@inner
def join_flow(case, desk, world, move, pair):
    """A transfer begins to share: it is over when each flow of its pair has got so much more."""
    world.mv_goal[move] = world.pair_served[pair] + world.mv_left[move]
    if world.pair_flows[pair] == 0:
        world.active_at[pair] = world.n_active[0]
        world.active[world.n_active[0]] = pair
        world.n_active[0] += 1
        world.pair_served[pair] = 0.0
        world.mv_goal[move] = world.mv_left[move]
        world.pair_first[pair] = np.inf
    world.pair_flows[pair] += 1
    head = world.pair_head[pair]
    world.mv_next[move] = head
    world.mv_prev[move] = -1
    if head >= 0:
        world.mv_prev[head] = move
    world.pair_head[pair] = move
    world.pair_first[pair] = min(world.pair_first[pair], world.mv_goal[move])


@inner
def leave_flow(world, move, pair):
    before, after = world.mv_prev[move], world.mv_next[move]
    if before >= 0:
        world.mv_next[before] = after
    else:
        world.pair_head[pair] = after
    if after >= 0:
        world.mv_prev[after] = before
    world.pair_flows[pair] -= 1
    least = np.inf
    other = world.pair_head[pair]
    while other >= 0:
        least = min(least, world.mv_goal[other])
        other = world.mv_next[other]
    world.pair_first[pair] = least
    if world.pair_flows[pair] == 0:
        last = world.n_active[0] - 1
        moved = world.active[last]
        at = world.active_at[pair]
        world.active[at] = moved
        world.active_at[moved] = at
        world.active_at[pair] = -1
        world.n_active[0] = last


@inner
def advance_flows(world, now):
    """Every flow gets its share since the last moment."""
    passed = now - world.flow_time[0]
    if passed > 0.0:
        for k in range(world.n_active[0]):
            pair = world.active[k]
            world.pair_served[pair] += world.pair_rate[pair] * passed
    world.flow_time[0] = now


@inner
def share(case, world, now):
    """Max-min fair rates by filling the most contended link first; O(rounds * active pairs * links of a way).

    The next step of a trace among links in use is kept in flow_time[1].
    """
    step = np.inf
    count = world.n_active[0]
    for k in range(count):
        pair = world.active[k]
        world.pair_rate[pair] = -1.0
        for j in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
            link = case.pair_links[j]
            world.link_left[link] = bandwidth_at(world, link, now)
            world.link_users[link] = 0.0
            if world.link_trace[link] >= 0:
                step = min(step, next_step(world.table, world.link_trace[link], now))
    world.flow_time[1] = step
    for k in range(count):
        pair = world.active[k]
        for j in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
            world.link_users[case.pair_links[j]] += world.pair_flows[pair]
    open_pairs = count
    while open_pairs > 0:
        least = np.inf
        for k in range(count):
            pair = world.active[k]
            if world.pair_rate[pair] == -1.0:
                for j in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
                    link = case.pair_links[j]
                    least = min(least, max(0.0, world.link_left[link]) / world.link_users[link])
        for k in range(count):
            pair = world.active[k]
            if world.pair_rate[pair] == -1.0:
                for j in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
                    link = case.pair_links[j]
                    if max(0.0, world.link_left[link]) / world.link_users[link] <= least * (1.0 + 1e-12):
                        world.pair_rate[pair] = -2.0
        for k in range(count):
            pair = world.active[k]
            if world.pair_rate[pair] == -2.0:
                world.pair_rate[pair] = least
                open_pairs -= 1
                for j in range(case.pair_ptr[pair], case.pair_ptr[pair + 1]):
                    world.link_left[case.pair_links[j]] -= least * world.pair_flows[pair]
                    world.link_users[case.pair_links[j]] -= world.pair_flows[pair]


@inner
def next_flow_end(world):
    """When the first of the sharing transfers is over, if nothing changes."""
    first = np.inf
    for k in range(world.n_active[0]):
        pair = world.active[k]
        if world.pair_rate[pair] > 0.0:
            ends = (
                world.flow_time[0]
                + max(0.0, world.pair_first[pair] - world.pair_served[pair]) / world.pair_rate[pair]
            )
            first = min(first, ends)
    return first
