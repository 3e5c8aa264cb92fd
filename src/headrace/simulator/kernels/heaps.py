"""Three heaps in arrays: events by time, pairs by the end of their first flow, flows of a pair by goal."""

from __future__ import annotations

from headrace.arrays.compiling import inner


@inner
def put_event(events, count, time, node):
    """Add an event to those before it. O(log count)."""
    at = count
    while at > 0:
        up = (at - 1) >> 1
        if events[up].time <= time:
            break
        events[at].time = events[up].time
        events[at].node = events[up].node
        at = up
    events[at].time = time
    events[at].node = node


@inner
def drop_event(events, count):
    """Remove the earliest of so many events. O(log count)."""
    count -= 1
    time, node = events[count].time, events[count].node
    at = 0
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and events[below + 1].time < events[below].time:
            below += 1
        if events[below].time >= time:
            break
        events[at].time = events[below].time
        events[at].node = events[below].node
        at = below
    events[at].time = time
    events[at].node = node


@inner
def settle_pair(pairs, order, count, pair, at):
    """Put a pair where it belongs among `order[:count]`, which is a heap but for the entry `at`. O(log count)."""
    end = pairs[pair].end
    while at > 0:
        up = (at - 1) >> 1
        if pairs[order[up]].end <= end:
            break
        order[at] = order[up]
        pairs[order[at]].place = at
        at = up
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and pairs[order[below + 1]].end < pairs[order[below]].end:
            below += 1
        if pairs[order[below]].end >= end:
            break
        order[at] = order[below]
        pairs[order[at]].place = at
        at = below
    order[at] = pair
    pairs[pair].place = at


@inner
def drop_pair(pairs, order, count, pair):
    """Take a pair out of a heap of so many. O(log count)."""
    at = pairs[pair].place
    pairs[pair].place = -1
    count -= 1
    if at < count:
        settle_pair(pairs, order, count, order[count], at)


@inner
def meld(flows, a, b):
    """One pairing heap of two, neither of them empty; its root."""
    if flows[b].goal < flows[a].goal:
        a, b = b, a
    flows[b].sibling = flows[a].child
    flows[a].child = b
    return a


@inner
def without_root(flows, root):
    """The pairing heap without its root, or -1: subtrees are melded by twos, then all. O(log flows) amortised."""
    paired = -1
    tree = flows[root].child
    while tree >= 0:
        other = flows[tree].sibling
        if other < 0:
            flows[tree].sibling = paired
            paired = tree
            break
        rest = flows[other].sibling
        tree = meld(flows, tree, other)
        flows[tree].sibling = paired
        paired = tree
        tree = rest
    root = paired
    if root < 0:
        return root
    tree = flows[root].sibling
    while tree >= 0:
        rest = flows[tree].sibling
        root = meld(flows, root, tree)
        tree = rest
    return root
