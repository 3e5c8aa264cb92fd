"""The coordinator's data as arrays: the static problem and the state of a run.

Numbers of tasks, items, hosts, places and links are those of the graph and of the platform's network. Compiled
functions in `core.transitions` change the state; nothing here has a clock or does I/O.

Item locations are stored sparsely: one *copy record* for each relevant (item, place), found through a hash table and
linked by item. A run of 100,000 tasks on 1,000 hosts with their own disks has a few hundred thousand records, not a
hundred million cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.core.execution_policy import LINK_ORDERS
from headrace.model.graph import Bools, Floats, Ints

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

# Status of a copy record.
ABSENT, REQUESTED, IN_TRANSIT, PRESENT = 0, 1, 2, 3

# Load of a host; see `core.transitions.load`.
BALANCED, IDLE, CROWDED = 0, 1, 2

# Commands to the back end.
START, SEND, STOP, ABORT, DROP = 0, 1, 2, 3, 4

# Positions of counters in `CoordinatorState.counters`.
(
    DONE,
    READY,
    DELIVERED,
    REQUESTS,
    TRANSFERS,
    COMMANDS,
    STOLEN,
    DUPLICATES,
    REPLICAS,
    REDONE,
    MISPREDICTED,
    COPIES,
) = range(12)
RUNNING_WRITES, IDLE_HOSTS, CROWDED_HOSTS, HOSTS_UP, PLANNED_REQUESTS = range(12, 17)
N_COUNTS = 17

# Positions of settings in `StaticProblem.policy`.
CONTENTION, LINK_ORDER, STRICT, PREFETCH, STEAL, DUPLICATE, REPLICATE, LOOK, LIMITED, RELAY = range(10)
GATED = 10
N_SETTINGS = 11

NONE, FIFO, FAIR = 0, 1, 2
CONTENTION_CODES = {"none": NONE, "fifo": FIFO, "fair": FAIR}
IN_ORDER, OUT_OF_ORDER, HYBRID, PLANNED = (
    LINK_ORDERS[n] for n in ("in-order", "out-of-order", "hybrid", "planned")
)

SCAN_LIMIT = 256
"""Number of requests in a link's queue that are examined when the link can start a transfer."""
BLOCK = 64
"""Number of hosts or queues per counter of those marked for the next dispatch."""


# How a request is served; see `core.transitions.requests`.
NEAREST, FIXED, WAITING, ORDERED, HELD = 0, 1, 2, 3, 4

RECORD_FIELDS = (
    "copy_item", "copy_place", "copy_status", "copy_needed", "copy_relayed", "copy_request", "copy_outgoing",
)  # fmt: skip


class StaticProblem(NamedTuple):
    """Input data that does not change during a run."""

    read_ptr: Ints
    reads: Ints
    write_ptr: Ints
    writes: Ints
    reader_ptr: Ints
    readers: Ints
    producer: Ints
    level: Ints
    cores: Ints
    """Number of cores that each task occupies."""
    destination: Ints
    """The place to which a result must be delivered; -1 for none."""
    result_anywhere: Bools
    """Results without a destination: one copy must exist at the end of the run."""
    no_transfer: Bools
    """Items that never move: signals, and inputs of a platform that has them everywhere."""
    host_place: Ints
    core_ptr: Ints
    place_host: Ints
    """The host that owns this place as its disk; -1 for the shared storage of a site."""
    place_site: Ints
    storage: Floats
    route_ptr: Longs
    """Route from place p to q: links route_links[route_ptr[p * P + q] : route_ptr[p * P + q + 1]]."""
    route_links: Ints
    route_turns: Bytes
    """Whether transfers take their turns on this link of the route: all links but, where they are shared, only the slow
    ones of the route."""
    route_bottleneck: Ints
    """The narrowest link of each route, which queues its requests; -1 if no link is limited."""
    route_seconds_per_byte: Floats
    """inf where there is no route."""
    route_latency: Floats
    next_hop: Ints
    """[P * P] the next hop of the fastest relay path, where transfers go link by link."""
    relay_cost: Floats
    """[P * P] seconds per megabyte over that relay path; inf if there is none."""
    longest_route: int
    origin: int
    policy: Longs
    # Constraints on hosts; see `core.constraint_arrays`.
    move_class: Ints
    """[tasks] the row of `may_move` that applies to each task; empty: no constraints."""
    may_move: Bools
    """[classes, hosts] where the coordinator itself may move or duplicate a task."""
    gate_ptr: Ints
    """Limits on tasks at once that count task t: gates[gate_ptr[t] : gate_ptr[t + 1]]; empty: no such limits."""
    gates: Ints
    gate_hosts: Bools
    """[limits, hosts] where each of these limits counts."""
    gate_most: Longs
    """[limits] running tasks at once."""
    # Memory and named resources.
    need_amount: Floats
    """[tasks, needs] what each task needs of its host while it runs,"""
    need_most: Floats
    """[hosts, needs] and what each host has."""


class CoordinatorState(NamedTuple):
    """Data that changes during a run: queues, running tasks, requests, transfers, and item locations."""

    # Tasks.
    missing_inputs: Ints
    """Inputs of each task that do not exist yet; a release time in the future counts as one more."""
    absent_inputs: Ints
    """Inputs of each assigned task that are not at its host."""
    assigned: Ints
    """The host on which a task is queued; -1 for none."""
    done: Bytes
    rank: Floats
    reserved: Floats
    """Bytes that a running task keeps free for its outputs at its host."""
    in_order: Bytes
    """Whether a task may start only as the head of its queue, to follow the planned order."""
    inputs_requested: Bytes
    predicted: Floats
    """Run time in seconds that was predicted when the task was assigned."""
    queue_next: Ints
    queue_previous: Ints
    startable_next: Ints
    startable_previous: Ints
    startable: Bytes
    run_host: Ints
    run_core: Ints
    run_start: Floats
    duplicate_host: Ints
    duplicate_core: Ints
    duplicate_start: Floats
    ran_on: Ints
    """The host on which a task has finished; -1 for none."""
    ran_for: Floats
    """Seconds that its execution there took."""
    gate_running: Longs
    """Running tasks that each limit on tasks at once counts."""
    need_used: Floats
    """[hosts * needs] what running tasks have of each host."""
    # Hosts.
    host_up: Bytes
    queue_head: Ints
    """Task queues in rank order, one per host; the last one holds ready tasks without a host."""
    queue_tail: Ints
    queue_length: Ints
    startable_head: Ints
    """Tasks in each host's queue whose inputs are all present, in rank order."""
    startable_tail: Ints
    busy_cores: Ints
    load: Bytes
    """IDLE, CROWDED or BALANCED."""
    idle_hosts: Ints
    """Hosts with an empty queue and a free core, in no order; counters[IDLE_HOSTS] of them."""
    crowded_hosts: Ints
    """Hosts with more tasks than cores, in no order; counters[CROWDED_HOSTS] of them."""
    load_position: Ints
    """The position of each host in its list."""
    backlog: Floats
    """Sum of the predicted run times of all tasks that are running or queued on each host, in seconds."""
    running: Ints
    """Running tasks of each host, without duplicates."""
    start_sum: Floats
    """Sum of their start times."""
    last_completion: Floats
    core_task: Ints
    dirty_host: Bytes
    """Hosts marked for the next dispatch: a task may be able to start there."""
    dirty_host_block: Ints
    # Items.
    exists: Bytes
    """Whether at least one copy of an item is reachable."""
    copy_count: Ints
    holder: Ints
    """A place with a copy, from which requests are queued; -1 for none."""
    pending_readers: Ints
    """Tasks that read an item and have not started."""
    delivered: Bytes
    replica: Ints
    size: Floats
    """Bytes of each item: measured if it exists, else estimated."""
    item_copies: Ints
    """The first copy record of each item; -1 for none."""
    # Copy records.
    copy_item: Ints
    copy_place: Ints
    copy_status: Bytes
    copy_needed: Ints
    """Tasks assigned to this place that read the item and have not finished."""
    copy_relayed: Bytes
    """Whether the item will be relayed from here."""
    copy_next: Ints
    copy_request: Ints
    """The planned request that will bring the item here; -1 for none."""
    copy_outgoing: Ints
    """The first planned request that will send the item from here; -1 for none."""
    copy_table: Ints
    """Hash table of copy records; its length is a power of 2."""
    # Places and links.
    place_up: Bytes
    storage_used: Floats
    disk_head: Longs
    """Planned order in which tasks and transfers take up the storage of each site: entries disk_head to disk_end,"""
    disk_end: Longs
    disk_task: Ints
    """each the task that keeps room for its outputs, or -1"""
    disk_item: Ints
    disk_place: Ints
    """and the item that is sent, and where to."""
    disk_position: Ints
    """The entry of each task; -1 for none."""
    link_up: Bytes
    link_busy: Ints
    """Transfers that use each link: one whose turn it is until `release_link`, the others until they end."""
    link_holder: Ints
    """The transfer whose turn it is on each link; -1: none."""
    # Requests.
    request_head: Ints
    """Request queues, one per link; the last one is for routes without a limited link."""
    request_tail: Ints
    request_item: Ints
    request_source: Ints
    request_target: Ints
    request_rank: Floats
    request_next: Ints
    request_previous: Ints
    request_queue: Ints
    request_mode: Bytes
    """NEAREST, FIXED, WAITING, ORDERED or HELD: see `core.transitions.requests`."""
    outgoing_next: Ints
    """Planned requests with the same item and source."""
    outgoing_previous: Ints
    free_requests: Ints
    order_head: Ints
    """Planned order of transfers on each link; entries are request * longest_route + hop."""
    order_tail: Ints
    order_next: Ints
    order_previous: Ints
    dirty_queue: Bytes
    """Request queues marked for the next dispatch: a transfer may be able to start."""
    dirty_queue_block: Ints
    # Transfers.
    transfer_item: Ints
    transfer_source: Ints
    transfer_target: Ints
    transfer_rank: Floats
    transfer_start: Floats
    transfer_in_turn: Bytes
    """Whether a transfer started on idle links, and lets the next one start before it has finished."""
    free_transfers: Ints
    live_transfers: Ints
    live_position: Ints
    # Commands to the back end, and scratch space.
    command_kind: Ints
    command_subject: Ints
    command_from: Ints
    command_to: Ints
    to_replicate: Ints
    """Ring buffer of items that wait for replication."""
    to_replicate_at: Longs
    stack: Ints
    counters: Longs
