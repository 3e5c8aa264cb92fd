"""The compiled loop of a flow simulation: buffers through copies, ports and links, event by event.

A *station* is a placement: the copies of one filter on one host. It has room for a number of buffers, under
way to it or waiting; who sends must get a place there first. A *router* is one outgoing stream of a
station. A *resource* is a port, a link or a segment: it carries one buffer at a time, in order of arrival.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

from headrace.arrays.compiling import entry, inner

IDLE, BUSY, BLOCKED = 0, 1, 2
SEQUENCE, FREE, IDLERS, SENDERS = 0, 1, 2, 3
NONE = -1


class Columns(NamedTuple):
    """Where each column begins: those of whole numbers in one flat array, those of amounts in another.

    Two arrays and a tuple of numbers are quick to hand to functions; forty arrays are not. Stations are
    ordered by filter, the reader's first, so that the copies of a filter are a range. `_ptr` columns hold
    where the entries of each row begin in another column.
    """

    station_place: int
    """Where its data lies."""
    copy_ptr: int
    copy_station: int
    router_ptr: int
    router_station: int
    router_first: int
    router_targets: int
    edge_ptr: int
    edge_target: int
    """Planned targets of routers; a router without any sends to all stations of the next filter in turn."""
    out_port: int
    in_port: int
    zone: int
    route_ptr: int
    route_links: int
    copy_state: int
    left: int
    """[copy, stream] pieces that a copy still has to send."""
    chosen: int
    """The station that a router sends to next."""
    turn: int
    waiting: int
    """Whether a router waits for room; next_waiting: who waits behind it."""
    next_waiting: int
    room: int
    """Buffers that a station can still be sent."""
    first_waiting: int
    last_waiting: int
    first_buffer: int
    last_buffer: int
    may_begin: int
    idlers: int
    """Stations of which copies may be able to begin something; senders: to send something."""
    may_send: int
    senders: int
    buffer_source: int
    buffer_target: int
    buffer_hop: int
    buffer_next: int
    resource_first: int
    resource_last: int
    number: int
    """SEQUENCE of the last event, first FREE buffer, how many IDLERS and SENDERS there are."""
    rate: int
    """MB/s of one copy."""
    to_read: int
    """MB that a reader's station reads; 0 for the others."""
    counts: int
    """MB read at the start that a MB taken in stands for, at the last filters; 0 for the others."""
    router_ratio: int
    """MB sent for each MB taken in."""
    edge_weight: int
    bandwidth: int
    """MB/s of each resource."""
    copy_size: int
    piece: int
    """[copy, stream] size of what is left to send."""
    due: int
    """When each planned target is due, in buffers over weight."""
    begun: int
    """MB that a reader has begun to read."""
    done: int
    """MB that a station has taken in."""
    buffer_size: int
    carried: int
    """MB that each resource has carried."""
    streams: int
    """Not a column: the most outgoing streams of a filter."""
    zones: int
    """Not a column: the number of zones."""
    readers: int
    """Not a column: the number of stations that read."""
    window: int
    """Not a column: the buffers that a station has room for, and that a reader may be ahead of the slowest (by
    two of the one that reads least, if that is more)."""


@entry
def flow(ints, reals, at, size, low, high):
    """Run until nothing moves: the rate between `low` and `high` MB through, the end, the MB, the events.

    O(events * (log of what is under way + targets of a router)); an event is a buffer that leaves a copy
    or a resource.
    """
    heap = [(0.0, 0, 0)]
    heapq.heappop(heap)
    now = 0.0
    through = 0.0
    low_at = math.nan
    rate = math.inf
    for station in range(at.readers):
        _let_begin(ints, at, station)
    while True:
        _settle(ints, reals, at, heap, now, size)
        if len(heap) == 0:
            break
        now, _, what = heapq.heappop(heap)
        if what >= 0:
            through += _finish(ints, reals, at, what, size)
            if through >= low and math.isnan(low_at):
                low_at, low = now, through
            elif through >= high and math.isinf(rate) and now > low_at:
                rate = (through - low) / (now - low_at)
        else:
            _deliver(ints, reals, at, heap, now, NONE - what)
    return rate, now, through, ints[at.number + SEQUENCE]


@inner
def _let_begin(ints, at, station):
    """Remember that copies of a station may be able to begin something."""
    if not ints[at.may_begin + station]:
        ints[at.may_begin + station] = True
        ints[at.idlers + ints[at.number + IDLERS]] = station
        ints[at.number + IDLERS] += 1


@inner
def _let_send(ints, at, station):
    """Remember that copies of a station may be able to send something."""
    if not ints[at.may_send + station]:
        ints[at.may_send + station] = True
        ints[at.senders + ints[at.number + SENDERS]] = station
        ints[at.number + SENDERS] += 1


@inner
def _push(ints, at, heap, moment, what):
    ints[at.number + SEQUENCE] += 1
    heapq.heappush(heap, (moment, ints[at.number + SEQUENCE], what))


@inner
def _settle(ints, reals, at, heap, now, size):
    """Do all that can be done at this moment: first send, then begin work."""
    while True:
        if ints[at.number + SENDERS] > 0:
            ints[at.number + SENDERS] -= 1
            station = ints[at.senders + ints[at.number + SENDERS]]
            ints[at.may_send + station] = False
            _send(ints, reals, at, heap, now, station)
        elif ints[at.number + IDLERS] > 0:
            ints[at.number + IDLERS] -= 1
            station = ints[at.idlers + ints[at.number + IDLERS]]
            ints[at.may_begin + station] = False
            _begin(ints, reals, at, heap, now, station, size)
        else:
            return


@inner
def _finish(ints, reals, at, copy, size):
    """A copy has worked a buffer off and has pieces to send. MB that are through."""
    station = ints[at.copy_station + copy]
    taken = reals[at.copy_size + copy]
    ints[at.copy_state + copy] = BLOCKED
    first = ints[at.router_ptr + station]
    for router in range(first, ints[at.router_ptr + station + 1]):
        made = taken * reals[at.router_ratio + router]
        pieces = 0 if made <= 0.0 else max(1, math.ceil(made / size - 1e-9))
        ints[at.left + copy * at.streams + router - first] = pieces
        reals[at.piece + copy * at.streams + router - first] = made / max(pieces, 1)
    _let_send(ints, at, station)
    return taken * reals[at.counts + station]


@inner
def _send(ints, reals, at, heap, now, station):
    """Copies that have worked something off send their pieces, as far as there is room for them."""
    first = ints[at.router_ptr + station]
    for copy in range(ints[at.copy_ptr + station], ints[at.copy_ptr + station + 1]):
        if ints[at.copy_state + copy] != BLOCKED:
            continue
        done = True
        for router in range(first, ints[at.router_ptr + station + 1]):
            column = router - first
            while ints[at.left + copy * at.streams + column] > 0 and _room_ahead(ints, reals, at, router):
                ints[at.left + copy * at.streams + column] -= 1
                target = ints[at.chosen + router]
                ints[at.chosen + router] = NONE
                ints[at.room + target] -= 1
                buffer = ints[at.number + FREE]
                ints[at.number + FREE] = ints[at.buffer_next + buffer]
                reals[at.buffer_size + buffer] = reals[at.piece + copy * at.streams + column]
                ints[at.buffer_source + buffer] = station
                ints[at.buffer_target + buffer] = target
                ints[at.buffer_hop + buffer] = 0
                _advance(ints, reals, at, heap, now, buffer)
            done = done and ints[at.left + copy * at.streams + column] == 0
        if done:
            ints[at.copy_state + copy] = IDLE
            _let_begin(ints, at, station)


@inner
def _room_ahead(ints, reals, at, router):
    """Whether the station that is next has room; if not, the router waits there."""
    if ints[at.waiting + router]:
        return False
    if ints[at.chosen + router] == NONE:
        ints[at.chosen + router] = _next_target(ints, reals, at, router)
    target = ints[at.chosen + router]
    if ints[at.room + target] > 0:
        return True
    ints[at.waiting + router] = True
    ints[at.next_waiting + router] = NONE
    if ints[at.first_waiting + target] == NONE:
        ints[at.first_waiting + target] = router
    else:
        ints[at.next_waiting + ints[at.last_waiting + target]] = router
    ints[at.last_waiting + target] = router
    return False


@inner
def _next_target(ints, reals, at, router):
    """In turn, or the planned target that is most behind its proportion."""
    first, last = ints[at.edge_ptr + router], ints[at.edge_ptr + router + 1]
    if first == last:
        ints[at.turn + router] += 1
        return ints[at.router_first + router] + ints[at.turn + router] % ints[at.router_targets + router]
    best = first
    for edge in range(first + 1, last):
        if reals[at.due + edge] < reals[at.due + best]:
            best = edge
    reals[at.due + best] += 1.0 / reals[at.edge_weight + best]
    return ints[at.edge_target + best]


@inner
def _advance(ints, reals, at, heap, now, buffer):
    """Put a buffer into the queue of the next resource on its way, or of the station at its end."""
    source = ints[at.station_place + ints[at.buffer_source + buffer]]
    target = ints[at.station_place + ints[at.buffer_target + buffer]]
    if source != target:
        route = ints[at.zone + source] * at.zones + ints[at.zone + target]
        begin = ints[at.route_ptr + route]
        links = ints[at.route_ptr + route + 1] - begin
        while ints[at.buffer_hop + buffer] <= links + 1:
            hop = ints[at.buffer_hop + buffer]
            if hop == 0:
                resource = ints[at.out_port + source]
            elif hop <= links:
                resource = ints[at.route_links + begin + hop - 1]
            else:
                resource = ints[at.in_port + target]
            ints[at.buffer_hop + buffer] += 1
            if resource >= 0:
                _join(ints, reals, at, heap, now, resource, buffer)
                return
    station = ints[at.buffer_target + buffer]
    ints[at.buffer_next + buffer] = NONE
    if ints[at.first_buffer + station] == NONE:
        ints[at.first_buffer + station] = buffer
    else:
        ints[at.buffer_next + ints[at.last_buffer + station]] = buffer
    ints[at.last_buffer + station] = buffer
    _let_begin(ints, at, station)


@inner
def _join(ints, reals, at, heap, now, resource, buffer):
    ints[at.buffer_next + buffer] = NONE
    if ints[at.resource_first + resource] == NONE:
        ints[at.resource_first + resource] = buffer
        _push(
            ints,
            at,
            heap,
            now + reals[at.buffer_size + buffer] / reals[at.bandwidth + resource],
            NONE - resource,
        )
    else:
        ints[at.buffer_next + ints[at.resource_last + resource]] = buffer
    ints[at.resource_last + resource] = buffer


@inner
def _deliver(ints, reals, at, heap, now, resource):
    """A resource has carried a buffer: the next one begins, and this one goes on."""
    buffer = ints[at.resource_first + resource]
    reals[at.carried + resource] += reals[at.buffer_size + buffer]
    following = ints[at.buffer_next + buffer]
    ints[at.resource_first + resource] = following
    if following != NONE:
        _push(
            ints,
            at,
            heap,
            now + reals[at.buffer_size + following] / reals[at.bandwidth + resource],
            NONE - resource,
        )
    _advance(ints, reals, at, heap, now, buffer)


@inner
def _begin(ints, reals, at, heap, now, station, size):
    """Idle copies begin to work, as long as there is something for them."""
    reads = station < at.readers
    for copy in range(ints[at.copy_ptr + station], ints[at.copy_ptr + station + 1]):
        if ints[at.copy_state + copy] != IDLE:
            continue
        if reads and not _may_read(reals, at, station, size):
            return
        if not reads and ints[at.first_buffer + station] == NONE:
            return
        taken = _read(ints, reals, at, station, size) if reads else _take(ints, reals, at, station)
        ints[at.copy_state + copy] = BUSY
        reals[at.copy_size + copy] = taken
        reals[at.done + station] += taken
        _push(ints, at, heap, now + taken / reals[at.rate + station], copy)


@inner
def _take(ints, reals, at, station):
    """Take the buffer that waits longest: its size. Its room goes to the router that waits longest for it."""
    buffer = ints[at.first_buffer + station]
    ints[at.first_buffer + station] = ints[at.buffer_next + buffer]
    ints[at.buffer_next + buffer] = ints[at.number + FREE]
    ints[at.number + FREE] = buffer
    ints[at.room + station] += 1
    router = ints[at.first_waiting + station]
    if router != NONE:
        ints[at.first_waiting + station] = ints[at.next_waiting + router]
        ints[at.waiting + router] = False
        _let_send(ints, at, ints[at.router_station + router])
    return reals[at.buffer_size + buffer]


@inner
def _may_read(reals, at, station, size):
    """Whether something is left to read, and the reader is not too far ahead of the others."""
    whole = reals[at.to_read + station]
    if whole - reals[at.begun + station] <= 1e-9 * whole:
        return False
    least = whole
    for other in range(at.readers):
        least = min(least, reals[at.to_read + other])
    lead = size * max(at.window / whole, 2.0 / least)
    return reals[at.begun + station] / whole <= _slowest(reals, at) + lead


@inner
def _slowest(reals, at):
    """The share that the reader which is behind all others has begun to read."""
    slowest = 1.0
    for reader in range(at.readers):
        slowest = min(slowest, reals[at.begun + reader] / reals[at.to_read + reader])
    return slowest


@inner
def _read(ints, reals, at, station, size):
    """Begin to read a buffer: its size. When the slowest reader does, others may go on."""
    whole = reals[at.to_read + station]
    was_slowest = reals[at.begun + station] / whole <= _slowest(reals, at)
    taken = min(size, whole - reals[at.begun + station])
    reals[at.begun + station] += taken
    for other in range(at.readers if was_slowest else 0):
        if other != station:
            _let_begin(ints, at, other)
    return taken
