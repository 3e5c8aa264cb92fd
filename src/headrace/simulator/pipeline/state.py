"""A pipeline under way as the compiled event loop reads it.

A *station* is a placement: the copies of one filter on one host. It has room for a number of buffers, under way to it
or waiting; a sender must get a place there first. A *router* is one outgoing stream of a station. A *resource* is a
port, a link or a segment: it carries one buffer at a time, in order of arrival.

Stations are ordered by filter, the reader's first, so that the copies of a filter are a range.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.records import Records, row_type
from headrace.model.graph import Ints

IDLE, BUSY, BLOCKED = 0, 1, 2
"""What a copy does; BLOCKED: it has something to send."""

EVENTS, FREE, BEGINNERS, SENDERS, UPCOMING = 0, 1, 2, 3, 4
"""Counters: events so far, first free buffer, entries of `beginners`, of `senders` and of `upcoming`."""

STATION = row_type(
    ("rate", np.float64),  # MB/s of one copy
    ("to_read", np.float64),  # MB that a reader's station reads; 0 for the others
    ("begun", np.float64),  # MB that a reader has begun to read
    ("done", np.float64),  # MB that it has taken in
    ("input_share", np.float64),  # MB of input that a MB taken in stands for, at the last filters; else 0
    ("place", np.int32),  # where its data lies
    ("room", np.int32),  # buffers that it can still be sent
    ("first_copy", np.int32),
    ("last_copy", np.int32),
    ("first_router", np.int32),
    ("last_router", np.int32),
    ("first_waiting", np.int32),  # routers that wait for room, or NONE
    ("last_waiting", np.int32),
    ("first_buffer", np.int32),  # buffers that wait to be worked off, or NONE
    ("last_buffer", np.int32),
    ("may_begin", np.bool_),  # it is in `beginners`
    ("may_send", np.bool_),  # it is in `senders`
)

COPY = row_type(
    ("size", np.float64),  # MB it works on
    ("station", np.int32),
    ("status", np.int32),
    ("step", np.int32),  # steps of this work that are done
    ("steps", np.int32),
)

OUTPUT = row_type(("size", np.float64), ("pieces", np.int32), ("left", np.int32))
"""[copy, stream] MB of each piece that a copy makes of its buffer, how many, and those made but not yet sent."""

ROUTER = row_type(
    ("ratio", np.float64),  # MB sent for each MB taken in
    ("station", np.int32),
    ("first_target", np.int32),  # stations of the next filter
    ("targets", np.int32),
    ("first_edge", np.int32),  # planned targets; a router without any sends to all targets in turn
    ("last_edge", np.int32),
    ("chosen", np.int32),  # the station that it sends to next, or NONE
    ("way", np.int32),  # the route there, or NONE: that between the two zones
    ("turn", np.int32),
    ("next_waiting", np.int32),  # the router that waits behind it
    ("waiting", np.bool_),  # for room
)

EDGE = row_type(
    ("weight", np.float64),
    ("due", np.float64),  # when it is due, in buffers over weight
    ("target", np.int32),
    ("way", np.int32),  # the route there, or NONE
)

BUFFER = row_type(
    ("size", np.float64),
    ("source", np.int32),
    ("target", np.int32),
    ("way", np.int32),
    ("hop", np.int32),
    ("next", np.int32),  # the buffer behind it in a queue
)

RESOURCE = row_type(
    ("bandwidth", np.float64),  # MB/s
    ("carried", np.float64),  # MB
    ("first", np.int32),  # the buffer that it carries, or NONE
    ("last", np.int32),
)

UPCOMING_EVENT = row_type(("moment", np.float64), ("what", np.int64))
"""A copy that will have worked a buffer off or, below 0, ~resource that will have carried one."""


class PipelineState(NamedTuple):
    """Everything that the event loop reads and changes."""

    stations: Records
    copies: Records
    outputs: Records
    routers: Records
    edges: Records
    buffers: Records
    resources: Records
    out_port: Ints
    in_port: Ints
    zone: Ints
    route_ptr: NDArray[np.int64]
    """Between zones a and b: route_links[route_ptr[a * zones + b] : ...]; after those of all zones, chosen routes."""
    route_links: Ints
    beginners: Ints
    """Stations of which copies may be able to begin something."""
    senders: Ints
    """Stations of which copies may be able to send something."""
    upcoming: Records
    """Events that were caused in this step."""
    counters: NDArray[np.int64]
    streams: int
    """The most outgoing streams of a filter."""
    zones: int
    readers: int
    """Stations that read."""
    portion: float
    """MB that a reader reads at a time: a full buffer or less."""
    window: int
    """Buffers that a station has room for, and that a reader may be ahead of the slowest (by two of the one that reads
    least, if that is more)."""
