"""Active transfers: with exclusive use of their links, or sharing them max-min fairly."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.simulator.events.traces import next_step, value_at


@inner
def bandwidth_at(grid, link, now):
    trace = grid.link_trace[link]
    return grid.link_bandwidth[link] if trace < 0 else value_at(grid.table, trace, now)


@inner
def latency_at(problem, grid, pair, now):
    """Latency of the route, including what the traces of its links add to their means."""
    latency = problem.route_latency[pair]
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        if grid.link_delay[link] >= 0:
            latency += value_at(grid.table, grid.link_delay[link], now) - grid.link_delay_mean[link]
    return max(0.0, latency)


@inner
def traced(problem, grid, pair):
    found = False
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        found = found or grid.link_trace[problem.route_links[k]] >= 0
    return found


@inner
def rate_at(problem, grid, pair, now):
    rate = np.inf
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        rate = min(rate, bandwidth_at(grid, problem.route_links[k], now))
    return rate


@inner
def step_after(problem, grid, pair, now):
    after = np.inf
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        trace = grid.link_trace[problem.route_links[k]]
        if trace >= 0:
            after = min(after, next_step(grid.table, trace, now))
    return after


@inner
def alone_until(problem, grid, pair, now, size):
    """When a transfer with exclusive links finishes, piece by piece of their traces."""
    if size <= 0.0:
        return now
    if not traced(problem, grid, pair):
        return now + size * problem.route_seconds_per_byte[pair]
    first = now
    still = 0
    while True:
        rate = rate_at(problem, grid, pair, now)
        after = step_after(problem, grid, pair, now)
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
def sent_between(problem, grid, pair, start, end):
    """Bytes that a transfer with exclusive links sends in a time span."""
    if not traced(problem, grid, pair):
        return (end - start) / problem.route_seconds_per_byte[pair]
    sent = 0.0
    while start < end:
        after = min(end, step_after(problem, grid, pair, start))
        sent += rate_at(problem, grid, pair, start) * (after - start)
        start = after
    return sent


@inner
def join_flow(problem, state, grid, move, pair):
    """Add a transfer to the flows of its pair of places; it finishes when each flow has sent that much more."""
    grid.flow_goal[move] = grid.pair_served[pair] + grid.transfer_left[move]
    if grid.pair_flows[pair] == 0:
        grid.active_at[pair] = grid.n_active[0]
        grid.active[grid.n_active[0]] = pair
        grid.n_active[0] += 1
        grid.pair_served[pair] = 0.0
        grid.flow_goal[move] = grid.transfer_left[move]
        grid.pair_first[pair] = np.inf
    grid.pair_flows[pair] += 1
    head = grid.pair_head[pair]
    grid.flow_next[move] = head
    grid.flow_previous[move] = -1
    if head >= 0:
        grid.flow_previous[head] = move
    grid.pair_head[pair] = move
    grid.pair_first[pair] = min(grid.pair_first[pair], grid.flow_goal[move])


@inner
def leave_flow(grid, move, pair):
    before, after = grid.flow_previous[move], grid.flow_next[move]
    if before >= 0:
        grid.flow_next[before] = after
    else:
        grid.pair_head[pair] = after
    if after >= 0:
        grid.flow_previous[after] = before
    grid.pair_flows[pair] -= 1
    least = np.inf
    other = grid.pair_head[pair]
    while other >= 0:
        least = min(least, grid.flow_goal[other])
        other = grid.flow_next[other]
    grid.pair_first[pair] = least
    if grid.pair_flows[pair] == 0:
        last = grid.n_active[0] - 1
        moved = grid.active[last]
        at = grid.active_at[pair]
        grid.active[at] = moved
        grid.active_at[moved] = at
        grid.active_at[pair] = -1
        grid.n_active[0] = last


@inner
def advance_flows(grid, now):
    """Credit every flow with the bytes sent since the last update."""
    passed = now - grid.flow_time[0]
    if passed > 0.0:
        for k in range(grid.n_active[0]):
            pair = grid.active[k]
            grid.pair_served[pair] += grid.pair_rate[pair] * passed
    grid.flow_time[0] = now


@inner
def share(problem, grid, now):
    """Compute max-min fair rates by filling the most contended link first; O(rounds * active pairs * route length).

    The next step of a trace among links in use is stored in flow_time[1].
    """
    step = np.inf
    count = grid.n_active[0]
    for k in range(count):
        pair = grid.active[k]
        grid.pair_rate[pair] = -1.0
        for j in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
            link = problem.route_links[j]
            grid.link_left[link] = bandwidth_at(grid, link, now)
            grid.link_users[link] = 0.0
            if grid.link_trace[link] >= 0:
                step = min(step, next_step(grid.table, grid.link_trace[link], now))
    grid.flow_time[1] = step
    for k in range(count):
        pair = grid.active[k]
        for j in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
            grid.link_users[problem.route_links[j]] += grid.pair_flows[pair]
    open_pairs = count
    while open_pairs > 0:
        least = np.inf
        for k in range(count):
            pair = grid.active[k]
            if grid.pair_rate[pair] == -1.0:
                for j in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
                    link = problem.route_links[j]
                    least = min(least, max(0.0, grid.link_left[link]) / grid.link_users[link])
        for k in range(count):
            pair = grid.active[k]
            if grid.pair_rate[pair] == -1.0:
                for j in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
                    link = problem.route_links[j]
                    if max(0.0, grid.link_left[link]) / grid.link_users[link] <= least * (1.0 + 1e-12):
                        grid.pair_rate[pair] = -2.0
        for k in range(count):
            pair = grid.active[k]
            if grid.pair_rate[pair] == -2.0:
                grid.pair_rate[pair] = least
                open_pairs -= 1
                for j in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
                    grid.link_left[problem.route_links[j]] -= least * grid.pair_flows[pair]
                    grid.link_users[problem.route_links[j]] -= grid.pair_flows[pair]


@inner
def next_flow_end(grid):
    """When the first of the sharing transfers finishes if nothing changes."""
    first = np.inf
    for k in range(grid.n_active[0]):
        pair = grid.active[k]
        if grid.pair_rate[pair] > 0.0:
            ends = (
                grid.flow_time[0]
                + max(0.0, grid.pair_first[pair] - grid.pair_served[pair]) / grid.pair_rate[pair]
            )
            first = min(first, ends)
    return first
