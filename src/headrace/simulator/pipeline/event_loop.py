"""The compiled event loop of a pipeline: buffers through copies, ports and links."""

from __future__ import annotations

import heapq
import math

from headrace.arrays.compiling import entry, leaf
from headrace.arrays.heap import NONE
from headrace.simulator.pipeline.state import (
    BEGINNERS,
    BLOCKED,
    BUSY,
    EVENTS,
    FREE,
    IDLE,
    SENDERS,
    UPCOMING,
    PipelineState,
)


@entry
def run_pipeline(
    pipeline: PipelineState, size: float, low: float, high: float
) -> tuple[float, float, float, int]:
    """Run until nothing moves, with buffers of `size` MB.

    The answer is the rate between `low` and `high` MB through, the end, the MB and the number of events. An event is a
    buffer that leaves a copy or a resource: O(log of what is under way + targets of a router) each.
    """
    counters, upcoming = pipeline.counters, pipeline.upcoming
    events = [(0.0, 0, 0)]
    events.pop()
    now = through = 0.0
    low_at = math.nan
    rate = math.inf
    for station in range(pipeline.readers):
        _let_begin(pipeline, station)
    while True:
        _settle(pipeline, now, size)
        for i in range(counters[UPCOMING]):
            counters[EVENTS] += 1
            heapq.heappush(events, (upcoming[i].moment, counters[EVENTS], upcoming[i].what))
        counters[UPCOMING] = 0
        if len(events) == 0:
            return rate, now, through, counters[EVENTS]
        now, _, what = heapq.heappop(events)
        if what < 0:
            _deliver(pipeline, now, ~what)
            continue
        through += _finish(pipeline, what)
        if through >= low and math.isnan(low_at):
            low_at, low = now, through
        elif through >= high and math.isinf(rate) and now > low_at:
            rate = (through - low) / (now - low_at)


@leaf
def _let_begin(pipeline: PipelineState, station: int) -> None:
    """Remember that copies of a station may be able to begin something."""
    if not pipeline.stations[station].may_begin:
        pipeline.stations[station].may_begin = True
        pipeline.beginners[pipeline.counters[BEGINNERS]] = station
        pipeline.counters[BEGINNERS] += 1


@leaf
def _let_send(pipeline: PipelineState, station: int) -> None:
    """Remember that copies of a station may be able to send something."""
    if not pipeline.stations[station].may_send:
        pipeline.stations[station].may_send = True
        pipeline.senders[pipeline.counters[SENDERS]] = station
        pipeline.counters[SENDERS] += 1


@leaf
def _cause(pipeline: PipelineState, moment: float, what: int) -> None:
    """A copy works a buffer off, or ~resource carries one, until a moment."""
    event = pipeline.upcoming[pipeline.counters[UPCOMING]]
    event.moment = moment
    event.what = what
    pipeline.counters[UPCOMING] += 1


@leaf
def _settle(pipeline: PipelineState, now: float, size: float) -> None:
    """Do all that can be done at this moment: first send, then begin work."""
    counters = pipeline.counters
    while True:
        if counters[SENDERS] > 0:
            counters[SENDERS] -= 1
            station = pipeline.senders[counters[SENDERS]]
            pipeline.stations[station].may_send = False
            _send(pipeline, now, station)
        elif counters[BEGINNERS] > 0:
            counters[BEGINNERS] -= 1
            station = pipeline.beginners[counters[BEGINNERS]]
            pipeline.stations[station].may_begin = False
            _begin(pipeline, now, station, size)
        else:
            return


@leaf
def _divide(pipeline: PipelineState, copy: int, size: float) -> None:
    """Divide the work on a buffer into steps: a copy sends what it makes piece by piece, not all at the end."""
    worker = pipeline.copies[copy]
    station = pipeline.stations[worker.station]
    worker.step = 0
    worker.steps = 1
    for router in range(station.first_router, station.last_router):
        made = worker.size * pipeline.routers[router].ratio
        pieces = 0 if made <= 0.0 else max(1, math.ceil(made / size - 1e-9))
        output = pipeline.outputs[copy * pipeline.streams + router - station.first_router]
        output.pieces = pieces
        output.left = 0
        output.size = made / max(pieces, 1)
        worker.steps = max(worker.steps, pieces)


@leaf
def _continue(pipeline: PipelineState, now: float, copy: int) -> None:
    """A copy begins the next step of its work on a buffer."""
    worker = pipeline.copies[copy]
    worker.status = BUSY
    _cause(pipeline, now + worker.size / worker.steps / pipeline.stations[worker.station].rate, copy)


@leaf
def _finish(pipeline: PipelineState, copy: int) -> float:
    """A copy has finished a step and may have pieces to send. MB that are through."""
    worker = pipeline.copies[copy]
    station = pipeline.stations[worker.station]
    worker.status = BLOCKED
    before = worker.step
    worker.step += 1
    for router in range(station.first_router, station.last_router):
        output = pipeline.outputs[copy * pipeline.streams + router - station.first_router]
        output.left += worker.step * output.pieces // worker.steps - before * output.pieces // worker.steps
    _let_send(pipeline, worker.station)
    return float(worker.size * station.input_share) if worker.step == worker.steps else 0.0


@leaf
def _send(pipeline: PipelineState, now: float, number: int) -> None:
    """Copies that have made pieces send them, as far as there is room for them, and then go on."""
    station = pipeline.stations[number]
    for copy in range(station.first_copy, station.last_copy):
        if pipeline.copies[copy].status != BLOCKED:
            continue
        done = True
        for router in range(station.first_router, station.last_router):
            output = pipeline.outputs[copy * pipeline.streams + router - station.first_router]
            while output.left > 0 and _room_ahead(pipeline, router):
                output.left -= 1
                _send_buffer(pipeline, now, number, router, output.size)
            done = done and output.left == 0
        if done and pipeline.copies[copy].step < pipeline.copies[copy].steps:
            _continue(pipeline, now, copy)
        elif done:
            pipeline.copies[copy].status = IDLE
            _let_begin(pipeline, number)


@leaf
def _send_buffer(pipeline: PipelineState, now: float, source: int, router: int, size: float) -> None:
    """A buffer leaves for the station that its router has chosen."""
    target = pipeline.routers[router].chosen
    pipeline.routers[router].chosen = NONE
    pipeline.stations[target].room -= 1
    number = pipeline.counters[FREE]
    buffer = pipeline.buffers[number]
    pipeline.counters[FREE] = buffer.next
    buffer.size = size
    buffer.source = source
    buffer.target = target
    buffer.way = pipeline.routers[router].way
    buffer.hop = 0
    _advance(pipeline, now, number)


@leaf
def _room_ahead(pipeline: PipelineState, number: int) -> bool:
    """Whether the station that is next has room; if not, the router waits there."""
    routers = pipeline.routers
    router = routers[number]
    if router.waiting:
        return False
    if router.chosen == NONE:
        router.chosen = _next_target(pipeline, number)
    target = pipeline.stations[router.chosen]
    if target.room > 0:
        return True
    router.waiting = True
    router.next_waiting = NONE
    if target.first_waiting == NONE:
        target.first_waiting = number
    else:
        routers[target.last_waiting].next_waiting = number
    target.last_waiting = number
    return False


@leaf
def _next_target(pipeline: PipelineState, number: int) -> int:
    """In turn, or the planned target that is most behind its proportion."""
    router, edges = pipeline.routers[number], pipeline.edges
    if router.first_edge == router.last_edge:
        router.turn += 1
        router.way = NONE
        return int(router.first_target + router.turn % router.targets)
    best = router.first_edge
    for edge in range(router.first_edge + 1, router.last_edge):
        if edges[edge].due < edges[best].due:
            best = edge
    edges[best].due += 1.0 / edges[best].weight
    router.way = edges[best].way
    return int(edges[best].target)


@leaf
def _advance(pipeline: PipelineState, now: float, number: int) -> None:
    """Put a buffer into the queue of the next resource on its way, or of the station at its end."""
    buffer, stations = pipeline.buffers[number], pipeline.stations
    source, target = stations[buffer.source].place, stations[buffer.target].place
    if source != target:
        route = buffer.way
        if route == NONE:
            route = pipeline.zone[source] * pipeline.zones + pipeline.zone[target]
        first = pipeline.route_ptr[route]
        links = pipeline.route_ptr[route + 1] - first
        while buffer.hop <= links + 1:
            if buffer.hop == 0:
                resource = pipeline.out_port[source]
            elif buffer.hop <= links:
                resource = pipeline.route_links[first + buffer.hop - 1]
            else:
                resource = pipeline.in_port[target]
            buffer.hop += 1
            if resource >= 0:
                _enqueue_at_resource(pipeline, now, resource, number)
                return
    _enqueue_at_station(pipeline, buffer.target, number)


@leaf
def _enqueue_at_station(pipeline: PipelineState, number: int, buffer: int) -> None:
    station, buffers = pipeline.stations[number], pipeline.buffers
    buffers[buffer].next = NONE
    if station.first_buffer == NONE:
        station.first_buffer = buffer
    else:
        buffers[station.last_buffer].next = buffer
    station.last_buffer = buffer
    _let_begin(pipeline, number)


@leaf
def _enqueue_at_resource(pipeline: PipelineState, now: float, number: int, buffer: int) -> None:
    resource, buffers = pipeline.resources[number], pipeline.buffers
    buffers[buffer].next = NONE
    if resource.first == NONE:
        resource.first = buffer
        _cause(pipeline, now + buffers[buffer].size / resource.bandwidth, ~number)
    else:
        buffers[resource.last].next = buffer
    resource.last = buffer


@leaf
def _deliver(pipeline: PipelineState, now: float, number: int) -> None:
    """A resource has carried a buffer: the next one begins, and this one goes on."""
    resource, buffers = pipeline.resources[number], pipeline.buffers
    buffer = resource.first
    resource.carried += buffers[buffer].size
    resource.first = buffers[buffer].next
    if resource.first != NONE:
        _cause(pipeline, now + buffers[resource.first].size / resource.bandwidth, ~number)
    _advance(pipeline, now, buffer)


@leaf
def _begin(pipeline: PipelineState, now: float, number: int, size: float) -> None:
    """Idle copies begin to work, as long as there is something for them."""
    station = pipeline.stations[number]
    reads = number < pipeline.readers
    for copy in range(station.first_copy, station.last_copy):
        if pipeline.copies[copy].status != IDLE:
            continue
        if reads and not _may_read(pipeline, number):
            return
        if not reads and station.first_buffer == NONE:
            return
        taken = _read(pipeline, number) if reads else _take(pipeline, number)
        pipeline.copies[copy].size = taken
        station.done += taken
        _divide(pipeline, copy, size)
        _continue(pipeline, now, copy)


@leaf
def _take(pipeline: PipelineState, number: int) -> float:
    """Take the buffer that waits longest: its size. Its room goes to the router that waits longest for it."""
    station = pipeline.stations[number]
    taken = station.first_buffer
    buffer = pipeline.buffers[taken]
    station.first_buffer = buffer.next
    buffer.next = pipeline.counters[FREE]
    pipeline.counters[FREE] = taken
    station.room += 1
    if station.first_waiting != NONE:
        router = pipeline.routers[station.first_waiting]
        station.first_waiting = router.next_waiting
        router.waiting = False
        _let_send(pipeline, router.station)
    return float(buffer.size)


@leaf
def _may_read(pipeline: PipelineState, number: int) -> bool:
    """Whether something is left to read, and the reader is not too far ahead of the others."""
    stations = pipeline.stations
    station = stations[number]
    if station.to_read - station.begun <= 1e-9 * station.to_read:
        return False
    least = station.to_read
    for other in range(pipeline.readers):
        least = min(least, stations[other].to_read)
    lead = pipeline.portion * max(pipeline.window / station.to_read, 2.0 / least)
    return bool(station.begun / station.to_read <= _slowest(pipeline) + lead)


@leaf
def _slowest(pipeline: PipelineState) -> float:
    """The share that the reader which is behind all others has begun to read."""
    slowest = 1.0
    for reader in range(pipeline.readers):
        station = pipeline.stations[reader]
        slowest = min(slowest, station.begun / station.to_read)
    return slowest


@leaf
def _read(pipeline: PipelineState, number: int) -> float:
    """Begin to read a portion: its size. When the slowest reader does, others may go on."""
    station = pipeline.stations[number]
    was_slowest = station.begun / station.to_read <= _slowest(pipeline)
    taken = min(pipeline.portion, station.to_read - station.begun)
    station.begun += taken
    for other in range(pipeline.readers if was_slowest else 0):
        if other != number:
            _let_begin(pipeline, other)
    return float(taken)
