"""Requests for copies of items, their queues on links, and the planned order of transfers.

A request is in one of five modes:

- NEAREST: it is queued on the narrowest link of its route and served from the nearest copy when its links are free;
- FIXED: as above, but only from the source that a plan names, which has the item;
- WAITING: it becomes FIXED when the item arrives at its source;
- ORDERED (fifo links, and fair links if the plan takes turns): it starts when the item is at its source and the request
  is first in the planned order of every link of its route on which transfers take turns. It waits for its turn even if
  a link is idle;
- HELD (fair links): it becomes WAITING or FIXED when a task that reads the item is among the first of its host's queue,
  as many for each core as are prefetched. Sent at once, it would take bandwidth from transfers that are needed sooner.

A planned request that its source can no longer serve, because the copy or the route is gone, becomes NEAREST.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner, leaf
from headrace.core.state import (
    ABSENT,
    CONTENTION,
    COPIES,
    FAIR,
    FIFO,
    FIXED,
    HELD,
    LINK_ORDER,
    NEAREST,
    ORDERED,
    PLANNED,
    PLANNED_REQUESTS,
    PREFETCH,
    PRESENT,
    REQUESTED,
    REQUESTS,
    WAITING,
)
from headrace.core.transitions.copies import copy_at, find_copy, is_needed, is_present, status_of
from headrace.core.transitions.queues import link_in, link_out, mark_queue


@leaf
def new_request(problem, state, item, source, target):
    """Create a request for the queue of its route's narrowest link; the target's copy is marked as requested."""
    if state.counters[REQUESTS] == len(state.free_requests):
        purge(problem, state)
    used = state.counters[REQUESTS]
    request = state.free_requests[len(state.free_requests) - 1 - used]
    state.counters[REQUESTS] = used + 1
    state.request_item[request] = item
    state.request_source[request] = source
    state.request_target[request] = target
    state.request_queue[request] = queue_of(problem, state, source, target)
    state.copy_status[copy_at(state, item, target)] = REQUESTED
    return request


@leaf
def queue_of(problem, state, source, target):
    bottleneck = problem.route_bottleneck[source * len(state.place_up) + target]
    return len(state.link_up) if bottleneck < 0 else bottleneck


@leaf
def request_item(problem, state, item, source, target, rank):
    """Request a copy from any holder, queued by rank; NaN: at the end. `source` is where the item is or will be."""
    if status_of(state, item, target) != ABSENT or not state.place_up[target]:
        return
    enqueue(state, new_request(problem, state, item, source, target), rank, NEAREST)


@leaf
def enqueue(state, request, rank, mode):
    """Enqueue a request on its link by rank; NaN: at the end."""
    queue = state.request_queue[request]
    at = state.request_tail[queue]
    if np.isnan(rank):
        rank = state.request_rank[at] if at >= 0 else 0.0
    else:
        while at >= 0 and state.request_rank[at] > rank:
            at = state.request_previous[at]
    state.request_rank[request] = rank
    state.request_mode[request] = mode
    link_in(
        state.request_next, state.request_previous, state.request_head, state.request_tail, queue, request, at
    )
    mark_queue(state, queue)


@leaf
def request_planned(problem, state, item, source, target, rank, hold, in_turn):
    """Request a copy from its planned source, in planned order.

    On fair links: `hold`, only when it is prefetched; `in_turn`, when it is first on every slow link of its route.
    """
    if not state.place_up[target]:
        return
    record = copy_at(state, item, target)
    if state.copy_status[record] != ABSENT:
        return
    if state.copy_needed[record] == 0 and target != problem.destination[item]:
        state.copy_relayed[record] = 1
    sender = copy_at(state, item, source)
    held = state.copy_status[sender] == PRESENT and state.place_up[source]
    expected = state.place_up[source] and (state.copy_status[sender] != ABSENT or not state.exists[item])
    request = new_request(problem, state, item, source, target)
    if not (held or expected):
        enqueue(state, request, rank, NEAREST)
        return
    state.copy_request[record] = request
    state.counters[PLANNED_REQUESTS] += 1
    add_outgoing(state, sender, request)
    at = source * len(state.place_up) + target
    turns = problem.policy[CONTENTION] == FIFO or (in_turn and problem.policy[CONTENTION] == FAIR)
    if turns and problem.policy[LINK_ORDER] == PLANNED and has_turns(problem, at):
        put_in_order(problem, state, request, rank)
        return
    state.request_rank[request] = rank
    state.request_mode[request] = HELD
    if not hold or problem.policy[CONTENTION] != FAIR or target == problem.destination[item]:
        release_request(state, request, held)


@leaf
def release_request(state, request, held):
    """Let a planned request start as soon as its source has the item; `held`: it has it now."""
    if held:
        enqueue(state, request, state.request_rank[request], FIXED)
    else:
        state.request_mode[request] = WAITING


@leaf
def release_path(state, item, target):
    """Release the planned request for a copy at a place, and those for the relays on its path."""
    record = find_copy(state, item, target)
    while record >= 0:
        request = state.copy_request[record]
        if request < 0 or state.request_mode[request] != HELD:
            return
        source = state.request_source[request]
        record = find_copy(state, item, source)
        release_request(state, request, state.copy_status[record] == PRESENT and state.place_up[source])


@leaf
def add_outgoing(state, sender, request):
    first = state.copy_outgoing[sender]
    state.outgoing_next[request] = first
    state.outgoing_previous[request] = -1
    if first >= 0:
        state.outgoing_previous[first] = request
    state.copy_outgoing[sender] = request


@leaf
def remove_outgoing(state, request):
    before, after = state.outgoing_previous[request], state.outgoing_next[request]
    if before >= 0:
        state.outgoing_next[before] = after
    else:
        sender = find_copy(state, state.request_item[request], state.request_source[request])
        state.copy_outgoing[sender] = after
    if after >= 0:
        state.outgoing_previous[after] = before


@leaf
def has_turns(problem, route):
    """Whether transfers take turns on any link of a route."""
    found = False
    for k in range(problem.route_ptr[route], problem.route_ptr[route + 1]):
        found = found or problem.route_turns[k] != 0
    return found


@leaf
def put_in_order(problem, state, request, rank):
    """Insert a request into the planned order of every link of its route, searching from the end.

    Links on which transfers take no turns have no order. O(links) when requests arrive in order.
    """
    state.request_rank[request] = rank
    state.request_mode[request] = ORDERED
    at = state.request_source[request] * len(state.place_up) + state.request_target[request]
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        if not problem.route_turns[k]:
            continue
        link = problem.route_links[k]
        entry = request * problem.longest_route + (k - problem.route_ptr[at])
        before = state.order_tail[link]
        while before >= 0 and state.request_rank[before // problem.longest_route] > rank:
            before = state.order_previous[before]
        link_in(
            state.order_next, state.order_previous, state.order_head, state.order_tail, link, entry, before
        )
    mark_queue(state, state.request_queue[request])


@leaf
def take_out_of_order(problem, state, request):
    """Remove a request from the planned order of its links; the requests that are first now may be able to start."""
    at = state.request_source[request] * len(state.place_up) + state.request_target[request]
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        if not problem.route_turns[k]:
            continue
        link = problem.route_links[k]
        entry = request * problem.longest_route + (k - problem.route_ptr[at])
        link_out(state.order_next, state.order_previous, state.order_head, state.order_tail, link, entry)
        mark_first_in_order(problem, state, link)


@leaf
def mark_first_in_order(problem, state, link):
    first = state.order_head[link]
    if first >= 0:
        mark_queue(state, state.request_queue[first // problem.longest_route])


@leaf
def is_its_turn(problem, state, request):
    """Whether a request is first in the planned order of every link of its route that has one, and all are idle."""
    at = state.request_source[request] * len(state.place_up) + state.request_target[request]
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        link = problem.route_links[k]
        entry = request * problem.longest_route + (k - problem.route_ptr[at])
        if problem.route_turns[k] and (state.order_head[link] != entry or state.link_busy[link] > 0):
            return False
    return True


@leaf
def leave_plan(problem, state, request):
    """Remove a planned request from all lists of planned requests."""
    record = find_copy(state, state.request_item[request], state.request_target[request])
    state.copy_request[record] = -1
    state.counters[PLANNED_REQUESTS] -= 1
    remove_outgoing(state, request)
    if state.request_mode[request] == ORDERED:
        take_out_of_order(problem, state, request)


@leaf
def drop_request(problem, state, request):
    """Delete a request that has been served or is no longer needed."""
    mode = state.request_mode[request]
    if mode != NEAREST:
        leave_plan(problem, state, request)
    if mode in (NEAREST, FIXED):
        unqueue(state, request)
    used = state.counters[REQUESTS] - 1
    state.counters[REQUESTS] = used
    state.free_requests[len(state.free_requests) - 1 - used] = request


@leaf
def unqueue(state, request):
    link_out(
        state.request_next,
        state.request_previous,
        state.request_head,
        state.request_tail,
        state.request_queue[request],
        request,
    )


@leaf
def abandon_source(problem, state, request):
    """Serve a planned request from the nearest copy instead."""
    leave_plan(problem, state, request)
    item, target = state.request_item[request], state.request_target[request]
    if state.request_mode[request] == FIXED:
        unqueue(state, request)
    if state.holder[item] >= 0:
        state.request_source[request] = state.holder[item]
        state.request_queue[request] = queue_of(problem, state, state.holder[item], target)
    enqueue(state, request, state.request_rank[request], NEAREST)


@leaf
def abandon_outgoing(problem, state, record):
    """The item will not be at this place as planned: serve requests that named it as source from other copies."""
    while state.copy_outgoing[record] >= 0:
        abandon_source(problem, state, state.copy_outgoing[record])


@leaf
def activate_outgoing(state, record):
    """Activate the planned requests whose source is this place, where the item has arrived."""
    request = state.copy_outgoing[record]
    while request >= 0:
        if state.request_mode[request] == WAITING:
            enqueue(state, request, state.request_rank[request], FIXED)
        elif state.request_mode[request] == ORDERED:
            mark_queue(state, state.request_queue[request])
        request = state.outgoing_next[request]


@leaf
def is_open(state, request):
    """Whether the requested copy is neither present nor in transit."""
    return status_of(state, state.request_item[request], state.request_target[request]) == REQUESTED


@leaf
def take_back(problem, state, request):
    """Withdraw a request that is no longer needed."""
    record = find_copy(state, state.request_item[request], state.request_target[request])
    still_open = state.copy_status[record] == REQUESTED
    drop_request(problem, state, request)
    if still_open:
        state.copy_status[record] = ABSENT
        state.copy_relayed[record] = 0
        abandon_outgoing(problem, state, record)


@leaf
def purge(problem, state):
    """Make room by dropping queued requests that are already satisfied or that no task needs."""
    for queue in range(len(state.request_head)):
        request = state.request_head[queue]
        while request >= 0:
            following = state.request_next[request]
            if not wanted(problem, state, state.request_item[request], state.request_target[request]):
                take_back(problem, state, request)
            elif not is_open(state, request):
                drop_request(problem, state, request)
            request = following


@leaf
def wanted(problem, state, item, target):
    """Whether a copy at this place is still needed."""
    if target == problem.destination[item] or state.replica[item] == target:
        return True
    record = find_copy(state, item, target)
    return record >= 0 and (state.copy_needed[record] > 0 or state.copy_relayed[record] > 0)


@leaf
def request_inputs(problem, state, task):
    """Request the existing inputs of an assigned task that are neither present nor requested, most used first, and
    release planned requests for its inputs."""
    place = problem.host_place[state.assigned[task]]
    state.inputs_requested[task] = 1
    release_inputs(problem, state, task)
    while True:
        best = -1
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            item = problem.reads[k]
            if (
                not problem.no_transfer[item]
                and state.exists[item]
                and status_of(state, item, place) == ABSENT
                and (best < 0 or state.pending_readers[item] > state.pending_readers[best])
            ):
                best = item
        if best < 0:
            return
        request_item(problem, state, best, state.holder[best], place, np.nan)


@leaf
def release_inputs(problem, state, task):
    """Release planned requests for the inputs of an assigned task."""
    if problem.policy[CONTENTION] == FAIR:
        place = problem.host_place[state.assigned[task]]
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            release_path(state, problem.reads[k], place)


@leaf
def prefetch(problem, state, host):
    """Prefetch the inputs of the first tasks in a host's queue; those that are planned, of as many for each core."""
    task = state.queue_head[host]
    ahead = problem.policy[PREFETCH]
    cores = problem.core_ptr[host + 1] - problem.core_ptr[host]
    planned = problem.policy[CONTENTION] == FAIR and state.counters[PLANNED_REQUESTS] > 0
    for k in range(ahead * cores if planned else ahead):
        if task < 0:
            return
        if not state.inputs_requested[task]:
            if k < ahead:
                request_inputs(problem, state, task)
            else:
                release_inputs(problem, state, task)
        task = state.queue_next[task]


@entry
def fetch_all(problem, state, items, sources, targets, ranks, hold, in_turn, planned):
    """Request planned transfers in planned order, including transfers of items that do not exist yet.

    With `planned`, they are sent from the planned sources; otherwise each from the nearest copy when its turn comes.
    """
    for k in range(len(items)):
        if problem.no_transfer[items[k]]:
            continue
        if planned:
            request_planned(problem, state, items[k], sources[k], targets[k], ranks[k], hold[k], in_turn[k])
        else:
            request_item(problem, state, items[k], sources[k], targets[k], ranks[k])


@entry
def replicate_all(problem, state, items, targets):
    """Request replicas of existing items at places that have none."""
    for k in range(len(items)):
        item, target = items[k], targets[k]
        if state.exists[item] and not problem.no_transfer[item] and state.copy_count[item] > 0:
            state.replica[item] = target
            request_item(problem, state, item, state.holder[item], target, np.inf)


@inner
def planned_requests(state):
    """All requests with a planned source: O(copy records), if there are any."""
    found = np.empty(state.counters[PLANNED_REQUESTS], np.int32)
    n = 0
    if len(found) > 0:
        for record in range(state.counters[COPIES]):
            if state.copy_request[record] >= 0:
                found[n] = state.copy_request[record]
                n += 1
    return found


@entry
def withdraw_all(problem, state):
    """Withdraw all requests that no queued task needs; the next plan creates its own."""
    for request in planned_requests(state):
        if (
            state.copy_request[find_copy(state, state.request_item[request], state.request_target[request])]
            == request
        ):
            withdraw(problem, state, request)
    for queue in range(len(state.request_head)):
        request = state.request_head[queue]
        while request >= 0:
            following = state.request_next[request]
            withdraw(problem, state, request)
            request = following


@leaf
def withdraw(problem, state, request):
    """Withdraw a request unless a queued task needs it or it delivers an existing result."""
    item, target = state.request_item[request], state.request_target[request]
    ready_result = target == problem.destination[item] and state.exists[item]
    if not ready_result and not is_needed(state, item, target):
        take_back(problem, state, request)


@inner
def release_from_plan(problem, state):
    """Release all requests from planned sources and orders; returns whether there were any."""
    found = planned_requests(state)
    for request in found:
        abandon_source(problem, state, request)
    return len(found) > 0


@leaf
def links_are_free(problem, state, source, target):
    """Whether a transfer could start now: every link up, and under fifo not in use."""
    at = source * len(state.place_up) + target
    alone = problem.policy[CONTENTION] == FIFO
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        link = problem.route_links[k]
        if not state.link_up[link] or (alone and state.link_busy[link] > 0):
            return False
    return problem.route_seconds_per_byte[at] < np.inf


@leaf
def nearest_source(problem, state, item, target):
    """The place with the fastest transfer of an item over free links, ties to the fewest links; -1: none now."""
    places = len(state.place_up)
    if state.copy_count[item] == 1:
        only = state.holder[item]
        return only if links_are_free(problem, state, only, target) else -1
    best, least, links = -1, np.inf, 0
    record = state.item_copies[item]
    while record >= 0:
        source = state.copy_place[record]
        if state.copy_status[record] == PRESENT and state.place_up[source] and source != target:
            at = source * places + target
            cost = problem.route_latency[at] + state.size[item] * problem.route_seconds_per_byte[at]
            crossed = problem.route_ptr[at + 1] - problem.route_ptr[at]
            equal = cost == least and (crossed < links or (crossed == links and source < best))
            if (cost < least or equal) and links_are_free(problem, state, source, target):
                best, least, links = source, cost, crossed
        record = state.copy_next[record]
    return best


@leaf
def source_of(problem, state, request):
    """Where a queued request can be served from now; -1: nowhere."""
    item, target = state.request_item[request], state.request_target[request]
    if state.request_mode[request] == FIXED:
        source = state.request_source[request]
        return source if links_are_free(problem, state, source, target) else -1
    return nearest_source(problem, state, item, target)


@leaf
def can_send(state, request):
    """Whether the planned source of a request has the item."""
    source = state.request_source[request]
    return state.place_up[source] and is_present(state, state.request_item[request], source)
