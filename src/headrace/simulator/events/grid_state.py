"""The arrays of the simulated grid: actual speeds and sizes, active tasks and transfers, and the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.core.state import CoordinatorState, StaticProblem
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.trace import TraceTable

# Kinds of log entries; the meaning of subject, origin and target depends on the kind.
TASK_STARTED, TASK_ENDED, TASK_STOPPED = 0, 1, 2
MOVE_STARTED, MOVE_ENDED, MOVE_CUT = 3, 4, 5
HOST_LEFT, HOST_JOINED, LINK_LEFT, LINK_JOINED, CHANGED = 6, 7, 8, 9, 10
STORAGE_LEFT, STORAGE_JOINED, COPY_DROPPED = 13, 14, 15

LATENCY, FLOWING = 0, 1


class GridState(NamedTuple):
    """The simulated grid. Ids in the event queue: cores first, then transfers."""

    now: Any
    work: Any
    kind: Any
    rate: Any
    size: Any
    table: TraceTable
    host_trace: Any
    link_trace: Any
    link_delay: Any
    """Trace of each link's latency, -1 for none."""
    link_delay_mean: Any
    link_bandwidth: Any
    core_host: Any
    core_work_left: Any
    """Remaining work of the task on each core, as of `core_since`."""
    core_since: Any
    transfer_left: Any
    transfer_since: Any
    transfer_phase: Any
    heap_time: Any
    heap_id: Any
    heap_at: Any
    heap_len: Any
    pair_flows: Any
    pair_rate: Any
    pair_served: Any
    pair_first: Any
    """Flows between the same two places share equally: number, bytes/s and bytes sent by each, and the next end."""
    pair_head: Any
    flow_next: Any
    flow_previous: Any
    flow_goal: Any
    active: Any
    active_at: Any
    n_active: Any
    link_left: Any
    link_users: Any
    flow_time: Any
    log_time: Any
    log_kind: Any
    log_subject: Any
    log_from: Any
    log_to: Any
    log_length: Any
    happened: Any
    """[1] Whether a task or a transfer has finished since the loop last stopped for the scheduler."""


def make_grid_state(
    graph: Graph,
    platform: Platform,
    problem: StaticProblem,
    state: CoordinatorState,
    *,
    rate: Any,
    table: TraceTable,
    host_trace: Any,
    link_trace: Any,
    link_delay: Any,
    link_delay_mean: Any,
) -> GridState:
    """The initial grid; `graph` has the actual run times and sizes."""
    cores, moves = int(problem.core_ptr[-1]), len(state.transfer_item)
    pairs = len(problem.route_bottleneck)
    links = len(state.link_up)
    fair = platform.contention == "fair"
    log = 4 * (graph.n_tasks + graph.n_items) + 1024
    return GridState(
        now=np.zeros(1),
        work=np.ascontiguousarray(graph.work, np.float64),
        kind=graph.kind,
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
        transfer_since=np.zeros(moves),
        transfer_phase=np.zeros(moves, np.int8),
        heap_time=np.zeros(cores + moves + 1),
        heap_id=np.zeros(cores + moves + 1, np.int64),
        heap_at=np.full(cores + moves, -1, np.int64),
        heap_len=np.zeros(1, np.int64),
        pair_flows=np.zeros(pairs if fair else 1, np.int64),
        pair_rate=np.zeros(pairs if fair else 1),
        pair_served=np.zeros(pairs if fair else 1),
        pair_first=np.full(pairs if fair else 1, np.inf),
        pair_head=np.full(pairs if fair else 1, -1, np.int64),
        flow_next=np.full(moves, -1, np.int64),
        flow_previous=np.full(moves, -1, np.int64),
        flow_goal=np.zeros(moves),
        active=np.zeros(pairs if fair else 1, np.int64),
        active_at=np.full(pairs if fair else 1, -1, np.int64),
        n_active=np.zeros(1, np.int64),
        link_left=np.zeros(links),
        link_users=np.zeros(links),
        flow_time=np.array([0.0, np.inf]),
        log_time=np.zeros(log),
        log_kind=np.zeros(log, np.int8),
        log_subject=np.zeros(log, np.int32),
        log_from=np.zeros(log, np.int32),
        log_to=np.zeros(log, np.int32),
        log_length=np.zeros(1, np.int64),
        happened=np.zeros(1, np.bool_),
    )


def with_longer_log(grid: GridState) -> GridState:
    """The same grid with twice the room for log entries."""
    longer: dict[str, Any] = {}
    for name in ("log_time", "log_kind", "log_subject", "log_from", "log_to"):
        old = getattr(grid, name)
        longer[name] = np.concatenate((old, np.zeros_like(old)))
    return grid._replace(**longer)
