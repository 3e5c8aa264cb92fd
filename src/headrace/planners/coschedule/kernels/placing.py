"""Place jobs one by one at the earliest moment that cores, links and disks allow.

A job is placed whole: the transfers of its inputs, itself, the transfers of its results. Where disks are finite, what
does not fit is tried again later: every reservation says which operation began it, and that operation then starts
when the disk has room.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import Booking, book, cancel, earliest, exceeded_until, first_fit, occupy
from headrace.arrays.compiling import inner

PERMANENT = 1 << 20
"""Added to the users of a copy that stays until the end."""
MOST_TRIES = 400
EXCESS = 5e-10


@inner
def _slot(case, calendar, arc, ready, seconds):
    """The earliest moment from `ready` on at which all links of an arc are free."""
    time = ready
    first, last = case.link_ptr[arc], case.link_ptr[arc + 1]
    again = case.booked
    while again:
        again = False
        for i in range(first, last):
            free = earliest(calendar, case.links[i], time, seconds)
            if free > time:
                time = free
                again = last - first > 1
    return time


@inner
def _node(case, path, k):
    return case.path_start[path] if k == 0 else case.head[case.path_arcs[case.path_ptr[path] + k - 1]]


@inner
def _begin(case, copies, item, path):
    """How far along a path the item already is."""
    places = len(case.site)
    k = case.path_ptr[path + 1] - case.path_ptr[path]
    while k > 0 and copies.ready[item * places + _node(case, path, k)] == np.inf:
        k -= 1
    return k


@inner
def _arrival(case, calendar, copies, item, path, hold):
    """When an item would arrive over a path as links are booked now."""
    k = _begin(case, copies, item, path)
    time = max(hold, copies.ready[item * len(case.site) + _node(case, path, k)])
    for i in range(case.path_ptr[path] + k, case.path_ptr[path + 1]):
        arc = case.path_arcs[i]
        seconds = case.latency[arc] + case.size[item] / case.bandwidth[arc]
        time = _slot(case, calendar, arc, time, seconds) + seconds
    return time


@inner
def _choose(case, calendar, copies, item, source, target, way, hold):
    """The path of that number, or the one that arrives first; -1 if there is none."""
    pair = source * (len(case.set_ptr) - 1) + target
    first, last = case.pair_ptr[pair], case.pair_ptr[pair + 1]
    if last == first:
        return -1
    if way >= 0:
        return first + way % (last - first)
    best, best_time = first, np.inf
    if last - first > 1:
        for path in range(first, last):
            time = _arrival(case, calendar, copies, item, path, hold)
            if time < best_time:
                best, best_time = path, time
    return best


@inner
def _send(case, calendar, copies, outcome, scratch, item, path, hold):
    """Book the transfers of an item along a path; returns when it arrives."""
    places = len(case.site)
    k = _begin(case, copies, item, path)
    time = copies.ready[item * places + _node(case, path, k)]
    for i in range(case.path_ptr[path] + k, case.path_ptr[path + 1]):
        arc = case.path_arcs[i]
        seconds = case.latency[arc] + case.size[item] / case.bandwidth[arc]
        op = scratch.count[2]
        scratch.count[2] += 1
        start = _slot(case, calendar, arc, max(time, hold, scratch.bound[op]), seconds)
        time = start + seconds
        if case.booked:
            for j in range(case.link_ptr[arc], case.link_ptr[arc + 1]):
                booking = book(calendar, case.links[j], start, time)
                b = scratch.count[0]
                if case.stored:
                    scratch.undo_link[b] = case.links[j]
                    scratch.undo_how[b] = booking.how
                    scratch.undo_at[b] = booking.at
                    scratch.undo_start[b] = booking.old_start
                    scratch.undo_end[b] = booking.old_end
                    scratch.count[0] += 1
        m = outcome.count[0]
        outcome.move_item[m] = item
        outcome.move_arc[m] = arc
        outcome.move_start[m] = start
        outcome.move_finish[m] = time
        outcome.count[0] += 1
        copies.ready[item * places + case.head[arc]] = time
    return time


@inner
def _source_of(case, outcome, item):
    return case.source[item] if case.maker[item] < 0 else case.host_place[outcome.host[case.maker[item]]]


@inner
def _held_until(start, finish):
    """A job that takes no time still keeps others from being placed across it."""
    return finish if finish > start else np.nextafter(start, np.inf)


@inner
def _attempt(case, choices, job, host, free, calendar, steps, copies, outcome, scratch):
    """Times of one job with all its transfers, booked on links and cores; False if a file has no way."""
    places, place = len(case.site), case.host_place[host]
    scratch.count[0] = 0
    scratch.count[2] = 1
    ready = max(case.release[job], case.host_free[host], scratch.bound[0], free)
    for e in range(case.wait_ptr[job], case.wait_ptr[job + 1]):
        ready = max(ready, outcome.finish[case.waits[e]])
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        item = case.reads[e]
        if copies.ready[item * places + place] == np.inf:
            source = _source_of(case, outcome, item)
            path = _choose(case, calendar, copies, item, source, place, choices.in_way[e], free)
            if path < 0:
                return False
            ready = max(ready, _send(case, calendar, copies, outcome, scratch, item, path, free))
        else:
            ready = max(ready, copies.ready[item * places + place])
    seconds, cores = case.seconds[job, host], case.cores[job]
    begin = free if choices.pull else ready
    start = first_fit(steps, host, ready, seconds, case.host_cores[host] - cores)
    if choices.pull:
        start = ready
    finish = start + seconds
    occupy(steps, host, begin if choices.pull else start, _held_until(start, finish), float(cores))
    outcome.start[job] = start
    outcome.finish[job] = finish
    outcome.host[job] = host
    done = finish
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        item = case.writes[e]
        copies.ready[item * places + place] = finish
        if case.goal[item] >= 0:
            path = _choose(case, calendar, copies, item, place, case.goal[item], choices.out_way[e], 0.0)
            if path < 0:
                return False
            done = max(done, _send(case, calendar, copies, outcome, scratch, item, path, 0.0))
    outcome.done[job] = done
    return True


@inner
def _take_back(case, choices, job, host, free, moves, calendar, steps, copies, outcome, scratch):
    """Undo an attempt."""
    places = len(case.site)
    for b in range(scratch.count[0] - 1, -1, -1):
        booking = Booking(scratch.undo_how[b], scratch.undo_at[b], scratch.undo_start[b], scratch.undo_end[b])
        cancel(calendar, scratch.undo_link[b], booking)
    for m in range(moves, outcome.count[0]):
        copies.ready[outcome.move_item[m] * places + case.head[outcome.move_arc[m]]] = np.inf
    outcome.count[0] = moves
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        copies.ready[case.writes[e] * places + case.host_place[host]] = np.inf
    begin = free if choices.pull else outcome.start[job]
    occupy(steps, host, begin, _held_until(outcome.start[job], outcome.finish[job]), -float(case.cores[job]))


@inner
def _claim(scratch, key, op, start, end):
    c = scratch.count[1]
    scratch.claim_key[c] = key
    scratch.claim_op[c] = op
    scratch.claim_start[c] = start
    scratch.claim_end[c] = end
    scratch.count[1] += 1


@inner
def _in_set(case, place, which):
    for i in range(case.set_ptr[which], case.set_ptr[which + 1]):  # noqa: SIM110 - compiled
        if case.sets[i] == place:
            return True
    return False


@inner
def _claims(case, job, host, moves, copies, outcome, scratch):
    """The room that a job's files need: (copy, operation that begins it or -1 to extend, from, until)."""
    places, place = len(case.site), case.host_place[host]
    scratch.count[1] = 0
    start, finish = outcome.start[job], outcome.finish[job]
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        key = case.reads[e] * places + place
        brought = False
        for m in range(moves, outcome.count[0]):
            brought = brought or outcome.move_item[m] * places + case.head[outcome.move_arc[m]] == key
        if not brought and copies.until[key] < finish:
            _claim(scratch, key, -1, copies.until[key], finish)
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        item = case.writes[e]
        key = item * places + place
        end = finish
        if copies.users[key] > 0 or (case.goal[item] >= 0 and _in_set(case, place, case.goal[item])):
            end = np.inf
        for m in range(moves, outcome.count[0]):
            if outcome.move_item[m] == item and case.tail[outcome.move_arc[m]] == place:
                end = max(end, outcome.move_finish[m])
        _claim(scratch, key, 0, start, end)
    for m in range(moves, outcome.count[0]):
        item, arc = outcome.move_item[m], outcome.move_arc[m]
        key = item * places + case.head[arc]
        last = m + 1 == outcome.count[0] or outcome.move_item[m + 1] != item
        end = outcome.move_finish[m] if last else outcome.move_finish[m + 1]
        if last and case.maker[item] != job:
            end = np.inf if copies.users[key] > 1 else finish
        elif last:
            end = np.inf
        _claim(scratch, key, 1 + m - moves, outcome.move_start[m], end)
        tail = item * places + case.tail[arc]
        first = m == moves or outcome.move_item[m - 1] != item
        if first and case.maker[item] != job and copies.until[tail] < outcome.move_finish[m]:
            _claim(scratch, tail, -1, copies.until[tail], outcome.move_finish[m])


@inner
def _reserve(case, steps, scratch):
    """Reserve the room claimed; if a claim does not fit, take all back and answer (claim, when there is room)."""
    hosts, places = len(case.host_place), len(case.site)
    for c in range(scratch.count[1]):
        key = scratch.claim_key[c]
        site, size = case.site[key % places], case.size[key // places]
        if case.storage[site] == np.inf:
            continue
        most = case.storage[site] * (1.0 + EXCESS) - size
        until = exceeded_until(steps, hosts + site, scratch.claim_start[c], scratch.claim_end[c], most)
        if until >= 0.0:
            for d in range(c):
                before = case.site[scratch.claim_key[d] % places]
                if case.storage[before] < np.inf:
                    occupy(
                        steps, hosts + before, scratch.claim_start[d], scratch.claim_end[d],
                        -case.size[scratch.claim_key[d] // places],
                    )  # fmt: skip
            return c, until
        occupy(steps, hosts + site, scratch.claim_start[c], scratch.claim_end[c], size)
    return -1, 0.0


@inner
def _release(case, steps, copies, key):
    """One user of a copy fewer; the last one ends it."""
    copies.users[key] -= 1
    if copies.users[key] == 0 and copies.until[key] == np.inf:
        hosts, places = len(case.host_place), len(case.site)
        site = case.site[key % places]
        end = max(copies.since[key], copies.last_use[key])
        copies.until[key] = end
        if case.storage[site] < np.inf:
            occupy(steps, hosts + site, end, np.inf, -case.size[key // places])


@inner
def _note_uses(case, job, host, moves, steps, copies, outcome, scratch):
    """After a job is placed: what copies are held until when, and which are no longer needed."""
    places, place = len(case.site), case.host_place[host]
    for c in range(scratch.count[1]):
        key = scratch.claim_key[c]
        if scratch.claim_op[c] >= 0:
            copies.since[key] = scratch.claim_start[c]
        copies.until[key] = scratch.claim_end[c]
    for m in range(moves, outcome.count[0]):
        item, arc = outcome.move_item[m], outcome.move_arc[m]
        tail, head = item * places + case.tail[arc], item * places + case.head[arc]
        copies.last_use[tail] = max(copies.last_use[tail], outcome.move_finish[m])
        copies.last_use[head] = max(copies.last_use[head], outcome.move_finish[m])
        if case.maker[item] == job and (m + 1 == outcome.count[0] or outcome.move_item[m + 1] != item):
            copies.users[head] += PERMANENT
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        item = case.writes[e]
        key = item * places + place
        copies.last_use[key] = max(copies.last_use[key], outcome.finish[job])
        if case.goal[item] >= 0 and _in_set(case, place, case.goal[item]):
            copies.users[key] += PERMANENT
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        item = case.reads[e]
        here = item * places + place
        copies.last_use[here] = max(copies.last_use[here], outcome.finish[job])
        home = False
        if case.maker[item] >= 0:
            at = case.host_place[outcome.host[case.maker[item]]]
            home = at == place
            _release(case, steps, copies, item * places + at)
        else:
            for i in range(case.set_ptr[case.source[item]], case.set_ptr[case.source[item] + 1]):
                home = home or case.sets[i] == place
                _release(case, steps, copies, item * places + case.sets[i])
        if not home and copies.users[here] > 0:
            _release(case, steps, copies, here)


@inner
def _can_follow(case, job, outcome):
    """Whether all that a job waits for has been placed."""
    for e in range(case.wait_ptr[job], case.wait_ptr[job + 1]):
        if outcome.finish[case.waits[e]] < 0.0:
            return False
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        maker = case.maker[case.reads[e]]
        if maker >= 0 and outcome.finish[maker] < 0.0:
            return False
    return True


@inner
def place_job(case, choices, job, host, free, calendar, steps, copies, outcome, scratch):
    """Place one job on a host at the earliest moment; False if its files have no way or never have room."""
    if case.seconds[job, host] == np.inf or not _can_follow(case, job, outcome):
        return False
    scratch.bound[:] = 0.0
    moves = outcome.count[0]
    for _ in range(MOST_TRIES):
        if not _attempt(case, choices, job, host, free, calendar, steps, copies, outcome, scratch):
            return False
        if not case.stored:
            return True
        _claims(case, job, host, moves, copies, outcome, scratch)
        claim, until = _reserve(case, steps, scratch)
        if claim < 0:
            _note_uses(case, job, host, moves, steps, copies, outcome, scratch)
            return True
        op = scratch.claim_op[claim]
        _take_back(case, choices, job, host, free, moves, calendar, steps, copies, outcome, scratch)
        if op < 0 or until == np.inf:
            return False
        scratch.bound[op] = max(scratch.bound[op], until)
    return False
