"""Place jobs one by one at the earliest time that cores, links and disks allow.

A job is placed as a whole: the transfers of its inputs, the job itself, and the transfers of its results. If disks are
finite, a job that does not fit is tried again later: every reservation records the operation that began it, and that
operation is delayed until the disk has room.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.calendar import (
    Booking,
    Calendar,
    book,
    cancel,
    earliest,
    exceeded_until,
    first_fit,
    occupy,
)
from headrace.arrays.compiling import leaf
from headrace.planners.coschedule.records import (
    DecisionArrays,
    InstanceArrays,
    ItemCopies,
    JobSchedule,
    Workspace,
)

PERMANENT = 1 << 20
"""Added to the user count of a copy that is kept until the end."""
MOST_TRIES = 400
EXCESS = 5e-10


@leaf
def _earliest_slot(arrays: InstanceArrays, links: Calendar, arc: int, ready: float, size: float) -> float:
    """The earliest time from `ready` on at which all links of an arc are free for a transfer of this size."""
    time = ready
    first, last = arrays.arc_link_ptr[arc], arrays.arc_link_ptr[arc + 1]
    again = arrays.exclusive_links
    while again:
        again = False
        for i in range(first, last):
            seconds = arrays.busy_latency[i] + size / arrays.busy_bandwidth[i]
            free = earliest(links, arrays.arc_links[i], time, seconds)
            if free > time:
                time = free
                again = last - first > 1
    return time


@leaf
def _node(arrays: InstanceArrays, path: int, k: int) -> int:
    return arrays.path_start[path] if k == 0 else arrays.head[arrays.path_arcs[arrays.path_ptr[path] + k - 1]]


@leaf
def _steps_done(arrays: InstanceArrays, copies: ItemCopies, item: int, path: int) -> int:
    """Number of hops of a path that the item has already made."""
    places = len(arrays.site)
    k = arrays.path_ptr[path + 1] - arrays.path_ptr[path]
    while k > 0 and copies.ready[item * places + _node(arrays, path, k)] == np.inf:
        k -= 1
    return k


@leaf
def _arrival(
    arrays: InstanceArrays, links: Calendar, copies: ItemCopies, item: int, path: int, hold: float
) -> float:
    """When an item would arrive over a path, given the current bookings of links."""
    k = _steps_done(arrays, copies, item, path)
    time = max(hold, copies.ready[item * len(arrays.site) + _node(arrays, path, k)])
    for i in range(arrays.path_ptr[path] + k, arrays.path_ptr[path + 1]):
        arc = arrays.path_arcs[i]
        seconds = arrays.latency[arc] + arrays.size[item] / arrays.bandwidth[arc]
        time = _earliest_slot(arrays, links, arc, time, arrays.size[item]) + seconds
    return time


@leaf
def _choose_path(
    arrays: InstanceArrays,
    links: Calendar,
    copies: ItemCopies,
    item: int,
    source: int,
    target: int,
    wanted: int,
    hold: float,
) -> int:
    """The decided path, or the one with the earliest arrival if undecided or too small; -1 if there is none."""
    pair = source * (len(arrays.set_ptr) - 1) + target
    first, last = arrays.pair_ptr[pair], arrays.pair_ptr[pair + 1]
    if last == first:
        return -1
    if wanted >= 0 and arrays.path_room[first + wanted % (last - first)] >= arrays.size[item]:
        return first + wanted % (last - first)
    best, best_time = first, np.inf
    if last - first > 1:
        for path in range(first, last):
            if arrays.path_room[path] < arrays.size[item]:
                continue
            time = _arrival(arrays, links, copies, item, path, hold)
            if time < best_time:
                best, best_time = path, time
    return best


@leaf
def _send(
    arrays: InstanceArrays,
    links: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
    item: int,
    path: int,
    hold: float,
) -> float:
    """Book the transfers of an item along a path; returns the arrival time."""
    places = len(arrays.site)
    k = _steps_done(arrays, copies, item, path)
    time = copies.ready[item * places + _node(arrays, path, k)]
    for i in range(arrays.path_ptr[path] + k, arrays.path_ptr[path + 1]):
        arc = arrays.path_arcs[i]
        seconds = arrays.latency[arc] + arrays.size[item] / arrays.bandwidth[arc]
        op = work.used[2]
        work.used[2] += 1
        start = _earliest_slot(arrays, links, arc, max(time, hold, work.not_before[op]), arrays.size[item])
        time = start + seconds
        if arrays.exclusive_links:
            for j in range(arrays.arc_link_ptr[arc], arrays.arc_link_ptr[arc + 1]):
                busy = arrays.busy_latency[j] + arrays.size[item] / arrays.busy_bandwidth[j]
                booking = book(links, arrays.arc_links[j], start, start + busy)
                b = work.used[0]
                if arrays.limited_storage:
                    work.undo_link[b] = arrays.arc_links[j]
                    work.undo_how[b] = booking.how
                    work.undo_at[b] = booking.at
                    work.undo_start[b] = booking.old_start
                    work.undo_end[b] = booking.old_end
                    work.used[0] += 1
        m = schedule.state[0]
        schedule.transfer_item[m] = item
        schedule.transfer_arc[m] = arc
        schedule.transfer_start[m] = start
        schedule.transfer_finish[m] = time
        schedule.state[0] += 1
        copies.ready[item * places + arrays.head[arc]] = time
    return time


@leaf
def _source_of(arrays: InstanceArrays, schedule: JobSchedule, item: int) -> int:
    return (
        arrays.source[item]
        if arrays.producer[item] < 0
        else arrays.host_place[schedule.host[arrays.producer[item]]]
    )


@leaf
def _held_until(start: float, finish: float) -> float:
    """End of a job's booking; a zero-duration job still blocks bookings across it."""
    return finish if finish > start else np.nextafter(start, np.inf)


@leaf
def attempt(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    job: int,
    host: int,
    free: float,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> bool:
    """Book one job with all its transfers on links and cores; False if a file has no path."""
    places, place = len(arrays.site), arrays.host_place[host]
    work.used[0] = 0
    work.used[2] = 1
    ready = max(arrays.release[job], arrays.host_free[host], work.not_before[0], free)
    for e in range(arrays.wait_ptr[job], arrays.wait_ptr[job + 1]):
        ready = max(ready, schedule.finish[arrays.waits[e]])
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        item = arrays.reads[e]
        if copies.ready[item * places + place] == np.inf:
            source = _source_of(arrays, schedule, item)
            path = _choose_path(arrays, links, copies, item, source, place, decisions.input_path[e], free)
            if path < 0:
                return False
            ready = max(ready, _send(arrays, links, copies, schedule, work, item, path, free))
        else:
            ready = max(ready, copies.ready[item * places + place])
    seconds, cores = arrays.seconds[job, host], arrays.cores[job]
    begin = free if decisions.pull else ready
    start = first_fit(usage, host, ready, seconds, arrays.host_cores[host] - cores)
    if decisions.pull:
        start = ready
    finish = start + seconds
    occupy(usage, host, begin if decisions.pull else start, _held_until(start, finish), float(cores))
    schedule.start[job] = start
    schedule.finish[job] = finish
    schedule.host[job] = host
    done = finish
    for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
        item = arrays.writes[e]
        copies.ready[item * places + place] = finish
        if arrays.destination[item] >= 0:
            path = _choose_path(
                arrays, links, copies, item, place, arrays.destination[item], decisions.output_path[e], 0.0
            )
            if path < 0:
                return False
            done = max(done, _send(arrays, links, copies, schedule, work, item, path, 0.0))
    schedule.delivered[job] = done
    return True


@leaf
def undo(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    job: int,
    host: int,
    free: float,
    moves: int,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> None:
    """Undo an attempt."""
    places = len(arrays.site)
    for b in range(work.used[0] - 1, -1, -1):
        booking = Booking(work.undo_how[b], work.undo_at[b], work.undo_start[b], work.undo_end[b])
        cancel(links, work.undo_link[b], booking)
    for m in range(moves, schedule.state[0]):
        copies.ready[schedule.transfer_item[m] * places + arrays.head[schedule.transfer_arc[m]]] = np.inf
    schedule.state[0] = moves
    for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
        copies.ready[arrays.writes[e] * places + arrays.host_place[host]] = np.inf
    begin = free if decisions.pull else schedule.start[job]
    occupy(
        usage, host, begin, _held_until(schedule.start[job], schedule.finish[job]), -float(arrays.cores[job])
    )


@leaf
def _add_claim(work: Workspace, key: int, op: int, start: float, end: float) -> None:
    c = work.used[1]
    work.claim_key[c] = key
    work.claim_op[c] = op
    work.claim_start[c] = start
    work.claim_end[c] = end
    work.used[1] += 1


@leaf
def _in_set(arrays: InstanceArrays, place: int, which: int) -> bool:
    for i in range(arrays.set_ptr[which], arrays.set_ptr[which + 1]):  # noqa: SIM110 - compiled
        if arrays.sets[i] == place:
            return True
    return False


@leaf
def claim_storage(
    arrays: InstanceArrays,
    job: int,
    host: int,
    moves: int,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> None:
    """Collect the storage claims of a job's files: (copy, operation that begins it or -1 to extend, from, until)."""
    places, place = len(arrays.site), arrays.host_place[host]
    work.used[1] = 0
    start, finish = schedule.start[job], schedule.finish[job]
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        key = arrays.reads[e] * places + place
        brought = False
        for m in range(moves, schedule.state[0]):
            brought = (
                brought or schedule.transfer_item[m] * places + arrays.head[schedule.transfer_arc[m]] == key
            )
        if not brought and copies.until[key] < finish:
            _add_claim(work, key, -1, copies.until[key], finish)
    for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
        item = arrays.writes[e]
        key = item * places + place
        end = finish
        if copies.users[key] > 0 or (
            arrays.destination[item] >= 0 and _in_set(arrays, place, arrays.destination[item])
        ):
            end = np.inf
        for m in range(moves, schedule.state[0]):
            if schedule.transfer_item[m] == item and arrays.tail[schedule.transfer_arc[m]] == place:
                end = max(end, schedule.transfer_finish[m])
        _add_claim(work, key, 0, start, end)
    for m in range(moves, schedule.state[0]):
        item, arc = schedule.transfer_item[m], schedule.transfer_arc[m]
        key = item * places + arrays.head[arc]
        last = m + 1 == schedule.state[0] or schedule.transfer_item[m + 1] != item
        end = schedule.transfer_finish[m] if last else schedule.transfer_finish[m + 1]
        if last and arrays.producer[item] != job:
            end = np.inf if copies.users[key] > 1 else finish
        elif last:
            end = np.inf
        _add_claim(work, key, 1 + m - moves, schedule.transfer_start[m], end)
        tail = item * places + arrays.tail[arc]
        first = m == moves or schedule.transfer_item[m - 1] != item
        if first and arrays.producer[item] != job and copies.until[tail] < schedule.transfer_finish[m]:
            _add_claim(work, tail, -1, copies.until[tail], schedule.transfer_finish[m])


@leaf
def reserve_storage(arrays: InstanceArrays, usage: Calendar, work: Workspace) -> tuple[int, float]:
    """Reserve the claimed storage; if a claim does not fit, undo all and return (claim, when there is room)."""
    hosts, places = len(arrays.host_place), len(arrays.site)
    for c in range(work.used[1]):
        key = work.claim_key[c]
        site, size = arrays.site[key % places], arrays.size[key // places]
        if arrays.storage[site] == np.inf:
            continue
        most = arrays.storage[site] * (1.0 + EXCESS) - size
        until = np.inf
        if most >= 0.0:
            until = exceeded_until(usage, hosts + site, work.claim_start[c], work.claim_end[c], most)
        if until >= 0.0:
            for d in range(c):
                before = arrays.site[work.claim_key[d] % places]
                if arrays.storage[before] < np.inf:
                    occupy(
                        usage, hosts + before, work.claim_start[d], work.claim_end[d],
                        -arrays.size[work.claim_key[d] // places],
                    )  # fmt: skip
            return c, until
        occupy(usage, hosts + site, work.claim_start[c], work.claim_end[c], size)
    return -1, 0.0


@leaf
def _release_copy(arrays: InstanceArrays, usage: Calendar, copies: ItemCopies, key: int) -> None:
    """Decrement the user count of a copy; the last user ends its reservation."""
    copies.users[key] -= 1
    if copies.users[key] == 0 and copies.until[key] == np.inf:
        hosts, places = len(arrays.host_place), len(arrays.site)
        site = arrays.site[key % places]
        end = max(copies.since[key], copies.last_use[key])
        copies.until[key] = end
        if arrays.storage[site] < np.inf:
            occupy(usage, hosts + site, end, np.inf, -arrays.size[key // places])


@leaf
def _note_uses(
    arrays: InstanceArrays,
    job: int,
    host: int,
    moves: int,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> None:
    """After placing a job, update how long copies are held and release those no longer needed."""
    places, place = len(arrays.site), arrays.host_place[host]
    for c in range(work.used[1]):
        key = work.claim_key[c]
        if work.claim_op[c] >= 0:
            copies.since[key] = work.claim_start[c]
        copies.until[key] = work.claim_end[c]
    for m in range(moves, schedule.state[0]):
        item, arc = schedule.transfer_item[m], schedule.transfer_arc[m]
        tail, head = item * places + arrays.tail[arc], item * places + arrays.head[arc]
        copies.last_use[tail] = max(copies.last_use[tail], schedule.transfer_finish[m])
        copies.last_use[head] = max(copies.last_use[head], schedule.transfer_finish[m])
        if arrays.producer[item] == job and (
            m + 1 == schedule.state[0] or schedule.transfer_item[m + 1] != item
        ):
            copies.users[head] += PERMANENT
    for e in range(arrays.write_ptr[job], arrays.write_ptr[job + 1]):
        item = arrays.writes[e]
        key = item * places + place
        copies.last_use[key] = max(copies.last_use[key], schedule.finish[job])
        if arrays.destination[item] >= 0 and _in_set(arrays, place, arrays.destination[item]):
            copies.users[key] += PERMANENT
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        item = arrays.reads[e]
        here = item * places + place
        copies.last_use[here] = max(copies.last_use[here], schedule.finish[job])
        home = False
        if arrays.producer[item] >= 0:
            at = arrays.host_place[schedule.host[arrays.producer[item]]]
            home = at == place
            _release_copy(arrays, usage, copies, item * places + at)
        else:
            for i in range(arrays.set_ptr[arrays.source[item]], arrays.set_ptr[arrays.source[item] + 1]):
                home = home or arrays.sets[i] == place
                _release_copy(arrays, usage, copies, item * places + arrays.sets[i])
        if not home and copies.users[here] > 0:
            _release_copy(arrays, usage, copies, here)


@leaf
def can_follow(arrays: InstanceArrays, job: int, schedule: JobSchedule) -> bool:
    """Whether all predecessors of a job have been placed."""
    for e in range(arrays.wait_ptr[job], arrays.wait_ptr[job + 1]):
        if schedule.finish[arrays.waits[e]] < 0.0:
            return False
    for e in range(arrays.read_ptr[job], arrays.read_ptr[job + 1]):
        maker = arrays.producer[arrays.reads[e]]
        if maker >= 0 and schedule.finish[maker] < 0.0:
            return False
    return True


@leaf
def place_job(
    arrays: InstanceArrays,
    decisions: DecisionArrays,
    job: int,
    host: int,
    free: float,
    links: Calendar,
    usage: Calendar,
    copies: ItemCopies,
    schedule: JobSchedule,
    work: Workspace,
) -> bool:
    """Place one job on a host at the earliest time; False if its files have no path or never fit on the disks."""
    if arrays.seconds[job, host] == np.inf or not can_follow(arrays, job, schedule):
        return False
    work.not_before[:] = 0.0
    moves = schedule.state[0]
    for _ in range(MOST_TRIES):
        if not attempt(arrays, decisions, job, host, free, links, usage, copies, schedule, work):
            return False
        if not arrays.limited_storage:
            return True
        claim_storage(arrays, job, host, moves, copies, schedule, work)
        claim, until = reserve_storage(arrays, usage, work)
        if claim < 0:
            _note_uses(arrays, job, host, moves, usage, copies, schedule, work)
            return True
        op = work.claim_op[claim]
        undo(arrays, decisions, job, host, free, moves, links, usage, copies, schedule, work)
        if op < 0 or until == np.inf:
            return False
        work.not_before[op] = max(work.not_before[op], until)
    return False
