"""Max-min fair sharing of links among flows that come, end, are cut, and links whose capacity changes.

A *pair* is two places that transfers go between. All its flows cross the same links and have the same rate, so
one count of the bytes served to each of them is enough: a flow that starts has its *goal* that many bytes ahead.

When flows or capacities change, only pairs that are connected with them by shared links can get another rate; the
rest is left alone, and is brought up to date when its own rate changes.

Order of calls: `start_flow`, `take_finished`, `cut_flow` and `set_capacity` in any number at one moment, then
`update_rates`; after that `next_end` is the next moment at which a flow is over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.compiling import leaf
from headrace.arrays.heap import (
    HEAP_FIELDS,
    NONE,
    contains,
    least_key,
    make_rows,
    pop,
    push,
    remove,
    update,
)
from headrace.arrays.records import Records, row_type
from headrace.model.graph import Floats, Ints

FLOW = row_type(*HEAP_FIELDS)
"""In the queue of its pair, by goal."""

PAIR = row_type(
    ("served", np.float64),  # bytes each of its flows has got since the pair was last idle
    ("since", np.float64),  # the moment of `served`
    ("rate", np.float64),  # of each flow since then
    ("share", np.float64),  # the rate from now on; below 0 while it is being worked out
    ("flows", np.int32),
    ("queue", np.int32),  # its flows, the next to end first
    ("timed", np.int32),  # the flow whose end is the key, or NONE
    ("mark", np.int32),
    ("member", np.int32),  # not of this pair: room for a list of pairs
    ("first", np.int32),  # its hops are hops[first:last]
    ("last", np.int32),
    *HEAP_FIELDS,
)
"""While it has flows, in the queue of pairs, by the moment at which the first of its flows is over."""

HOP = row_type(("link", np.int32), ("pair", np.int32), ("previous", np.int32), ("next", np.int32))
"""One link on the route of a pair; while the pair has flows, in the list of the link's active pairs."""

LINK = row_type(
    ("capacity", np.float64),
    ("left", np.float64),
    ("users", np.float64),
    ("head", np.int32),  # the first hop of its list, or NONE
    ("mark", np.int32),
    ("changed", np.int32),  # not of this link: room for a list of links
)

ENDS, CHANGED, MARK = 0, 1, 2
"""In `state`: the queue of pairs, how many links have changed since rates were worked out, the number of the round."""

SAME_MOMENT = 1e-13
"""Flows that end within this share of the present time are over together: rounding is smaller."""


class FairShare(NamedTuple):
    """Flows and links; see `make_fair_share`."""

    flows: Records
    pairs: Records
    hops: Records
    links: Records
    state: Ints

    def copy(self) -> FairShare:
        """The same flows and links in arrays of their own."""
        return FairShare(
            self.flows.copy(), self.pairs.copy(), self.hops.copy(), self.links.copy(), self.state.copy()
        )


def make_fair_share(
    flows: int, route_ptr: Ints | NDArray[np.int64], route_links: Ints, capacity: Floats
) -> FairShare:
    """Links without flows.

    Args:
        flows: Flows are numbered from 0 to `flows` - 1.
        route_ptr: Pair p crosses `route_links[route_ptr[p] : route_ptr[p + 1]]`, each link once.
        route_links: Numbers of links.
        capacity: Of each link, in bytes/s; inf for a link without a limit.
    """
    pairs = make_rows(len(route_ptr) - 1, PAIR)
    pairs["first"], pairs["last"], pairs["queue"] = route_ptr[:-1], route_ptr[1:], NONE
    hops = np.zeros(len(route_links), HOP)
    hops["link"] = route_links
    hops["pair"] = np.repeat(np.arange(len(pairs), dtype=np.int32), np.diff(route_ptr))
    links = np.zeros(len(capacity), LINK)
    links["capacity"], links["head"] = capacity, NONE
    return FairShare(make_rows(flows, FLOW), pairs, hops, links, np.array([NONE, 0, 1], np.int32))


@leaf
def next_end(share: FairShare) -> float:
    """When the first flow is over, if nothing changes; inf without flows, or if none moves."""
    return least_key(share.pairs, share.state[ENDS])


@leaf
def start_flow(share: FairShare, pair: int, flow: int, size: float, now: float) -> None:
    """`size` bytes start to flow: O(links of the route)."""
    p = share.pairs[pair]
    if p.flows == 0:
        p.served = 0.0
        p.since = now
        p.rate = 0.0
        p.timed = NONE
        _enter_links(share, p)
    else:
        _serve(p, now)
    p.queue = push(share.flows, p.queue, flow, p.served + size)
    p.flows += 1
    _mark_route(share, p)


@leaf
def take_finished(share: FairShare, now: float) -> int:
    """A flow that has got all its bytes by now, taken out; NONE if there is no more. O(links of its route + log)."""
    pair = share.state[ENDS]
    if pair == NONE or share.pairs[pair].key > now * (1.0 + SAME_MOMENT):
        return NONE
    p = share.pairs[pair]
    _serve(p, now)
    flow = p.queue
    p.served = max(p.served, share.flows[flow].key)
    p.queue = pop(share.flows, flow)
    p.flows -= 1
    _mark_route(share, p)
    if p.flows == 0:
        _leave_links(share, p)
        share.state[ENDS] = pop(share.pairs, pair)
    elif share.flows[p.queue].key - p.served > p.rate * now * SAME_MOMENT:
        share.state[ENDS] = pop(share.pairs, pair)  # until rates are worked out
    p.timed = NONE
    return int(flow)


@leaf
def cut_flow(share: FairShare, pair: int, flow: int, now: float) -> None:
    """Take a flow out before it is over: O(links of its route + log)."""
    p = share.pairs[pair]
    _serve(p, now)
    p.queue = remove(share.flows, p.queue, flow)
    p.flows -= 1
    p.timed = NONE
    _mark_route(share, p)
    if p.flows == 0:
        _leave_links(share, p)
        if contains(share.pairs, pair):
            share.state[ENDS] = remove(share.pairs, share.state[ENDS], pair)


@leaf
def set_capacity(share: FairShare, link: int, capacity: float) -> None:
    """From now on a link carries `capacity` bytes/s, possibly none. O(1)."""
    share.links[link].capacity = capacity
    _mark_link(share, link)


@leaf
def update_rates(share: FairShare, now: float) -> None:
    """New rates for all pairs connected with changes: O(rounds * their links + links of their routes).

    The link with the least for each of its flows comes first: its flows have equal parts of what is left of it.
    """
    if share.state[CHANGED] == 0:
        return
    count = _connected(share)
    _fill_links(share, count)
    for m in range(count):
        pair = share.pairs[m].member
        p = share.pairs[pair]
        if p.share == p.rate and p.queue == p.timed:
            continue
        _serve(p, now)
        p.rate = p.share
        p.timed = p.queue
        left = share.flows[p.queue].key - p.served
        end = now if left <= 0.0 else np.inf if p.rate == 0.0 else now + left / p.rate
        share.state[ENDS] = update(share.pairs, share.state[ENDS], pair, end)
    share.state[CHANGED] = 0
    share.state[MARK] += 1


@leaf
def _connected(share: FairShare) -> int:
    """List all pairs and links that can be reached from changed links, to work out their rates; how many pairs."""
    count = 0
    i = 0
    while i < share.state[CHANGED]:
        link = share.links[share.links[i].changed]
        link.left = link.capacity
        link.users = 0.0
        hop = link.head
        while hop != NONE:
            pair = share.hops[hop].pair
            p = share.pairs[pair]
            link.users += p.flows
            if p.mark != share.state[MARK]:
                p.mark = share.state[MARK]
                share.pairs[count].member = pair
                count += 1
                p.share = -1.0
                _mark_route(share, p)
            hop = share.hops[hop].next
        i += 1
    return count


@leaf
def _fill_links(share: FairShare, count: int) -> None:
    """Rates of the first `count` listed pairs, on the links that have changed."""
    rate = 0.0
    in_use = share.state[CHANGED]
    open_pairs = count
    while open_pairs > 0:
        in_use, tightest, least = _tightest(share, in_use)
        if tightest == NONE:  # only links without a limit are left
            for m in range(count):
                p = share.pairs[share.pairs[m].member]
                p.share = np.inf if p.share < 0.0 else p.share
            return
        rate = max(rate, least)  # grows from round to round; rounding must not say otherwise
        hop = share.links[tightest].head
        while hop != NONE:
            p = share.pairs[share.hops[hop].pair]
            if p.share < 0.0:
                p.share = rate
                open_pairs -= 1
                for other in range(p.first, p.last):
                    link = share.links[share.hops[other].link]
                    link.left -= rate * p.flows
                    link.users -= p.flows
            hop = share.hops[hop].next


@leaf
def _tightest(share: FairShare, in_use: int) -> tuple[int, int, float]:
    """The link with least capacity for each of its flows without a rate; links without such flows are dropped."""
    tightest, least = NONE, np.inf
    kept = 0
    for i in range(in_use):
        link = share.links[i].changed
        users = share.links[link].users
        if users > 0.0:
            share.links[kept].changed = link
            kept += 1
            each = share.links[link].left / users
            if each < least:
                least = each
                tightest = link
    return kept, tightest, least


@leaf
def _serve(p: np.record, now: float) -> None:
    """What the flows of a pair have got by now."""
    if now > p.since:
        p.served += p.rate * (now - p.since)
        p.since = now


@leaf
def _mark_route(share: FairShare, p: np.record) -> None:
    for hop in range(p.first, p.last):
        _mark_link(share, share.hops[hop].link)


@leaf
def _mark_link(share: FairShare, link: int) -> None:
    if share.links[link].mark != share.state[MARK]:
        share.links[link].mark = share.state[MARK]
        share.links[share.state[CHANGED]].changed = link
        share.state[CHANGED] += 1


@leaf
def _enter_links(share: FairShare, p: np.record) -> None:
    """Put the hops of a pair into the lists of their links."""
    for hop in range(p.first, p.last):
        link = share.links[share.hops[hop].link]
        share.hops[hop].next = link.head
        share.hops[hop].previous = NONE
        if link.head != NONE:
            share.hops[link.head].previous = hop
        link.head = hop


@leaf
def _leave_links(share: FairShare, p: np.record) -> None:
    for hop in range(p.first, p.last):
        before, after = share.hops[hop].previous, share.hops[hop].next
        if before != NONE:
            share.hops[before].next = after
        else:
            share.links[share.hops[hop].link].head = after
        if after != NONE:
            share.hops[after].previous = before
