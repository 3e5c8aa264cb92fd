"""The arrays of the simulated grid: actual speeds and sizes, active tasks and transfers, and the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.arrays.fair_share import FairShare, make_fair_share
from headrace.arrays.heap import HEAP_FIELDS, NONE, make_rows
from headrace.arrays.records import Records, row_type
from headrace.core.state import CoordinatorState, StaticProblem
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Platform
from headrace.model.trace import TraceTable

# Kinds of log entries; the meaning of subject, origin and target depends on the kind.
TASK_STARTED, TASK_ENDED, TASK_STOPPED = 0, 1, 2
MOVE_STARTED, MOVE_ENDED, MOVE_CUT = 3, 4, 5
HOST_LEFT, HOST_JOINED, LINK_LEFT, LINK_JOINED, CHANGED = 6, 7, 8, 9, 10
STORAGE_LEFT, STORAGE_JOINED, COPY_DROPPED = 13, 14, 15

LATENCY, FLOWING = 0, 1

HAPPENED, MUTED, LOOK_AGAIN, QUIET = 0, 1, 2, 3
"""Positions in `GridState.flags`.

HAPPENED: something has finished since the loop last stopped for the scheduler.
MUTED: the scheduler is not called again before something finishes.
LOOK_AGAIN: the scheduler has left hosts idle; they are checked again as soon as its decisions have started.
QUIET: nothing has started since the last stop, and nothing will by itself.
"""
STOP_LENGTH, IN_VAIN = 0, 1
"""Positions in `GridState.stops`: the length of the log at the last stop; successive quiet stops."""


class GridState(NamedTuple):
    """The simulated grid. Ids in the event queue: cores first, then transfers, then links."""

    now: Floats
    work: Floats
    speed_class: Ints
    rate: Floats
    size: Floats
    table: TraceTable
    host_trace: Ints
    link_trace: Ints
    link_delay: Ints
    """Trace of each link's latency, -1 for none."""
    link_delay_mean: Floats
    link_bandwidth: Floats
    core_host: Ints
    core_work_left: Floats
    """Remaining work of the task on each core, as of `core_since`."""
    core_since: Floats
    transfer_left: Floats
    transfer_rest: Floats
    """How many of these bytes a transfer sends when its turn on shared links is over; 0: none, or it is over."""
    transfer_since: Floats
    transfer_phase: NDArray[np.int8]
    link_user: Ints
    """The transfer that each link is busy with; meaningless while it is idle."""
    link_left: Floats
    """How many of its bytes the link has still to carry, as of `link_since`."""
    link_since: Floats
    ending: Records
    """When cores and transfers end and links become idle, and links take a step of their traces; see `event_queue`."""
    stepping: Records
    queued: Ints
    share: FairShare
    """Transfers that share links; the pair of places p, q is p * places + q."""
    flow_change: Floats
    """When the first of them is over, or a link in use changes its bandwidth."""
    log_time: Floats
    log_kind: NDArray[np.int8]
    log_subject: Ints
    log_from: Ints
    log_to: Ints
    log_length: NDArray[np.int64]
    flags: Bools
    """HAPPENED, MUTED, LOOK_AGAIN, QUIET."""
    stopped_at: Floats
    """[1] When the loop last stopped for the scheduler."""
    stops: NDArray[np.int64]
    """STOP_LENGTH, IN_VAIN."""


def make_grid_state(
    graph: Graph,
    platform: Platform,
    problem: StaticProblem,
    state: CoordinatorState,
    *,
    rate: Floats,
    table: TraceTable,
    host_trace: Ints,
    link_trace: Ints,
    link_delay: Ints,
    link_delay_mean: Floats,
) -> GridState:
    """The initial grid; `graph` has the actual run times and sizes."""
    cores, moves = int(problem.core_ptr[-1]), len(state.transfer_item)
    links = len(state.link_up)
    fair = platform.contention == "fair"
    log = 4 * (graph.n_tasks + graph.n_items) + 1024
    return GridState(
        now=np.zeros(1),
        work=np.ascontiguousarray(graph.work, np.float64),
        speed_class=graph.speed_class,
        rate=np.ascontiguousarray(rate, np.float64),
        size=np.ascontiguousarray(graph.size, np.float64),
        table=table,
        host_trace=host_trace,
        link_trace=link_trace,
        link_delay=link_delay,
        link_delay_mean=link_delay_mean,
        link_bandwidth=np.ascontiguousarray(platform.network.link_bandwidth, np.float64),
        core_host=np.repeat(np.arange(len(platform.hosts), dtype=np.int32), np.diff(problem.core_ptr)),
        core_work_left=np.zeros(cores),
        core_since=np.zeros(cores),
        transfer_left=np.zeros(moves),
        transfer_rest=np.zeros(moves),
        transfer_since=np.zeros(moves),
        transfer_phase=np.zeros(moves, np.int8),
        link_user=np.full(links, -1, np.int32),
        link_left=np.zeros(links),
        link_since=np.zeros(links),
        ending=make_rows(cores + moves + links, row_type(*HEAP_FIELDS)),
        stepping=make_rows(links, row_type(*HEAP_FIELDS)),
        queued=np.array([NONE, NONE], np.int32),
        share=make_fair_share(
            moves if fair else 0,
            problem.route_ptr if fair else np.zeros(1, np.int64),
            problem.route_links if fair else np.empty(0, np.int32),
            platform.network.link_bandwidth,
        ),
        flow_change=np.array([np.inf]),
        log_time=np.zeros(log),
        log_kind=np.zeros(log, np.int8),
        log_subject=np.zeros(log, np.int32),
        log_from=np.zeros(log, np.int32),
        log_to=np.zeros(log, np.int32),
        log_length=np.zeros(1, np.int64),
        flags=np.zeros(4, np.bool_),
        stopped_at=np.array([-1.0]),
        stops=np.zeros(2, np.int64),
    )


def with_longer_log(grid: GridState) -> GridState:
    """The same grid with twice the room for log entries."""
    longer: dict[str, Any] = {}
    for name in ("log_time", "log_kind", "log_subject", "log_from", "log_to"):
        old = getattr(grid, name)
        longer[name] = np.concatenate((old, np.zeros_like(old)))
    return grid._replace(**longer)
