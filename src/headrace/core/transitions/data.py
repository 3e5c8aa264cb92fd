"""Add and remove copies, start and finish transfers, and manage the storage of sites."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.core.state import (
    ABSENT,
    COMMANDS,
    CONTENTION,
    COPIES,
    DELIVERED,
    DROP,
    FIFO,
    HYBRID,
    IN_ORDER,
    IN_TRANSIT,
    LIMITED,
    LINK_ORDER,
    LOOK,
    NEAREST,
    ORDERED,
    PRESENT,
    RELAY,
    REQUESTED,
    REQUESTS,
    SEND,
    STRICT,
    TRANSFERS,
)
from headrace.core.transitions.copies import copy_at, find_copy, find_holder, is_present, status_of
from headrace.core.transitions.link_turns import one_less, release_link
from headrace.core.transitions.queues import (
    into_pool,
    link_in,
    link_out,
    make_startable,
    mark_host,
    not_startable,
)
from headrace.core.transitions.requests import (
    abandon_outgoing,
    activate_outgoing,
    can_send,
    drop_request,
    is_its_turn,
    is_open,
    links_are_free,
    release_from_plan,
    release_path,
    request_inputs,
    request_item,
    source_of,
    take_back,
    wanted,
)

EXCESS = 1e-9
"""Share by which a sum of bytes may exceed a limit because of rounding, as in `check`."""


@leaf
def command(state, kind, subject, origin, target):
    """Append a command for the back end."""
    k = state.counters[COMMANDS]
    state.command_kind[k] = kind
    state.command_subject[k] = subject
    state.command_from[k] = origin
    state.command_to[k] = target
    state.counters[COMMANDS] = k + 1


@leaf
def still_needed(problem, state, item):
    """Whether the item will be used, or is a result that must exist at the end."""
    return problem.result_anywhere[item] or will_be_used(problem, state, item)


@leaf
def will_be_used(problem, state, item):
    """Whether a task that has not started reads the item, or the item has to be delivered and has not been."""
    if problem.destination[item] >= 0 and not state.delivered[item]:
        return True
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        if not state.done[task] and state.run_host[task] < 0:
            return True
    return False


# Storage.


@leaf
def output_size(problem, state, task):
    total = 0.0
    for k in range(problem.write_ptr[task], problem.write_ptr[task + 1]):
        total += state.size[problem.writes[k]]
    return total


@leaf
def fits(problem, state, place, size, item):
    """Whether a site has room, possibly after dropping copies that are not needed there.

    Copies count until their last use, as in a plan: inputs and results that must not be dropped stay where they are,
    but do not count. Other copies of the `item` that is sent there (-1: a task starts) may be its source, and count.
    """
    if can_be_free(problem, state, place, size):
        return True
    site = problem.place_site[place]
    counted = state.storage_used[site] - unused(problem, state, site, item)
    return counted <= problem.storage[site] * (1.0 + EXCESS) - size


@leaf
def can_be_free(problem, state, place, size):
    """As `fits`, but everything that is there counts."""
    if not problem.policy[LIMITED]:
        return True
    site = problem.place_site[place]
    most = problem.storage[site] * (1.0 + EXCESS) - size
    for other in range(len(state.place_up)):
        if state.storage_used[site] <= most:
            return True
        if problem.place_site[other] == site and other != problem.origin and state.place_up[other]:
            make_room(problem, state, other, most)
    return state.storage_used[site] <= most


@leaf
def unused(problem, state, site, sent):
    """Bytes of copies at a site that have had their last use, except those of an item: O(copies)."""
    total = 0.0
    for record in range(state.counters[COPIES]):
        item, place = state.copy_item[record], state.copy_place[record]
        if item == sent or problem.place_site[place] != site or not is_idle(problem, state, record):
            continue
        if state.copy_count[item] > 1 or not will_be_used(problem, state, item):
            total += state.size[item]
    return total


@leaf
def is_idle(problem, state, record):
    """Whether a copy is there for no task or transfer that is under way or planned, nor as a delivered result."""
    item, place = state.copy_item[record], state.copy_place[record]
    return (
        state.copy_status[record] == PRESENT
        and state.copy_needed[record] == 0
        and state.copy_outgoing[record] < 0
        and place != problem.destination[item]
        and not is_being_sent(state, item, place)
    )


@leaf
def has_passed(problem, state, at):
    """Whether an entry of a planned order of storage has been served, or withdrawn."""
    task = state.disk_task[at]
    if task >= 0:
        host = state.assigned[task]
        if state.done[task] or state.run_host[task] >= 0 or host < 0:
            return True
        return problem.place_site[problem.host_place[host]] != problem.place_site[state.disk_place[at]]
    record = find_copy(state, state.disk_item[at], state.disk_place[at])
    return record < 0 or state.copy_status[record] != REQUESTED


@leaf
def first_in_disk_order(problem, state, place):
    """The first entry in the planned order of a site's storage that is still to be served; -1: none."""
    if len(state.disk_task) == 0:
        return -1
    site = problem.place_site[place]
    at, end = state.disk_head[site], state.disk_end[site]
    while at < end and has_passed(problem, state, at):
        at += 1
    state.disk_head[site] = at
    return at if at < end else -1


@leaf
def is_turn_of_task(problem, state, task, place):
    """Whether no other task or transfer is to take up storage before a task that starts at a place."""
    first = first_in_disk_order(problem, state, place)
    return first < 0 or state.disk_position[task] <= first


@leaf
def is_turn_of_request(problem, state, request):
    """Whether no other task or transfer is to take up storage before the transfer of a request."""
    if state.request_mode[request] == NEAREST:
        return True
    place = state.request_target[request]
    first = first_in_disk_order(problem, state, place)
    same_item = first >= 0 and state.disk_item[first] == state.request_item[request]
    return first < 0 or (same_item and state.disk_place[first] == place)


@leaf
def make_room(problem, state, place, most):
    """Drop copies at a place until its site holds at most `most` bytes, or there is no room for more commands."""
    site = problem.place_site[place]
    for item in range(len(state.exists)):
        full = 2 * state.counters[COMMANDS] > len(state.command_kind)
        if state.storage_used[site] <= most or full:
            return
        record = find_copy(state, item, place)
        if record >= 0 and is_idle(problem, state, record):
            produced = problem.producer[item] >= 0
            if state.copy_count[item] > 1 or (produced and not still_needed(problem, state, item)):
                drop_copy(problem, state, item, place)


@leaf
def is_being_sent(state, item, place):
    for k in range(state.counters[TRANSFERS]):
        transfer = state.live_transfers[k]
        if state.transfer_item[transfer] == item and state.transfer_source[transfer] == place:
            return True
    return False


@leaf
def drop_copy(problem, state, item, place):
    """Remove a copy; if it was the last one, the item no longer exists."""
    record = find_copy(state, item, place)
    state.copy_status[record] = ABSENT
    state.storage_used[problem.place_site[place]] -= state.size[item]
    state.copy_count[item] -= 1
    find_holder(state, item)
    if state.copy_count[item] == 0:
        state.exists[item] = 0
    abandon_outgoing(problem, state, record)
    command(state, DROP, item, place, -1)


@entry
def remove_copy(problem, state, item, place):
    """Drop a copy on request, unless a task there reads it or it is the last copy of an item that is still needed."""
    record = find_copy(state, item, place)
    if record < 0 or state.copy_status[record] != PRESENT or state.copy_needed[record] > 0:
        return False
    last = state.copy_count[item] == 1 and still_needed(problem, state, item)
    if (
        last
        or place == problem.origin
        or place == problem.destination[item]
        or is_being_sent(state, item, place)
    ):
        return False
    drop_copy(problem, state, item, place)
    return True


# Transfers.


@leaf
def start_transfer(problem, state, request, source, now):
    """Start the transfer of a request and remove the request from its queue."""
    item, target = state.request_item[request], state.request_target[request]
    places = len(state.place_up)
    rank = state.request_rank[request]
    in_turn = problem.policy[CONTENTION] == FIFO or state.request_mode[request] == ORDERED
    drop_request(problem, state, request)
    live = state.counters[TRANSFERS]
    transfer = state.free_transfers[len(state.free_transfers) - 1 - live]
    state.transfer_item[transfer] = item
    state.transfer_source[transfer] = source
    state.transfer_target[transfer] = target
    state.transfer_rank[transfer] = rank
    state.transfer_start[transfer] = now
    state.transfer_in_turn[transfer] = in_turn
    state.live_transfers[live] = transfer
    state.live_position[transfer] = live
    state.counters[TRANSFERS] = live + 1
    state.copy_status[copy_at(state, item, target)] = IN_TRANSIT
    state.storage_used[problem.place_site[target]] += state.size[item]
    at = source * places + target
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        link = problem.route_links[k]
        if in_turn and not problem.route_turns[k]:
            continue  # it shares the link, and keeps nobody waiting there
        state.link_busy[link] += 1
        if in_turn:
            state.link_holder[link] = transfer
    command(state, SEND, transfer, source, target)


@leaf
def end_transfer(problem, state, transfer):
    """Release the links of a transfer; its number may be reused."""
    at = state.transfer_source[transfer] * len(state.place_up) + state.transfer_target[transfer]
    for k in range(problem.route_ptr[at], problem.route_ptr[at + 1]):
        link = problem.route_links[k]
        if state.link_holder[link] == transfer:
            release_link(problem, state, link)
        elif not state.transfer_in_turn[transfer]:
            one_less(problem, state, link)
    live = state.counters[TRANSFERS] - 1
    position = state.live_position[transfer]
    last = state.live_transfers[live]
    state.live_transfers[position] = last
    state.live_position[last] = position
    state.counters[TRANSFERS] = live
    state.free_transfers[len(state.free_transfers) - 1 - live] = transfer


@leaf
def transfer_done(problem, state, transfer):
    """Record that a transfer has arrived."""
    item, target = state.transfer_item[transfer], state.transfer_target[transfer]
    end_transfer(problem, state, transfer)
    if is_present(state, item, target):  # produced there in the meantime
        state.storage_used[problem.place_site[target]] -= state.size[item]
    else:
        add_copy(problem, state, item, target)


@leaf
def worth_waiting(problem, state, item, candidate, now):
    """Hybrid queues: whether an output that is not ready is expected before the candidate's transfer would finish.

    Overdue outputs are not waited for.
    """
    producer = problem.producer[item]
    if producer < 0 or state.run_host[producer] < 0:
        return False
    due = state.run_start[producer] + state.predicted[producer] - now
    if due < 0.0:
        return False
    at = state.request_source[candidate] * len(state.place_up) + state.request_target[candidate]
    size = state.size[state.request_item[candidate]]
    return due < problem.route_latency[at] + size * problem.route_seconds_per_byte[at]


@leaf
def relay(problem, state, item, target):
    """If no neighbour has the item, request it for the next hop on the relay path from the nearest holder."""
    places = len(state.place_up)
    best, least = -1, np.inf
    record = state.item_copies[item]
    while record >= 0:
        source = state.copy_place[record]
        cost = problem.relay_cost[source * places + target]
        nearer = cost < least or (cost == least and source < best)
        if nearer and state.copy_status[record] == PRESENT and state.place_up[source]:
            best, least = source, cost
        record = state.copy_next[record]
    if best < 0:
        return
    following = problem.next_hop[best * places + target]
    if following != target and status_of(state, item, following) == ABSENT:
        state.copy_relayed[copy_at(state, item, following)] = 1
        request_item(problem, state, item, best, following, np.nan)


@leaf
def serve_order(problem, state, link, now):
    """Start the planned transfers in this link's queue that are first in their order; returns whether any started."""
    started = False
    while state.order_head[link] >= 0:
        request = state.order_head[link] // problem.longest_route
        item, target = state.request_item[request], state.request_target[request]
        if state.request_queue[request] != link:  # handled by the queue of its narrowest link
            return started
        if not wanted(problem, state, item, target) or not state.place_up[target]:
            take_back(problem, state, request)
            continue
        source = state.request_source[request]
        ready = can_send(state, request) and is_its_turn(problem, state, request)
        if not ready or not links_are_free(problem, state, source, target):
            return started
        if not is_turn_of_request(problem, state, request):
            return started
        if not fits(problem, state, target, state.size[item], item) or not can_send(state, request):
            return started
        start_transfer(problem, state, request, source, now)
        started = True
    return started


@leaf
def serve_queue(problem, state, queue, now):
    """Start transfers of a link's queue: in order, out of order, or by the hybrid rule."""
    fifo = problem.policy[CONTENTION] == FIFO
    in_order, hybrid = problem.policy[LINK_ORDER] == IN_ORDER, problem.policy[LINK_ORDER] == HYBRID
    awaited = -1
    request = state.request_head[queue]
    looked = 0
    while request >= 0 and looked < problem.policy[LOOK]:
        if fifo and queue < len(state.link_up) and state.link_busy[queue] > 0:
            return
        following = state.request_next[request]
        item, target = state.request_item[request], state.request_target[request]
        if not is_open(state, request):
            drop_request(problem, state, request)
        elif not wanted(problem, state, item, target) or not state.place_up[target]:
            take_back(problem, state, request)
        elif not state.exists[item] or state.copy_count[item] == 0:
            looked += 1
            if fifo and in_order:
                return
            awaited = request if awaited < 0 else awaited
        else:
            looked += 1
            if (
                hybrid
                and fifo
                and awaited >= 0
                and worth_waiting(problem, state, state.request_item[awaited], request, now)
            ):
                return
            if not try_to_send(problem, state, request, now) and fifo and in_order:
                return
        request = following


@leaf
def try_to_send(problem, state, request, now):
    """Start the transfer of a queued request if its links and the target's storage allow it."""
    item, target = state.request_item[request], state.request_target[request]
    source = source_of(problem, state, request)
    if source < 0 and problem.policy[RELAY] and state.request_mode[request] == NEAREST:
        relay(problem, state, item, target)
    if source >= 0:  # making room may have dropped the copy at the source
        turn = is_turn_of_request(problem, state, request)
        if state.replica[item] == target:  # no plan has counted it
            room = turn and can_be_free(problem, state, target, state.size[item])
        else:
            room = turn and fits(problem, state, target, state.size[item], item)
        source = source_of(problem, state, request) if room else -1
    if source < 0:
        return False
    start_transfer(problem, state, request, source, now)
    return True


# Copies.


@leaf
def arrive(problem, state, item, place):
    """Record a copy that has become present at a place: tasks waiting for it there may start."""
    for k in range(problem.reader_ptr[item], problem.reader_ptr[item + 1]):
        task = problem.readers[k]
        host = state.assigned[task]
        if host >= 0 and problem.host_place[host] == place:
            state.absent_inputs[task] -= 1
            if state.absent_inputs[task] == 0 and state.missing_inputs[task] == 0:
                make_startable(state, host, task)


@leaf
def add_copy(problem, state, item, place):
    """Add a copy of an item at a place; with the first copy the item exists."""
    record = copy_at(state, item, place)
    if state.copy_request[record] >= 0:  # planned to come from elsewhere, but produced here in the meantime
        drop_request(problem, state, state.copy_request[record])
    state.copy_status[record] = PRESENT
    state.copy_relayed[record] = 0
    state.copy_count[item] += 1
    if state.copy_count[item] == 1:
        state.holder[item] = place
    if place == problem.destination[item] and not state.delivered[item]:
        state.delivered[item] = 1
        state.counters[DELIVERED] += 1
    arrive(problem, state, item, place)
    activate_outgoing(state, record)


@leaf
def come_to_exist(problem, state, item):
    """Record that an item exists: its readers miss one input less, and readers that prefetch request it."""
    state.exists[item] = 1
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
            if state.inputs_requested[task] and not problem.no_transfer[item]:
                if status_of(state, item, place) == ABSENT:
                    request_item(problem, state, item, state.holder[item], place, np.nan)
                else:
                    release_path(state, item, place)
        elif state.missing_inputs[task] == 0:
            into_pool(state, task)
    destination = problem.destination[item]
    if destination >= 0 and status_of(state, item, destination) == ABSENT:
        request_item(problem, state, item, state.holder[item], destination, np.nan)
    abandon_absent_sources(problem, state, item)


@leaf
def abandon_absent_sources(problem, state, item):
    """The item was not produced where planned: serve planned transfers from there by other copies."""
    record = state.item_copies[item]
    while record >= 0:
        following = state.copy_next[record]
        if state.copy_status[record] == ABSENT:
            abandon_outgoing(problem, state, record)
        record = following


@entry
def unblock(problem, state):
    """Resolve a deadlock: request the inputs of every queued task, drop requests for items that do not exist, and
    release transfers from planned orders. Returns whether that changed anything."""
    changed = release_from_plan(problem, state)
    for site in range(len(state.disk_head)):
        changed = changed or state.disk_head[site] < state.disk_end[site]
        state.disk_head[site] = state.disk_end[site]
    for queue in range(len(state.request_head)):
        request = state.request_head[queue]
        while request >= 0:
            following = state.request_next[request]
            if is_open(state, request) and state.copy_count[state.request_item[request]] == 0:
                take_back(problem, state, request)
                changed = True
            request = following
    for host in range(len(state.host_up)):
        task = state.queue_head[host]
        while task >= 0:
            if not state.inputs_requested[task]:
                before = state.counters[REQUESTS]
                request_inputs(problem, state, task)
                changed = changed or state.counters[REQUESTS] > before
            task = state.queue_next[task]
        changed = let_first_startable_go(problem, state, host) or changed
    return changed


@leaf
def let_first_startable_go(problem, state, host):
    """Move the first startable task for whose outputs there is room to the front of a host's queue."""
    task, place = state.startable_head[host], problem.host_place[host]
    while task >= 0 and not fits(problem, state, place, output_size(problem, state, task), -1):
        task = state.startable_next[task]
    head = state.queue_head[host]
    in_order = head >= 0 and (problem.policy[STRICT] or state.in_order[head])
    if task < 0 or (task == state.startable_head[host] and (task == head or not in_order)):
        return False  # no task fits, or its turn has come
    state.rank[task] = min(state.rank[head], state.rank[state.startable_head[host]])
    link_out(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, host, task)
    link_in(state.queue_next, state.queue_previous, state.queue_head, state.queue_tail, host, task, -1)
    not_startable(state, host, task)
    state.startable[task] = 1
    link_in(
        state.startable_next,
        state.startable_previous,
        state.startable_head,
        state.startable_tail,
        host,
        task,
        -1,
    )
    mark_host(state, host)
    return True
