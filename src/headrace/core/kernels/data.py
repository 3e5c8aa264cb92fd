"""Where data lies, what is asked for, and which transfer goes next on each link."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, inner
from headrace.core.kernels.desk import (
    ABSENT,
    AHEAD,
    ASKED,
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
    RELAY,
    REQUESTS,
    STRICT,
)
from headrace.core.kernels.queues import into_pool, link_in, link_out, make_startable


@inner
def order(desk, kind, a, b, c):
    """Tell the back end to do something."""
    k = desk.count[ORDERS]
    desk.order_kind[k] = kind
    desk.order_a[k] = a
    desk.order_b[k] = b
    desk.order_c[k] = c
    desk.count[ORDERS] = k + 1


@inner
def request(case, desk, item, source, target, rank):
    """Ask for a copy of an item at a place; `source` is where it lies or will be made. By rank; NaN: at the end."""
    places = len(desk.place_up)
    if desk.present[item * places + target] != ABSENT or not desk.place_up[target]:
        return
    if desk.count[REQUESTS] == len(desk.req_free):
        purge(case, desk)
    used = desk.count[REQUESTS]
    slot = desk.req_free[len(desk.req_free) - 1 - used]
    desk.count[REQUESTS] = used + 1
    home = case.pair_home[source * places + target]
    queue = len(desk.link_up) if home < 0 else home
    desk.req_item[slot] = item
    desk.req_source[slot] = source
    desk.req_target[slot] = target
    desk.req_home[slot] = queue
    at = desk.r_tail[queue]
    if np.isnan(rank):
        rank = desk.req_rank[at] if at >= 0 else 0.0
    else:
        while at >= 0 and desk.req_rank[at] > rank:
            at = desk.req_prev[at]
    desk.req_rank[slot] = rank
    link_in(desk.req_next, desk.req_prev, desk.r_head, desk.r_tail, queue, slot, at)
    desk.present[item * places + target] = ASKED


@inner
def drop_request(desk, slot):
    """The request is served or no longer wanted."""
    link_out(desk.req_next, desk.req_prev, desk.r_head, desk.r_tail, desk.req_home[slot], slot)
    used = desk.count[REQUESTS] - 1
    desk.count[REQUESTS] = used
    desk.req_free[len(desk.req_free) - 1 - used] = slot


@inner
def purge(case, desk):
    """Drop requests that were served in another way or serve nobody, so that there is room for new ones."""
    for queue in range(len(desk.r_head)):
        slot = desk.r_head[queue]
        while slot >= 0:
            following = desk.req_next[slot]
            if not wanted(case, desk, desk.req_item[slot], desk.req_target[slot]):
                take_back(desk, slot)
            elif not is_open(desk, slot):
                drop_request(desk, slot)
            slot = following


@inner
def is_open(desk, slot):
    """Whether what a request asks for is neither there nor on its way."""
    return desk.present[desk.req_item[slot] * len(desk.place_up) + desk.req_target[slot]] == ASKED


@inner
def take_back(desk, slot):
    """Nobody asks for this any more."""
    if is_open(desk, slot):
        desk.present[desk.req_item[slot] * len(desk.place_up) + desk.req_target[slot]] = ABSENT
    drop_request(desk, slot)


@inner
def ask(case, desk, task):
    """Ask for the inputs of an assigned task that exist and are not on their way, the most used first."""
    place = case.host_place[desk.assigned[task]]
    places = len(desk.place_up)
    desk.asked[task] = 1
    while True:
        best = -1
        for k in range(case.read_ptr[task], case.read_ptr[task + 1]):
            item = case.reads[k]
            if (
                not case.free[item]
                and desk.born[item]
                and desk.present[item * places + place] == ABSENT
                and (best < 0 or desk.usage[item] > desk.usage[best])
            ):
                best = item
        if best < 0:
            return
        request(case, desk, best, desk.holder[best], place, np.nan)


@inner
def ask_ahead(case, desk, host):
    """Ask for the inputs of the first tasks in a host's queue."""
    task = desk.q_head[host]
    for _ in range(case.rule[AHEAD]):
        if task < 0:
            return
        if not desk.asked[task]:
            ask(case, desk, task)
        task = desk.q_next[task]


@inner
def wanted(case, desk, item, target):
    """Whether a copy at this place still serves somebody."""
    if desk.want[item * len(desk.place_up) + target] > 0:
        return True
    if target == case.goal[item]:
        return True
    if case.rule[RELAY] and desk.via[item * len(desk.place_up) + target]:
        return True
    return desk.replica[item] == target


@inner
def way_is_free(case, desk, source, target):
    """Whether a transfer could start now: every link there, and with fifo links none in use."""
    at = source * len(desk.place_up) + target
    fifo = case.rule[CONTENTION] == FIFO
    for k in range(case.pair_ptr[at], case.pair_ptr[at + 1]):
        link = case.pair_links[k]
        if not desk.link_up[link] or (fifo and desk.link_busy[link] > 0):
            return False
    return case.pair_seconds[at] < np.inf


@inner
def best_source(case, desk, item, target):
    """The place that holds the item and sends it quickest over a free way, of equals over the fewest links; or -1."""
    places = len(desk.place_up)
    if desk.copies[item] == 1:
        only = desk.holder[item]
        return only if way_is_free(case, desk, only, target) else -1
    best, least, links = -1, np.inf, 0
    for source in range(places):
        if desk.present[item * places + source] == HERE and desk.place_up[source] and source != target:
            at = source * places + target
            cost = case.pair_latency[at] + case.size[item] * case.pair_seconds[at]
            crossed = case.pair_ptr[at + 1] - case.pair_ptr[at]
            if (cost < least or (cost == least and crossed < links)) and way_is_free(
                case, desk, source, target
            ):
                best, least, links = source, cost, crossed
    return best


@inner
def fits(case, desk, place, size):
    """Whether a site has room; makes some by dropping copies that nobody there needs."""
    if not case.rule[LIMITED]:
        return True
    site = case.place_site[place]
    for other in range(len(desk.place_up)):
        if desk.used[site] + size <= case.storage[site]:
            return True
        if case.place_site[other] == site and other != case.origin and desk.place_up[other]:
            make_room(case, desk, other, case.storage[site] - size)
    return desk.used[site] + size <= case.storage[site]


@inner
def make_room(case, desk, place, most):
    """Drop copies at a place until its site holds at most so much; as many as there is room to say so."""
    site = case.place_site[place]
    places = len(desk.place_up)
    for item in range(len(desk.born)):
        full = 2 * desk.count[ORDERS] > len(desk.order_kind)
        if desk.used[site] <= most or full:
            return
        at = item * places + place
        if desk.present[at] == HERE and desk.want[at] == 0 and place != case.goal[item]:
            spare = desk.copies[item] > 1 or (case.producer[item] >= 0 and not still_needed(case, desk, item))
            if spare and not being_sent(desk, item, place):
                drop_copy(case, desk, item, place)


@inner
def being_sent(desk, item, place):
    for k in range(desk.count[MOVES]):
        slot = desk.mv_live[k]
        if desk.mv_item[slot] == item and desk.mv_source[slot] == place:
            return True
    return False


@inner
def drop_copy(case, desk, item, place):
    """Remove a copy that is not needed there; without any, the item would have to be made again."""
    places = len(desk.place_up)
    desk.present[item * places + place] = ABSENT
    desk.used[case.place_site[place]] -= case.size[item]
    desk.copies[item] -= 1
    find_holder(desk, item)
    if desk.copies[item] == 0:
        desk.born[item] = 0
    order(desk, DROP, item, place, -1)


@inner
def find_holder(desk, item):
    places = len(desk.place_up)
    desk.holder[item] = -1
    for place in range(places):
        if desk.present[item * places + place] == HERE and desk.place_up[place]:
            desk.holder[item] = place
            return


@inner
def still_needed(case, desk, item):
    """Whether a task that has not begun reads it, or it is a result that has not returned or never will."""
    if case.kept[item] or (case.goal[item] >= 0 and not desk.delivered[item]):
        return True
    for k in range(case.reader_ptr[item], case.reader_ptr[item + 1]):
        task = case.readers[k]
        if not desk.done[task] and desk.run_host[task] < 0:
            return True
    return False


@inner
def begin_move(case, desk, slot, source, now):
    """Start the transfer of a request and take the request off its queue."""
    item, target = desk.req_item[slot], desk.req_target[slot]
    places = len(desk.place_up)
    drop_request(desk, slot)
    live = desk.count[MOVES]
    move = desk.mv_free[len(desk.mv_free) - 1 - live]
    desk.mv_item[move] = item
    desk.mv_source[move] = source
    desk.mv_target[move] = target
    desk.mv_rank[move] = desk.req_rank[slot]
    desk.mv_start[move] = now
    desk.mv_live[live] = move
    desk.mv_at[move] = live
    desk.count[MOVES] = live + 1
    desk.present[item * places + target] = MOVING
    desk.used[case.place_site[target]] += case.size[item]
    at = source * places + target
    for k in range(case.pair_ptr[at], case.pair_ptr[at + 1]):
        desk.link_busy[case.pair_links[k]] += 1
    order(desk, MOVE, move, source, target)


@inner
def end_move(case, desk, move):
    """The links of a transfer are free again and its number may be used anew."""
    places = len(desk.place_up)
    at = desk.mv_source[move] * places + desk.mv_target[move]
    for k in range(case.pair_ptr[at], case.pair_ptr[at + 1]):
        desk.link_busy[case.pair_links[k]] -= 1
    live = desk.count[MOVES] - 1
    where = desk.mv_at[move]
    last = desk.mv_live[live]
    desk.mv_live[where] = last
    desk.mv_at[last] = where
    desk.count[MOVES] = live
    desk.mv_free[len(desk.mv_free) - 1 - live] = move


@inner
def worth_waiting(case, desk, item, candidate, now):
    """Hybrid queues: whether an output that is not ready is due before the next transfer would be over; if it is
    late already, it is not waited for."""
    maker = case.producer[item]
    if maker < 0 or desk.run_host[maker] < 0:
        return False
    due = desk.run_start[maker] + desk.predicted[maker] - now
    if due < 0.0:  # nobody knows how late it will be
        return False
    places = len(desk.place_up)
    at = desk.req_source[candidate] * places + desk.req_target[candidate]
    return due < case.pair_latency[at] + case.size[desk.req_item[candidate]] * case.pair_seconds[at]


@inner
def relay(case, desk, item, target):
    """Where no neighbour has an item, send it one link further from the nearest place that has it."""
    places = len(desk.place_up)
    best, least = -1, np.inf
    for source in range(places):
        there = desk.present[item * places + source] == HERE and desk.place_up[source]
        if there and case.far[source * places + target] < least:
            best, least = source, case.far[source * places + target]
    if best < 0:
        return
    following = case.hop[best * places + target]
    if following != target and desk.present[item * places + following] == ABSENT:
        desk.via[item * places + following] = 1
        request(case, desk, item, best, following, np.nan)


@inner
def serve_link(case, desk, queue, now):
    """Start what may start on a link: in order, the first that can, or the hybrid of both."""
    fifo = case.rule[CONTENTION] == FIFO
    in_order, hybrid = case.rule[LINK_ORDER] == IN_ORDER, case.rule[LINK_ORDER] == HYBRID
    awaited = -1
    slot = desk.r_head[queue]
    looked = 0
    while slot >= 0 and looked < case.rule[LOOK]:
        if fifo and queue < len(desk.link_up) and desk.link_busy[queue] > 0:
            return
        following = desk.req_next[slot]
        item, target = desk.req_item[slot], desk.req_target[slot]
        if not is_open(desk, slot):
            drop_request(desk, slot)
        elif not wanted(case, desk, item, target) or not desk.place_up[target]:
            take_back(desk, slot)
        elif not desk.born[item] or desk.copies[item] == 0:
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
                and worth_waiting(case, desk, desk.req_item[awaited], slot, now)
            ):
                return
            source = best_source(case, desk, item, target)
            if source < 0 and case.rule[RELAY]:
                relay(case, desk, item, target)
            if source >= 0:  # to make room may cost the copy at the source, if there are others
                room = fits(case, desk, target, case.size[item])
                source = best_source(case, desk, item, target) if room else -1
            if source >= 0:
                begin_move(case, desk, slot, source, now)
            elif fifo and in_order:
                return
        slot = following


@inner
def arrive(case, desk, item, place):
    """A copy is at a place: tasks there that waited for it may start."""
    for k in range(case.reader_ptr[item], case.reader_ptr[item + 1]):
        task = case.readers[k]
        host = desk.assigned[task]
        if host >= 0 and case.host_place[host] == place:
            desk.lacking[task] -= 1
            if desk.lacking[task] == 0 and desk.missing[task] == 0:
                make_startable(desk, host, task)


@inner
def add_copy(case, desk, item, place):
    """An item now lies at a place as well; the first copy makes it exist."""
    places = len(desk.place_up)
    desk.present[item * places + place] = HERE
    if case.rule[RELAY]:
        desk.via[item * places + place] = 0
    desk.copies[item] += 1
    if desk.copies[item] == 1:
        desk.holder[item] = place
    if place == case.goal[item] and not desk.delivered[item]:
        desk.delivered[item] = 1
        desk.count[DELIVERED] += 1
    arrive(case, desk, item, place)


@inner
def come_to_be(case, desk, item):
    """An item exists: its readers miss one input less, and those that asked for it get requests."""
    desk.born[item] = 1
    places = len(desk.place_up)
    for k in range(case.reader_ptr[item], case.reader_ptr[item + 1]):
        task = case.readers[k]
        if desk.done[task] or desk.run_host[task] >= 0:
            continue
        desk.missing[task] -= 1
        host = desk.assigned[task]
        if host >= 0:
            if desk.missing[task] == 0 and desk.lacking[task] == 0:
                make_startable(desk, host, task)
            place = case.host_place[host]
            if desk.asked[task] and not case.free[item] and desk.present[item * places + place] == ABSENT:
                request(case, desk, item, desk.holder[item], place, np.nan)
        elif desk.missing[task] == 0:
            into_pool(desk, task)
    goal = case.goal[item]
    if goal >= 0 and desk.present[item * places + goal] == ABSENT:
        request(case, desk, item, desk.holder[item], goal, np.nan)


@inner
def move_done(case, desk, move):
    """A transfer has arrived."""
    item, target = desk.mv_item[move], desk.mv_target[move]
    end_move(case, desk, move)
    if desk.present[item * len(desk.place_up) + target] == HERE:  # made there meanwhile
        desk.used[case.place_site[target]] -= case.size[item]
    else:
        add_copy(case, desk, item, target)


@entry
def deliver_all(case, desk, items, sources, targets, ranks):
    """Ask for planned transfers ahead, in the planned order, also of items that do not exist yet."""
    for k in range(len(items)):
        if not case.free[items[k]]:
            request(case, desk, items[k], sources[k], targets[k], ranks[k])


@entry
def unblock(case, desk):
    """When nothing is under way: send for the inputs of every queued task, whatever is queued before it, let
    no link wait for what does not exist, and no task for one that is behind it. Whether that changed anything."""
    changed = False
    for queue in range(len(desk.r_head)):
        slot = desk.r_head[queue]
        while slot >= 0:
            following = desk.req_next[slot]
            if is_open(desk, slot) and desk.copies[desk.req_item[slot]] == 0:
                take_back(desk, slot)
                changed = True
            slot = following
    for host in range(len(desk.up)):
        task = desk.q_head[host]
        while task >= 0:
            if not desk.asked[task]:
                before = desk.count[REQUESTS]
                ask(case, desk, task)
                changed = changed or desk.count[REQUESTS] > before
            task = desk.q_next[task]
        first = desk.s_head[host]
        if first >= 0 and first != desk.q_head[host] and case.rule[STRICT]:
            desk.rank[first] = desk.rank[desk.q_head[host]]
            link_out(desk.q_next, desk.q_prev, desk.q_head, desk.q_tail, host, first)
            link_in(desk.q_next, desk.q_prev, desk.q_head, desk.q_tail, host, first, -1)
            changed = True
    return changed


@entry
def withdraw_all(case, desk):
    """Take all requests that no queued task needs back: plans that come will ask anew."""
    places = len(desk.place_up)
    for queue in range(len(desk.r_head)):
        slot = desk.r_head[queue]
        while slot >= 0:
            following = desk.req_next[slot]
            item, target = desk.req_item[slot], desk.req_target[slot]
            ready_result = target == case.goal[item] and desk.born[item]
            if not ready_result and not desk.want[item * places + target] > 0:
                take_back(desk, slot)
            slot = following
