"""What the coordinator knows, as arrays: the problem (fixed) and the state (queues and where data lies).

Numbers of tasks, items, hosts, places and links are those of the graph and the platform's network.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import OUTSIDE, Graph
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Platform

MOST_CELLS = 100_000_000
"""Items times places: one byte and one counter each are kept."""

# What is at a place of an item.
ABSENT, REQUESTED, MOVING, HERE = 0, 1, 2, 3

# Orders to the back end.
START, MOVE, CANCEL, CUT, DROP = 0, 1, 2, 3, 4

# Where counters lie in `CoordinatorState.count`.
DONE, WAITING, DELIVERED, REQUESTS, MOVES, ORDERS, STOLEN, COPIED, REPLICAS, REDONE, NEWS, OFF = range(12)
N_COUNTS = 12

# Where settings lie in `StaticProblem.policy`.
CONTENTION, LINK_ORDER, STRICT, PREFETCH, STEAL, DUPLICATE, REPLICATE, LOOK, LIMITED, RELAY = range(10)
N_POLICIES = 10

NONE, FIFO, FAIR = 0, 1, 2
IN_ORDER, OUT_OF_ORDER, HYBRID = 0, 1, 2


class StaticProblem(NamedTuple):
    """What is given and does not change."""

    read_ptr: Any
    reads: Any
    write_ptr: Any
    writes: Any
    reader_ptr: Any
    readers: Any
    producer: Any
    size: Any
    level: Any
    cores: Any
    """How many cores of its host each task holds."""
    destination: Any
    """The place where an item must be in the end; -1 for none."""
    result_anywhere: Any
    """Results without such a place: they must lie somewhere in the end."""
    no_transfer: Any
    """Items that need no transfer: signals, and inputs of a platform that has them everywhere."""
    host_place: Any
    core_ptr: Any
    place_host: Any
    """The host whose own place this is; -1 for a site's common storage."""
    place_site: Any
    storage: Any
    route_ptr: Any
    route_links: Any
    route_bottleneck: Any
    route_seconds_per_byte: Any
    """Seconds per byte on the way from a place to another; inf where there is no route."""
    route_latency: Any
    next_hop: Any
    """[places * places] the next place on the way where transfers go link by link."""
    relay_cost: Any
    """[places * places] seconds per megabyte of that way; inf where there is none."""
    origin: int
    policy: Any


class CoordinatorState(NamedTuple):
    """What changes: who is where, what is queued, what is moving."""

    missing_inputs: Any
    """Inputs of each task that exist nowhere."""
    absent_inputs: Any
    """Inputs of each assigned task that are not at its host."""
    assigned: Any
    done: Any
    rank: Any
    inputs_requested: Any
    predicted: Any
    queue_next: Any
    queue_previous: Any
    startable_next: Any
    startable_previous: Any
    startable: Any
    run_host: Any
    run_core: Any
    run_start: Any
    duplicate_host: Any
    duplicate_core: Any
    duplicate_start: Any
    host_up: Any
    queue_head: Any
    """Queues of tasks by rank, one a host; the last holds ready tasks that nobody has."""
    queue_tail: Any
    queue_length: Any
    startable_head: Any
    """Tasks of each host's queue that can start now, by rank."""
    startable_tail: Any
    busy_cores: Any
    backlog: Any
    last_completion: Any
    core_task: Any
    exists: Any
    """Whether an item exists somewhere within reach."""
    copies: Any
    holder: Any
    pending_readers: Any
    """Tasks that read an item and have not begun."""
    delivered: Any
    replica: Any
    present: Any
    """[items * places] ABSENT, REQUESTED, MOVING or HERE."""
    needed: Any
    """[items * places] tasks assigned there that read it and have not finished."""
    relayed: Any
    """[items * places] whether an item passes through on its way; only where transfers go link by link."""
    place_up: Any
    storage_used: Any
    link_up: Any
    link_busy: Any
    request_head: Any
    """Queues of requests, one a link; the last for transfers over no limited link."""
    request_tail: Any
    request_item: Any
    request_source: Any
    request_target: Any
    request_rank: Any
    request_next: Any
    request_previous: Any
    request_queue: Any
    free_requests: Any
    transfer_item: Any
    transfer_source: Any
    transfer_target: Any
    transfer_rank: Any
    transfer_start: Any
    free_transfers: Any
    live_transfers: Any
    live_position: Any
    command_kind: Any
    command_a: Any
    command_b: Any
    command_c: Any
    to_replicate: Any
    """Items that wait to be replicated: a ring."""
    to_replicate_at: Any
    stack: Any
    count: Any


def make_static_problem(
    graph: Graph,
    platform: Platform,
    *,
    link_order: int = OUT_OF_ORDER,
    strict: bool = False,
    ahead: int = 2,
    steal: bool = False,
    duplicate: bool = False,
    replicate: int = 0,
    look: int = 256,
) -> StaticProblem:
    """The fixed arrays: O(graph + places^2)."""
    network = platform.network
    places = network.n_places
    if graph.n_items * places > MOST_CELLS:
        raise UsageError(
            f"{graph.n_items:,} items on {places:,} places are too many to follow one by one",
            where=graph.name,
            hint="simulate without --events and --faults, or on fewer hosts",
        )
    ptr, links, home, per_byte, latency = _pairs(platform)
    hosts_at = np.bincount(network.host_place, minlength=places)
    own = np.full(places, -1, np.int32)
    site_place = np.array([_is_common(platform, p) for p in range(places)], np.bool_)
    for h, p in enumerate(network.host_place.tolist()):
        if hosts_at[p] == 1 and not site_place[p]:
            own[p] = h
    cores = np.array([h.cores for h in platform.hosts], np.int64)
    policy = np.zeros(N_POLICIES, np.int64)
    policy[CONTENTION] = {"none": NONE, "fifo": FIFO, "fair": FAIR}[platform.contention]
    policy[LINK_ORDER] = link_order
    policy[STRICT] = strict
    policy[PREFETCH] = ahead
    policy[STEAL] = steal
    policy[DUPLICATE] = duplicate
    policy[REPLICATE] = replicate
    policy[LOOK] = look
    policy[RELAY] = platform.routing == "links"
    policy[LIMITED] = bool(np.isfinite(network.storage).any())
    hop, far = _hops(per_byte, latency, places) if policy[RELAY] else (np.zeros(1, np.int32), np.zeros(1))
    everywhere = (graph.producer == OUTSIDE) & (network.origin == EVERYWHERE)
    everywhere[list(graph.homes.places_by_item(graph, platform))] = False
    goal = _goals(graph, platform)
    return StaticProblem(
        read_ptr=graph.read_ptr,
        reads=graph.reads,
        write_ptr=graph.write_ptr,
        writes=graph.writes,
        reader_ptr=graph.reader_ptr,
        readers=graph.readers,
        producer=graph.producer,
        size=graph.size,
        level=graph.level,
        cores=graph.cores,
        destination=goal,
        result_anywhere=graph.result & (graph.producer != OUTSIDE) & (graph.size > 0) & (goal < 0),
        no_transfer=(graph.size == 0) | everywhere,
        host_place=network.host_place,
        core_ptr=np.concatenate(([0], np.cumsum(cores))).astype(np.int32),
        place_host=own,
        place_site=network.site,
        storage=network.storage,
        route_ptr=ptr,
        route_links=links,
        route_bottleneck=home,
        route_seconds_per_byte=per_byte,
        route_latency=latency,
        next_hop=hop,
        relay_cost=far,
        origin=int(network.origin),
        policy=policy,
    )


def _goals(graph: Graph, platform: Platform) -> Any:
    """What tasks make returns to the origin if it is a result, or to the first of the sites it is meant for."""
    network = platform.network
    goal = np.where(graph.result & (network.origin != EVERYWHERE), network.origin, -1)
    for item, places in graph.goals.places_by_item(graph, platform).items():
        goal[item] = places[0]
    goal[(graph.size == 0) | (graph.producer == OUTSIDE)] = -1
    return goal.astype(np.int32)


def _is_common(platform: Platform, place: int) -> bool:
    """Whether a place is a site's common storage (or a site for data only), not one host's own."""
    if platform.pairs is not None:
        return False
    site = platform.sites[int(platform.network.site[place])]
    return site.bandwidth is None or not site.hosts


def _pairs(platform: Platform) -> tuple[Any, Any, Any, Any, Any]:
    """Links, narrowest link, seconds per byte and latency of the way between any two places."""
    network = platform.network
    places = network.n_places
    ptr = np.zeros(places * places + 1, np.int64)
    home = np.full(places * places, -1, np.int32)
    per_byte = np.zeros(places * places)
    latency = np.zeros(places * places)
    links: list[int] = []
    for p in range(places):
        for q in range(places):
            at = p * places + q
            if p != q:
                bandwidth = network.bandwidth(p, q)
                per_byte[at] = 1.0 / bandwidth if bandwidth > 0 else np.inf
                latency[at] = network.latency(p, q)
                way = network.route(p, q) if bandwidth > 0 else []
                links.extend(way)
                if way:
                    home[at] = min(way, key=lambda link: (network.link_bandwidth[link], link))
            ptr[at + 1] = len(links)
    return ptr, np.array(links, np.int32), home, per_byte, latency


def _hops(per_byte: Any, latency: Any, places: int) -> tuple[Any, Any]:
    """The quickest ways over links between neighbours, for a megabyte each: O(places^3)."""
    cost = (latency + 1e6 * per_byte).reshape(places, places).copy()
    np.fill_diagonal(cost, 0.0)
    hop = np.tile(np.arange(places, dtype=np.int32), (places, 1))
    for middle in range(places):
        through = cost[:, middle, None] + cost[None, middle, :]
        better = through < cost
        cost = np.where(better, through, cost)
        hop = np.where(better, hop[:, middle, None], hop)
    return np.ascontiguousarray(hop.ravel()), np.ascontiguousarray(cost.ravel())


class _Copies(NamedTuple):
    """Which items exist, and where: see the fields of CoordinatorState."""

    exists: Any
    present: Any
    copies: Any
    holder: Any
    storage_used: Any


def _inputs_at_first(graph: Graph, platform: Platform, problem: StaticProblem) -> _Copies:
    """Items from outside lie at the origin, or at the homes that the program gives them."""
    places = platform.network.n_places
    present = np.zeros(graph.n_items * places, np.uint8)
    copies, holder = np.zeros(graph.n_items, np.int32), np.full(graph.n_items, -1, np.int32)
    used = np.zeros(len(problem.storage))
    if problem.origin >= 0:
        outside = np.flatnonzero((graph.producer == OUTSIDE) & ~problem.no_transfer)
        present[outside * places + problem.origin] = HERE
        copies[outside] = 1
        holder[outside] = problem.origin
    for item, homes in graph.homes.places_by_item(graph, platform).items():
        if not problem.no_transfer[item]:
            present[item * places : (item + 1) * places] = ABSENT
            present[item * places + np.array(homes)] = HERE
            copies[item] = len(homes)
            holder[item] = homes[0]
    lies = present.reshape(graph.n_items, places) == HERE
    np.add.at(used, platform.network.site, graph.size @ lies)
    return _Copies((graph.producer == OUTSIDE).astype(np.uint8), present, copies, holder, used)


def make_state(graph: Graph, platform: Platform, problem: StaticProblem) -> CoordinatorState:
    """Everything at its beginning: nothing assigned, inputs at the origin, every host there."""
    n, m = graph.n_tasks, graph.n_items
    hosts, links = len(platform.hosts), platform.network.n_links
    places = platform.network.n_places
    requests = len(graph.reads) + 2 * m + 16
    cores = int(problem.core_ptr[-1])

    def ints(length: int, value: int = -1) -> Any:
        return np.full(length, value, np.int32)

    first = _inputs_at_first(graph, platform, problem)
    reader = np.repeat(np.arange(n), np.diff(graph.read_ptr))
    missing = np.bincount(reader[first.exists[graph.reads] == 0], minlength=n).astype(np.int32)
    missing += graph.release > 0  # time is one more input
    state = CoordinatorState(
        missing_inputs=missing,
        absent_inputs=ints(n, 0),
        assigned=ints(n),
        done=np.zeros(n, np.uint8),
        rank=np.zeros(n),
        inputs_requested=np.zeros(n, np.uint8),
        predicted=np.zeros(n),
        queue_next=ints(n),
        queue_previous=ints(n),
        startable_next=ints(n),
        startable_previous=ints(n),
        startable=np.zeros(n, np.uint8),
        run_host=ints(n),
        run_core=ints(n),
        run_start=np.zeros(n),
        duplicate_host=ints(n),
        duplicate_core=ints(n),
        duplicate_start=np.zeros(n),
        host_up=np.ones(hosts, np.uint8),
        queue_head=ints(hosts + 1),
        queue_tail=ints(hosts + 1),
        queue_length=ints(hosts + 1, 0),
        startable_head=ints(hosts),
        startable_tail=ints(hosts),
        busy_cores=ints(hosts, 0),
        backlog=np.zeros(hosts),
        last_completion=np.zeros(hosts),
        core_task=ints(cores),
        exists=first.exists,
        copies=first.copies,
        holder=first.holder,
        pending_readers=np.diff(graph.reader_ptr).astype(np.int32),
        delivered=np.zeros(m, np.uint8),
        replica=ints(m),
        present=first.present,
        needed=np.zeros(m * places, np.int32),
        relayed=np.zeros(m * places if problem.policy[RELAY] else 1, np.uint8),
        place_up=np.ones(places, np.uint8),
        storage_used=first.storage_used,
        link_up=np.ones(links, np.uint8),
        link_busy=ints(links, 0),
        request_head=ints(links + 1),
        request_tail=ints(links + 1),
        request_item=ints(requests),
        request_source=ints(requests),
        request_target=ints(requests),
        request_rank=np.zeros(requests),
        request_next=ints(requests),
        request_previous=ints(requests),
        request_queue=ints(requests),
        free_requests=np.arange(requests, dtype=np.int32)[::-1].copy(),
        transfer_item=ints(requests),
        transfer_source=ints(requests),
        transfer_target=ints(requests),
        transfer_rank=np.zeros(requests),
        transfer_start=np.zeros(requests),
        free_transfers=np.arange(requests, dtype=np.int32)[::-1].copy(),
        live_transfers=ints(requests),
        live_position=ints(requests),
        command_kind=ints(4 * (cores + requests) + 64),
        command_a=ints(4 * (cores + requests) + 64),
        command_b=ints(4 * (cores + requests) + 64),
        command_c=ints(4 * (cores + requests) + 64),
        to_replicate=ints(m + 1),
        to_replicate_at=np.zeros(2, np.int64),
        stack=ints(len(graph.reads) + m + 2),
        count=np.zeros(N_COUNTS, np.int64),
    )
    ready = np.flatnonzero(missing == 0).astype(np.int32)
    _fill_pool(state, hosts, ready)
    return state


def _fill_pool(state: CoordinatorState, pool: int, ready: Any) -> None:
    if len(ready):
        state.queue_next[ready[:-1]] = ready[1:]
        state.queue_previous[ready[1:]] = ready[:-1]
        state.queue_head[pool], state.queue_tail[pool] = ready[0], ready[-1]
        state.queue_length[pool] = len(ready)
    state.count[WAITING] = len(ready)
