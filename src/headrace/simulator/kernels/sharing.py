"""Flows that share links max-min fairly, by pairs of places.

When flows join or end, only the pairs that are connected with them, over links that both use, can get another rate;
the rest is left alone.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import inner
from headrace.simulator.kernels.heaps import drop_pair, meld, settle_pair, without_root
from headrace.simulator.kernels.records import MARK, PAIRS, TOUCHED


@inner
def join(flows, pairs, steps, links, touched, counts, pair, flow, size, now):
    """A transfer becomes a flow: O(links of its way)."""
    p = pairs[pair]
    flows[flow].child = -1
    if p.flows == 0:
        p.served = 0.0
        p.since = now
        p.rate = 0.0
        for s in range(p.first, p.last):
            link = steps[s].link
            head = links[link].head
            steps[s].after = head
            steps[s].before = -1
            if head >= 0:
                steps[head].before = s
            links[link].head = s
    else:
        _catch_up(p, now)
    flows[flow].goal = p.served + size
    p.root = flow if p.flows == 0 else meld(flows, p.root, flow)
    p.flows += 1
    _touch(steps, links, touched, counts, p)


@inner
def end_first(flows, pairs, steps, links, touched, order, counts, pair, now):
    """The flow with the least goal is over: O(links of its way + log flows + log pairs)."""
    p = pairs[pair]
    _catch_up(p, now)
    p.served = max(p.served, flows[p.root].goal)
    p.root = without_root(flows, p.root)
    p.flows -= 1
    _touch(steps, links, touched, counts, p)
    if p.flows > 0:
        return
    drop_pair(pairs, order, counts[PAIRS], pair)
    counts[PAIRS] -= 1
    for s in range(p.first, p.last):
        before, after = steps[s].before, steps[s].after
        if before >= 0:
            steps[before].after = after
        else:
            links[steps[s].link].head = after
        if after >= 0:
            steps[after].before = before


@inner
def over_now(flows, pairs, pair, now):
    """Whether the pair's first flow is over, up to what rounding does to the moment."""
    p = pairs[pair]
    return p.flows > 0 and flows[p.root].goal - p.served <= p.rate * now * 1e-14


@inner
def _catch_up(p, now):
    p.served += p.rate * (now - p.since)
    p.since = now


@inner
def _touch(steps, links, touched, counts, p):
    for s in range(p.first, p.last):
        link = steps[s].link
        if links[link].mark != counts[MARK]:
            links[link].mark = counts[MARK]
            touched[counts[TOUCHED]] = link
            counts[TOUCHED] += 1


@inner
def share(flows, pairs, steps, links, touched, members, order, counts, now):
    """New rates for all pairs connected with the touched links: O(rounds * their links + steps of their ways).

    The most contended link comes first: its flows get equal shares of what is left of it, and so on.
    """
    count = _connected(pairs, steps, links, touched, members, counts, now)
    in_use = counts[TOUCHED]
    least = 0.0
    unsettled = count
    while unsettled > 0:
        tight = -1
        best = np.inf
        kept = 0
        for i in range(in_use):
            link = touched[i]
            users = links[link].users
            if users > 0.0:
                touched[kept] = link
                kept += 1
                each = links[link].left / users
                if each < best:
                    best = each
                    tight = link
        in_use = kept
        least = max(least, best)  # shares only grow from round to round; rounding must not say otherwise
        s = links[tight].head
        while s >= 0:
            p = pairs[steps[s].pair]
            if p.rate < 0.0:
                p.rate = least
                unsettled -= 1
                for other in range(p.first, p.last):
                    links[steps[other].link].left -= least * p.flows
                    links[steps[other].link].users -= p.flows
            s = steps[s].after
    for m in range(count):
        p = pairs[members[m]]
        p.end = now + max(0.0, flows[p.root].goal - p.served) / p.rate
        at = p.place
        if at < 0:
            at = counts[PAIRS]
            counts[PAIRS] += 1
        settle_pair(pairs, order, counts[PAIRS], members[m], at)
    counts[TOUCHED] = 0
    counts[MARK] += 1


@inner
def _connected(pairs, steps, links, touched, members, counts, now):
    """All pairs and links that can be reached from the touched links; links are counted for sharing."""
    count = 0
    i = 0
    while i < counts[TOUCHED]:
        link = links[touched[i]]
        link.left = link.bandwidth
        link.users = 0.0
        s = link.head
        while s >= 0:
            p = pairs[steps[s].pair]
            link.users += p.flows
            if p.mark != counts[MARK]:
                p.mark = counts[MARK]
                members[count] = steps[s].pair
                count += 1
                _catch_up(p, now)
                p.rate = -1.0
                _touch(steps, links, touched, counts, p)
            s = steps[s].after
        i += 1
    return count
