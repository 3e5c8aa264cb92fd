"""Where data lies, what is asked for, and which transfer goes next on each link."""

from __future__ import annotations

import numpy as np

from headrace.core.state import (
    ABSENT,
    CONTENTION,
    DELIVERED,
    DROP,
    FIFO,
    HERE,
    HYBRID,
    IN_ORDER,
    LIMITED,
    LINK_ORDER,
    LOOK,
    MOVE,
    MOVES,
    MOVING,
    ORDERS,
    PREFETCH,
    RELAY,
    REQUESTED,
    REQUESTS,
    STRICT,
)
from headrace.core.transitions.jit import entry, inner
from headrace.core.transitions.queues import into_pool, link_in, link_out, make_startable


@inner
def order(state, kind, a, b, c):
    """Tell the back end to do something."""
    k = state.count[ORDERS]
    state.command_kind[k] = kind
    state.command_a[k] = a
    state.command_b[k] = b
    state.command_c[k] = c
    state.count[ORDERS] = k + 1


@inner
def request(problem, state, item, source, target, rank):
    """Ask for a copy of an item at a place; `source` is where it lies or will be made. By rank; NaN: at the end."""
    places = len(state.place_up)
    if state.present[item * places + target] != ABSENT or not state.place_up[target]:
        return
    if state.count[REQUESTS] == len(state.free_requests):
        purge(problem, state)
    used = state.count[REQUESTS]
    slot = state.free_requests[len(state.free_requests) - 1 - used]
    state.count[REQUESTS] = used + 1
    home = problem.route_bottleneck[source * places + target]
    queue = len(state.link_up) if home < 0 else home
    state.request_item[slot] = item
    state.request_source[slot] = source
    state.request_target[slot] = target
    state.request_queue[slot] = queue
    at = state.request_tail[queue]
    if np.isnan(rank):
        rank = state.request_rank[at] if at >= 0 else 0.0
    else:
        while at >= 0 and state.request_rank[at] > rank:
            at = state.request_previous[at]
    state.request_rank[slot] = rank
    link_in(
        state.request_next, state.request_previous, state.request_head, state.request_tail, queue, slot, at
    )
    state.present[item * places + target] = REQUESTED


@inner
def drop_request(state, slot):
    """The request is served or no longer wanted."""
    link_out(
        state.request_next,
        state.request_previous,
        state.request_head,
        state.request_tail,
        state.request_queue[slot],
        slot,
    )
    used = state.count[REQUESTS] - 1
    state.count[REQUESTS] = used
    state.free_requests[len(state.free_requests) - 1 - used] = slot


@inner
def purge(problem, state):
    """Drop requests that were served in another way or serve nobody, so that there is room for new ones."""
    for queue in range(len(state.request_head)):
        slot = state.request_head[queue]
        while slot >= 0:
            following = state.request_next[slot]
            if not wanted(problem, state, state.request_item[slot], state.request_target[slot]):
                take_back(state, slot)
            elif not is_open(state, slot):
                drop_request(state, slot)
            slot = following


@inner
def is_open(state, slot):
    """Whether what a request asks for is neither there nor on its way."""
    return (
        state.present[state.request_item[slot] * len(state.place_up) + state.request_target[slot]]
        == REQUESTED
    )


@inner
def take_back(state, slot):
    """Nobody asks for this any more."""
    if is_open(state, slot):
        state.present[state.request_item[slot] * len(state.place_up) + state.request_target[slot]] = ABSENT
    drop_request(state, slot)


@inner
def ask(problem, state, task):
    """Ask for the inputs of an assigned task that exist and are not on their way, the most used first."""
    place = problem.host_place[state.assigned[task]]
    places = len(state.place_up)
    state.inputs_requested[task] = 1
    while True:
        best = -1
        for k in range(problem.read_ptr[task], problem.read_ptr[task + 1]):
            item = problem.reads[k]
            if (
                not problem.no_transfer[item]
                and state.exists[item]
                and state.present[item * places + place] == ABSENT
                and (best < 0 or state.pending_readers[item] > state.pending_readers[best])
            ):
                best = item
        if best < 0:
            return
        request(problem, state, best, state.holder[best], place, np.nan)


@inner
def ask_ahead(problem, state, host):
    """Ask for the inputs of the first tasks in a host's queue."""
    task = state.queue_head[host]
    for _ in range(problem.policy[PREFETCH]):
        if task < 0:
            return
        if not state.inputs_requested[task]:
            ask(problem, state, task)
        task = state.queue_next[task]


@inner
def wanted(problem, state, item, target):
    """Whether a copy at this place still serves somebody."""
    if state.needed[item * len(state.place_up) + target] > 0:
        return True
    if target == problem.destination[item]:
        return True
    if problem.policy[RELAY] and state.relayed[item * len(state.place_up) + target]:
        return True
    return state.replica[item] == target


@inner
def way_is_free(problem, state, source, target):
    """Whether a transfer could start now: every link there, and with fifo links none in use."""
    at = source * len(state.place_up) + target
    fifo = problem.policy[CONTENTION] == FIFO
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        link = problem.route_links[k]
        if not state.link_up[link] or (fifo and state.link_busy[link] > 0):
            return False
    return problem.route_seconds_per_byte[at] < np.inf


@inner
def best_source(problem, state, item, target):
    """The place that holds the item and sends it quickest over a free way, of equals over the fewest links; or -1."""
    places = len(state.place_up)
    if state.copies[item] == 1:
        only = state.holder[item]
        return only if way_is_free(problem, state, only, target) else -1
    best, least, links = -1, np.inf, 0
    for source in range(places):
        if state.present[item * places + source] == HERE and state.place_up[source] and source != target:
            at = source * places + target
            cost = problem.route_latency[at] + problem.size[item] * problem.route_seconds_per_byte[at]
            crossed = problem.route_ptr[at + 1] - problem.route_ptr[at]
            if (cost < least or (cost == least and crossed < links)) and way_is_free(
                problem, state, source, target
            ):
                best, least, links = source, cost, crossed
    return best


@inner
def fits(problem, state, place, size):
    """Whether a site has room; makes some by dropping copies that nobody there needs."""
    if not problem.policy[LIMITED]:
        return True
    site = problem.place_site[place]
    for other in range(len(state.place_up)):
        if state.storage_used[site] + size <= problem.storage[site]:
            return True
        if problem.place_site[other] == site and other != problem.origin and state.place_up[other]:
            make_room(problem, state, other, problem.storage[site] - size)
    return state.storage_used[site] + size <= problem.storage[site]


@inner
def make_room(problem, state, place, most):
    """Drop copies at a place until its site holds at most so much; as many as there is room to say so."""
    site = problem.place_site[place]
    places = len(state.place_up)
    for item in range(len(state.exists)):
        full = 2 * state.count[ORDERS] > len(state.command_kind)
        if state.storage_used[site] <= most or full:
            return
        at = item * places + place
        if state.present[at] == HERE and state.needed[at] == 0 and place != problem.destination[item]:
            spare = state.copies[item] > 1 or (
                problem.producer[item] >= 0 and not still_needed(problem, state, item)
            )
            if spare and not being_sent(state, item, place):
                drop_copy(problem, state, item, place)


@inner
def being_sent(state, item, place):
    for k in range(state.count[MOVES]):
        slot = state.live_transfers[k]
        if state.transfer_item[slot] == item and state.transfer_source[slot] == place:
            return True
    return False


@inner
def drop_copy(problem, state, item, place):
    """Remove a copy that is not needed there; without any, the item would have to be made again."""
    places = len(state.place_up)
    state.present[item * places + place] = ABSENT
    state.storage_used[problem.place_site[place]] -= problem.size[item]
    state.copies[item] -= 1
    find_holder(state, item)
    if state.copies[item] == 0:
        state.exists[item] = 0
    order(state, DROP, item, place, -1)


@inner
def find_holder(state, item):
    places = len(state.place_up)
    state.holder[item] = -1
    for place in range(places):
        if state.present[item * places + place] == HERE and state.place_up[place]:
            state.holder[item] = place
            return


@inner
def still_needed(problem, state, item):
    """Whether a task that has not begun reads it, or it is a result that has not returned or never will."""
    if problem.result_anywhere[item] or (problem.destination[item] >= 0 and not state.delivered[item]):
        return True
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        if not state.done[task] and state.run_host[task] < 0:
            return True
    return False


@inner
def begin_move(problem, state, slot, source, now):
    """Start the transfer of a request and take the request off its queue."""
    item, target = state.request_item[slot], state.request_target[slot]
    places = len(state.place_up)
    drop_request(state, slot)
    live = state.count[MOVES]
    move = state.free_transfers[len(state.free_transfers) - 1 - live]
    state.transfer_item[move] = item
    state.transfer_source[move] = source
    state.transfer_target[move] = target
    state.transfer_rank[move] = state.request_rank[slot]
    state.transfer_start[move] = now
    state.live_transfers[live] = move
    state.live_position[move] = live
    state.count[MOVES] = live + 1
    state.present[item * places + target] = MOVING
    state.storage_used[problem.place_site[target]] += problem.size[item]
    at = source * places + target
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        state.link_busy[problem.route_links[k]] += 1
    order(state, MOVE, move, source, target)


@inner
def end_move(problem, state, move):
    """The links of a transfer are free again and its number may be used anew."""
    places = len(state.place_up)
    at = state.transfer_source[move] * places + state.transfer_target[move]
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        state.link_busy[problem.route_links[k]] -= 1
    live = state.count[MOVES] - 1
    where = state.live_position[move]
    last = state.live_transfers[live]
    state.live_transfers[where] = last
    state.live_position[last] = where
    state.count[MOVES] = live
    state.free_transfers[len(state.free_transfers) - 1 - live] = move


@inner
def worth_waiting(problem, state, item, candidate, now):
    """Hybrid queues: whether an output that is not ready is due before the next transfer would be over; if it is
    late already, it is not waited for."""
    maker = problem.producer[item]
    if maker < 0 or state.run_host[maker] < 0:
        return False
    due = state.run_start[maker] + state.predicted[maker] - now
    if due < 0.0:  # nobody knows how late it will be
        return False
    places = len(state.place_up)
    at = state.request_source[candidate] * places + state.request_target[candidate]
    return (
        due
        < problem.route_latency[at]
        + problem.size[state.request_item[candidate]] * problem.route_seconds_per_byte[at]
    )


@inner
def relay(problem, state, item, target):
    """Where no neighbour has an item, send it one link further from the nearest place that has it."""
    places = len(state.place_up)
    best, least = -1, np.inf
    for source in range(places):
        there = state.present[item * places + source] == HERE and state.place_up[source]
        if there and problem.relay_cost[source * places + target] < least:
            best, least = source, problem.relay_cost[source * places + target]
    if best < 0:
        return
    following = problem.next_hop[best * places + target]
    if following != target and state.present[item * places + following] == ABSENT:
        state.relayed[item * places + following] = 1
        request(problem, state, item, best, following, np.nan)


@inner
def serve_link(problem, state, queue, now):
    """Start what may start on a link: in order, the first that can, or the hybrid of both."""
    fifo = problem.policy[CONTENTION] == FIFO
    in_order, hybrid = problem.policy[LINK_ORDER] == IN_ORDER, problem.policy[LINK_ORDER] == HYBRID
    awaited = -1
    slot = state.request_head[queue]
    looked = 0
    while slot >= 0 and looked < problem.policy[LOOK]:
        if fifo and queue < len(state.link_up) and state.link_busy[queue] > 0:
            return
        following = state.request_next[slot]
        item, target = state.request_item[slot], state.request_target[slot]
        if not is_open(state, slot):
            drop_request(state, slot)
        elif not wanted(problem, state, item, target) or not state.place_up[target]:
            take_back(state, slot)
        elif not state.exists[item] or state.copies[item] == 0:
            looked += 1
            if fifo and in_order:
                return
            awaited = slot if awaited < 0 else awaited
        else:
            looked += 1
            if (
                hybrid
                and fifo
                and awaited >= 0
                and worth_waiting(problem, state, state.request_item[awaited], slot, now)
            ):
                return
            source = best_source(problem, state, item, target)
            if source < 0 and problem.policy[RELAY]:
                relay(problem, state, item, target)
            if source >= 0:  # to make room may cost the copy at the source, if there are others
                room = fits(problem, state, target, problem.size[item])
                source = best_source(problem, state, item, target) if room else -1
            if source >= 0:
                begin_move(problem, state, slot, source, now)
            elif fifo and in_order:
                return
        slot = following


@inner
def arrive(problem, state, item, place):
    """A copy is at a place: tasks there that waited for it may start."""
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        host = state.assigned[task]
        if host >= 0 and problem.host_place[host] == place:
            state.absent_inputs[task] -= 1
            if state.absent_inputs[task] == 0 and state.missing_inputs[task] == 0:
                make_startable(state, host, task)


@inner
def add_copy(problem, state, item, place):
    """An item now lies at a place as well; the first copy makes it exist."""
    places = len(state.place_up)
    state.present[item * places + place] = HERE
    if problem.policy[RELAY]:
        state.relayed[item * places + place] = 0
    state.copies[item] += 1
    if state.copies[item] == 1:
        state.holder[item] = place
    if place == problem.destination[item] and not state.delivered[item]:
        state.delivered[item] = 1
        state.count[DELIVERED] += 1
    arrive(problem, state, item, place)


@inner
def come_to_be(problem, state, item):
    """An item exists: its readers miss one input less, and those that asked for it get requests."""
    state.exists[item] = 1
    places = len(state.place_up)
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        if state.done[task] or state.run_host[task] >= 0:
            continue
        state.missing_inputs[task] -= 1
        host = state.assigned[task]
        if host >= 0:
            if state.missing_inputs[task] == 0 and state.absent_inputs[task] == 0:
                make_startable(state, host, task)
            place = problem.host_place[host]
            if (
                state.inputs_requested[task]
                and not problem.no_transfer[item]
                and state.present[item * places + place] == ABSENT
            ):
                request(problem, state, item, state.holder[item], place, np.nan)
        elif state.missing_inputs[task] == 0:
            into_pool(state, task)
    goal = problem.destination[item]
    if goal >= 0 and state.present[item * places + goal] == ABSENT:
        request(problem, state, item, state.holder[item], goal, np.nan)


@inner
def move_done(problem, state, move):
    """A transfer has arrived."""
    item, target = state.transfer_item[move], state.transfer_target[move]
    end_move(problem, state, move)
    if state.present[item * len(state.place_up) + target] == HERE:  # made there meanwhile
        state.storage_used[problem.place_site[target]] -= problem.size[item]
    else:
        add_copy(problem, state, item, target)


@entry
def deliver_all(problem, state, items, sources, targets, ranks):
    """Ask for planned transfers ahead, in the planned order, also of items that do not exist yet."""
    for k in range(len(items)):
        if not problem.no_transfer[items[k]]:
            request(problem, state, items[k], sources[k], targets[k], ranks[k])


@entry
def unblock(problem, state):
    """When nothing is under way: send for the inputs of every queued task, whatever is queued before it, let
    no link wait for what does not exist, and no task for one that is behind it. Whether that changed anything."""
    changed = False
    for queue in range(len(state.request_head)):
        slot = state.request_head[queue]
        while slot >= 0:
            following = state.request_next[slot]
            if is_open(state, slot) and state.copies[state.request_item[slot]] == 0:
                take_back(state, slot)
                changed = True
            slot = following
    for host in range(len(state.host_up)):
        task = state.queue_head[host]
        while task >= 0:
            if not state.inputs_requested[task]:
                before = state.count[REQUESTS]
                ask(problem, state, task)
                changed = changed or state.count[REQUESTS] > before
            task = state.queue_next[task]
        first = state.startable_head[host]
        if first >= 0 and first != state.queue_head[host] and problem.policy[STRICT]:
            state.rank[first] = state.rank[state.queue_head[host]]
            link_out(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, host, first)
            link_in(
                state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, host, first, -1
            )
            changed = True
    return changed


@entry
def withdraw_all(problem, state):
    """Take all requests that no queued task needs back: plans that come will ask anew."""
    places = len(state.place_up)
    for queue in range(len(state.request_head)):
        slot = state.request_head[queue]
        while slot >= 0:
            following = state.request_next[slot]
            item, target = state.request_item[slot], state.request_target[slot]
            ready_result = target == problem.destination[item] and state.exists[item]
            if not ready_result and not state.needed[item * places + target] > 0:
                take_back(state, slot)
            slot = following
