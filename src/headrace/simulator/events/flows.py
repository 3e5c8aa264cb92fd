"""Active transfers: at the pace of their slowest link, or sharing links max-min fairly; and links in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.arrays.compiling import leaf
from headrace.arrays.fair_share import (
    SAME_MOMENT,
    cut_flow,
    next_end,
    set_capacity,
    start_flow,
    update_rates,
)
from headrace.arrays.heap import NONE, contains
from headrace.simulator.events.event_queue import STEPS, first_step, put, put_step, take_out, take_step_out
from headrace.simulator.events.traces import done_between, finish, next_step, value_at

if TYPE_CHECKING:
    from headrace.core.state import StaticProblem
    from headrace.simulator.events.grid_state import GridState


@leaf
def bandwidth_at(grid: GridState, link: int, now: float) -> float:
    trace = grid.link_trace[link]
    return grid.link_bandwidth[link] if trace < 0 else value_at(grid.table, trace, now)


@leaf
def latency_at(problem: StaticProblem, grid: GridState, pair: int, now: float) -> float:
    """Latency of the route, including what the traces of its links add to their means."""
    latency = problem.route_latency[pair]
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        if grid.link_delay[link] >= 0:
            latency += value_at(grid.table, grid.link_delay[link], now) - grid.link_delay_mean[link]
    return float(max(0.0, latency))


@leaf
def traced(problem: StaticProblem, grid: GridState, pair: int) -> bool:
    found = False
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        found = found or grid.link_trace[problem.route_links[k]] >= 0
    return found


@leaf
def rate_at(problem: StaticProblem, grid: GridState, pair: int, now: float) -> float:
    rate = np.inf
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        rate = min(rate, bandwidth_at(grid, problem.route_links[k], now))
    return rate


@leaf
def step_after(problem: StaticProblem, grid: GridState, pair: int, now: float) -> float:
    after = np.inf
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        trace = grid.link_trace[problem.route_links[k]]
        if trace >= 0:
            after = min(after, next_step(grid.table, trace, now))
    return after


@leaf
def alone_until(problem: StaticProblem, grid: GridState, pair: int, now: float, size: float) -> float:
    """When a transfer that shares no link finishes, piece by piece of their traces."""
    if size <= 0.0:
        return now
    if not traced(problem, grid, pair):
        return float(now + size * problem.route_seconds_per_byte[pair])
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


@leaf
def sent_between(problem: StaticProblem, grid: GridState, pair: int, start: float, end: float) -> float:
    """Bytes that a transfer that shares no link sends in a time span."""
    if not traced(problem, grid, pair):
        return float((end - start) / problem.route_seconds_per_byte[pair])
    sent = 0.0
    while start < end:
        after = min(end, step_after(problem, grid, pair, start))
        sent += rate_at(problem, grid, pair, start) * (after - start)
        start = after
    return sent


@leaf
def link_until(grid: GridState, link: int, now: float, size: float) -> float:
    """When a link has carried this many bytes at its own bandwidth; inf if never."""
    trace = grid.link_trace[link]
    if trace < 0:
        return float(now + size / grid.link_bandwidth[link])
    return finish(grid.table, trace, now, size)


@leaf
def occupy_links(problem: StaticProblem, grid: GridState, pair: int, move: int, end: float) -> None:
    """A transfer whose turn it is keeps each link of its route busy until that has carried its bytes (fifo).

    Links that are busy as long as the transfer is under way, until `end`, become idle with its end, not by rounding
    just before it.
    """
    first = len(grid.ending) - len(grid.link_user)
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        grid.link_user[link] = move
        grid.link_left[link] = grid.transfer_left[move]
        grid.link_since[link] = grid.now[0]
        until = link_until(grid, link, grid.now[0], grid.link_left[link])
        if until * (1.0 + SAME_MOMENT) < end:
            put(grid, first + link, until)


@leaf
def take_turn(problem: StaticProblem, grid: GridState, pair: int, move: int, latency: float) -> None:
    """A transfer takes its turn on the slow links of its route, which it may share.

    The turn is over when what it has still to send needs no longer than the latency alone; if that is true of all its
    bytes, when the route would have carried them.
    """
    first = len(grid.ending) - len(grid.link_user)
    size = grid.transfer_left[move]
    rest = latency / problem.route_seconds_per_byte[pair]
    grid.transfer_rest[move] = 0.0 if rest >= size else rest
    until = alone_until(problem, grid, pair, grid.now[0], size) if rest >= size else np.inf
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        if problem.route_turns[k]:
            grid.link_user[link] = move
            grid.link_left[link] = size
            grid.link_since[link] = grid.now[0]
            if until < np.inf:
                put(grid, first + link, until)


@leaf
def leave_links(problem: StaticProblem, grid: GridState, pair: int, move: int) -> None:
    """A transfer is over: links that are still busy with it are not any more."""
    first = len(grid.ending) - len(grid.link_user)
    for k in range(problem.route_ptr[pair], problem.route_ptr[pair + 1]):
        link = problem.route_links[k]
        if grid.link_user[link] == move:
            take_out(grid, first + link)


@leaf
def carry_so_far(grid: GridState, link: int) -> None:
    """Deduct the bytes that a link has carried of its latest transfer by now."""
    now, since, trace = grid.now[0], grid.link_since[link], grid.link_trace[link]
    if now > since:
        carried = grid.link_bandwidth[link] * (now - since)
        if trace >= 0:
            carried = done_between(grid.table, trace, since, now)
        grid.link_left[link] = max(0.0, grid.link_left[link] - carried)
        grid.link_since[link] = now


@leaf
def carry_on(grid: GridState, link: int, shared: bool) -> None:
    """Work out anew when a busy link becomes idle; if it is shared, the time may not be known."""
    number = len(grid.ending) - len(grid.link_user) + link
    if shared and not contains(grid.ending, number):
        return
    put(grid, number, link_until(grid, link, grid.now[0], grid.link_left[link]))


@leaf
def join_flow(grid: GridState, pair: int, move: int) -> None:
    """A transfer begins to share its links. Links that were idle take up their traces where they are by now."""
    share = grid.share
    for hop in range(share.pairs[pair].first, share.pairs[pair].last):
        link = share.hops[hop].link
        if grid.link_trace[link] >= 0 and not contains(grid.stepping, link):
            _follow_trace(grid, link)
    start_flow(share, pair, move, grid.transfer_left[move] - grid.transfer_rest[move], grid.now[0])


@leaf
def leave_flow(grid: GridState, pair: int, move: int) -> None:
    """A transfer is broken off."""
    cut_flow(grid.share, pair, move, grid.now[0])
    rest_links(grid, pair)


@leaf
def rest_links(grid: GridState, pair: int) -> None:
    """Links that carry nothing any more do not follow their traces."""
    if grid.queued[STEPS] == NONE:
        return
    share = grid.share
    for hop in range(share.pairs[pair].first, share.pairs[pair].last):
        link = share.hops[hop].link
        if share.links[link].head == NONE:
            take_step_out(grid, link)


@leaf
def flows_change(grid: GridState) -> bool:
    """Whether a sharing transfer is over by now, or a link in use takes a step."""
    return bool(grid.flow_change[0] <= grid.now[0] * (1.0 + SAME_MOMENT))


@leaf
def take_steps(grid: GridState) -> None:
    """Links whose traces take a step by now have another bandwidth."""
    while first_step(grid) <= grid.now[0]:
        _follow_trace(grid, grid.queued[STEPS])


@leaf
def change_trace(grid: GridState, link: int, trace: int) -> None:
    """From now on a link follows another trace."""
    share = grid.share
    grid.link_trace[link] = trace
    take_step_out(grid, link)
    if trace >= 0 and share.links[link].head != NONE:
        _follow_trace(grid, link)
    else:
        set_capacity(share, link, bandwidth_at(grid, link, grid.now[0]))


@leaf
def update_flows(grid: GridState) -> None:
    """Work out the rates of sharing transfers, and when that changes next."""
    share = grid.share
    update_rates(share, grid.now[0])
    grid.flow_change[0] = min(next_end(share), first_step(grid))


@leaf
def _follow_trace(grid: GridState, link: int) -> None:
    """Set the bandwidth of a link by its trace, until its next step."""
    now = grid.now[0]
    set_capacity(grid.share, link, bandwidth_at(grid, link, now))
    put_step(grid, link, next_step(grid.table, grid.link_trace[link], now))
