"""The initial arrays of a run, built from a program, a platform and a policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.core.constraint_arrays import NO_CONSTRAINTS
from headrace.core.execution_policy import LINK_ORDERS, ExecutionPolicy
from headrace.core.state import (
    ABSENT,
    BLOCK,
    CONTENTION,
    CONTENTION_CODES,
    COPIES,
    DUPLICATE,
    HOSTS_UP,
    IDLE,
    IDLE_HOSTS,
    LIMITED,
    LINK_ORDER,
    LOOK,
    N_COUNTS,
    N_SETTINGS,
    PREFETCH,
    READY,
    RECORD_FIELDS,
    RELAY,
    REPLICATE,
    SCAN_LIMIT,
    STEAL,
    STRICT,
    Bytes,
    CoordinatorState,
    Longs,
    StaticProblem,
)
from headrace.core.transitions.copies import add_records, link_records
from headrace.model.graph import OUTSIDE, Floats, Graph, Ints
from headrace.model.needs import capacity
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Platform


def make_static_problem(graph: Graph, platform: Platform, policy: ExecutionPolicy) -> StaticProblem:
    """The arrays that do not change, without constraints: O(graph + P^2 * length of a route) for P places."""
    network = platform.network
    routes = make_routes(platform)
    settings = _settings(platform, policy)
    relays = platform.routing == "links"
    hop, cost = _relays(routes, network.n_places) if relays else (np.zeros(1, np.int32), np.zeros(1))
    everywhere = (graph.producer == OUTSIDE) & (network.origin == EVERYWHERE)
    everywhere[list(graph.initial_locations.places_by_item(graph, platform))] = False
    destination = _destinations(graph, platform)
    produced = graph.producer != OUTSIDE
    cores = np.array([h.cores for h in platform.hosts], np.int64)
    return StaticProblem(
        read_ptr=graph.read_ptr,
        reads=graph.reads,
        write_ptr=graph.write_ptr,
        writes=graph.writes,
        reader_ptr=graph.reader_ptr,
        readers=graph.readers,
        producer=graph.producer,
        level=graph.level,
        cores=graph.cores,
        destination=destination,
        result_anywhere=graph.result & produced & (graph.size > 0) & (destination < 0),
        no_transfer=(graph.size == 0) | everywhere,
        host_place=network.host_place,
        core_ptr=np.concatenate(([0], np.cumsum(cores))).astype(np.int32),
        place_host=_own_disks(platform),
        place_site=network.site,
        storage=network.storage,
        route_ptr=routes.ptr,
        route_links=routes.links,
        route_turns=routes.turns,
        route_bottleneck=routes.bottleneck,
        route_seconds_per_byte=routes.seconds_per_byte,
        route_latency=routes.latency,
        next_hop=hop,
        relay_cost=cost,
        longest_route=max(1, int(np.diff(routes.ptr).max(initial=0))),
        origin=int(network.origin),
        policy=settings,
        **NO_CONSTRAINTS._asdict(),
        need_amount=np.ascontiguousarray(graph.needs.amount) if graph.needs.names else np.zeros((0, 0)),
        need_most=np.ascontiguousarray(capacity(platform, graph.needs.names)),
    )


def _settings(platform: Platform, policy: ExecutionPolicy) -> Longs:
    settings = np.zeros(N_SETTINGS, np.int64)
    settings[CONTENTION] = CONTENTION_CODES[platform.contention]
    settings[LINK_ORDER] = LINK_ORDERS[policy.link_order]
    settings[STRICT] = policy.strict
    settings[PREFETCH] = max(1, policy.prefetch_depth)
    settings[STEAL] = policy.steal
    settings[DUPLICATE] = policy.duplicate
    settings[REPLICATE] = policy.replicate
    settings[LOOK] = SCAN_LIMIT
    settings[LIMITED] = bool(np.isfinite(platform.network.storage).any())
    settings[RELAY] = platform.routing == "links"
    return settings


def _destinations(graph: Graph, platform: Platform) -> Ints:
    """Destination of each result: the origin, or the first site that the program names for it."""
    network = platform.network
    destination = np.where(graph.result & (network.origin != EVERYWHERE), network.origin, -1)
    for item, places in graph.destinations.places_by_item(graph, platform).items():
        destination[item] = places[0]
    destination[(graph.size == 0) | (graph.producer == OUTSIDE)] = -1
    return destination.astype(np.int32)


def _own_disks(platform: Platform) -> Ints:
    """The host that owns each place; -1 for storage shared by the hosts of a site."""
    network = platform.network
    hosts_at = np.bincount(network.host_place, minlength=network.n_places)
    own = np.full(network.n_places, -1, np.int32)
    for host, place in enumerate(network.host_place.tolist()):
        if hosts_at[place] == 1 and not is_shared_storage(platform, place):
            own[place] = host
    return own


def is_shared_storage(platform: Platform, place: int) -> bool:
    """Whether a place is the shared storage of a site (or a storage-only site), not a host's own disk."""
    if platform.pairs is not None:
        return False
    site = platform.sites[int(platform.network.site[place])]
    return site.bandwidth is None or not site.hosts


class Routes(NamedTuple):
    """Routes between all places, as in `StaticProblem`."""

    ptr: Longs
    links: Ints
    turns: Bytes
    bottleneck: Ints
    seconds_per_byte: Floats
    latency: Floats


def make_routes(platform: Platform) -> Routes:
    """The route between every two places: port out, links between the zones, port in. O(P^2 * length of a route)."""
    network = platform.network
    places, zones = network.n_places, len(network.route_bandwidth)
    source, target = (axis.ravel() for axis in np.indices((places, places), np.int32))
    between = network.zone[source].astype(np.int64) * zones + network.zone[target]
    port = np.minimum(network.port[source], network.port[target])
    bandwidth = np.minimum(port, network.route_bandwidth.ravel()[between])
    elsewhere = source != target
    exists = elsewhere & (bandwidth > 0)
    with np.errstate(divide="ignore"):
        seconds_per_byte = np.where(elsewhere, np.where(bandwidth > 0, 1.0 / bandwidth, np.inf), 0.0)
    latency = np.where(elsewhere, network.route_latency.ravel()[between], 0.0)
    has_out, has_in = exists & (network.out_port[source] >= 0), exists & (network.in_port[target] >= 0)
    zone_first = network.route_ptr[between].astype(np.int64)
    zone_count = np.where(exists, network.route_ptr[between + 1] - zone_first, 0)
    count = has_out + zone_count + has_in
    ptr = np.concatenate(([0], np.cumsum(count, dtype=np.int64)))
    links = np.empty(int(ptr[-1]), np.int32)
    links[ptr[:-1][has_out]] = network.out_port[source[has_out]]
    links[ptr[1:][has_in] - 1] = network.in_port[target[has_in]]
    offset = np.arange(int(zone_count.sum())) - np.repeat(np.cumsum(zone_count) - zone_count, zone_count)
    links[np.repeat(ptr[:-1] + has_out, zone_count) + offset] = network.route_links[
        np.repeat(zone_first, zone_count) + offset
    ]
    bottleneck = _bottlenecks(ptr, links, network.link_bandwidth)
    turns = np.ones(len(links), np.uint8)
    if platform.contention == "fair" and not network.store_and_forward:
        turns[:] = network.slow(links, np.repeat(bandwidth, count))
    return Routes(ptr, links, turns, bottleneck, seconds_per_byte, latency)


def _bottlenecks(ptr: Longs, links: Ints, bandwidth: Floats) -> Ints:
    """The narrowest link of each route, ties to the lowest number; -1 for a route without links."""
    narrowest = np.full(len(ptr) - 1, -1, np.int32)
    some = np.flatnonzero(np.diff(ptr) > 0)
    if len(some):
        first, width = ptr[some], bandwidth[links]
        least = np.repeat(np.minimum.reduceat(width, first), np.diff(ptr)[some])
        narrow = np.where(width == least, links, np.iinfo(np.int32).max)
        narrowest[some] = np.minimum.reduceat(narrow, first)
    return narrowest


def _relays(routes: Routes, places: int) -> tuple[Ints, Floats]:
    """Fastest relay paths over direct routes, by the time for one megabyte: O(P^3)."""
    cost = (routes.latency + 1e6 * routes.seconds_per_byte).reshape(places, places).copy()
    np.fill_diagonal(cost, 0.0)
    hop = np.tile(np.arange(places, dtype=np.int32), (places, 1))
    for middle in range(places):
        through = cost[:, middle, None] + cost[None, middle, :]
        better = through < cost
        cost = np.where(better, through, cost)
        hop = np.where(better, hop[:, middle, None], hop)
    return np.ascontiguousarray(hop.ravel()), np.ascontiguousarray(cost.ravel())


class _InitialCopies(NamedTuple):
    """Copies that exist before the run, ordered by item and place, and counters derived from them."""

    item: Ints
    place: Ints
    copy_count: Ints
    holder: Ints
    storage_used: Floats


def _initial_copies(graph: Graph, platform: Platform, problem: StaticProblem, size: Floats) -> _InitialCopies:
    """Items from outside are at the origin, or at the initial locations that the program names."""
    moves = (graph.producer == OUTSIDE) & ~problem.no_transfer
    named = graph.initial_locations.places_by_item(graph, platform)
    at_origin = moves & (problem.origin >= 0)
    at_origin[list(named)] = False
    lists = [np.flatnonzero(at_origin).astype(np.int32)]
    places = [np.full(len(lists[0]), problem.origin, np.int32)]
    for item, where in named.items():
        if not problem.no_transfer[item]:
            distinct = list(dict.fromkeys(where))  # hosts with shared storage are one place
            lists.append(np.full(len(distinct), item, np.int32))
            places.append(np.array(distinct, np.int32))
    items, place = np.concatenate(lists), np.concatenate(places)
    holder = np.full(graph.n_items, -1, np.int32)
    holder[items[::-1]] = place[::-1]  # the first named place
    used = np.bincount(problem.place_site[place], size[items], minlength=len(problem.storage))
    return _InitialCopies(
        items,
        place,
        np.bincount(items, minlength=graph.n_items).astype(np.int32),
        holder,
        used.astype(np.float64),
    )


def make_state(
    graph: Graph, platform: Platform, problem: StaticProblem, measured: Floats | None = None
) -> CoordinatorState:
    """The start of a run: nothing is assigned, inputs are in their initial locations, every host is up.

    `measured` are the real sizes of items, of which those of inputs are known from the start.
    """
    size = graph.size.copy() if measured is None else np.where(graph.producer < 0, measured, graph.size)
    n, m = graph.n_tasks, graph.n_items
    hosts, links = len(platform.hosts), platform.network.n_links
    requests = len(graph.reads) + 2 * m + 16
    cores = int(problem.core_ptr[-1])
    first = _initial_copies(graph, platform, problem, size)
    exists = (graph.producer == OUTSIDE).astype(np.uint8)
    reader = np.repeat(np.arange(n), np.diff(graph.read_ptr))
    missing = np.bincount(reader[exists[graph.reads] == 0], minlength=n).astype(np.int32)
    missing += graph.release > 0
    records = _copy_records(len(graph.reads) + 2 * m + 64, m)
    state = CoordinatorState(
        missing_inputs=missing,
        absent_inputs=_ints(n, 0),
        assigned=_ints(n),
        done=_flags(n),
        rank=np.zeros(n),
        reserved=np.zeros(n),
        in_order=_flags(n),
        inputs_requested=_flags(n),
        predicted=np.zeros(n),
        queue_next=_ints(n),
        queue_previous=_ints(n),
        startable_next=_ints(n),
        startable_previous=_ints(n),
        startable=_flags(n),
        run_host=_ints(n),
        run_core=_ints(n),
        run_start=np.zeros(n),
        duplicate_host=_ints(n),
        duplicate_core=_ints(n),
        duplicate_start=np.zeros(n),
        ran_on=_ints(n),
        ran_for=np.zeros(n),
        gate_running=np.zeros(0, np.int64),
        need_used=np.zeros(problem.need_most.size),
        host_up=np.ones(hosts, np.uint8),
        queue_head=_ints(hosts + 1),
        queue_tail=_ints(hosts + 1),
        queue_length=_ints(hosts + 1, 0),
        startable_head=_ints(hosts),
        startable_tail=_ints(hosts),
        busy_cores=_ints(hosts, 0),
        load=np.full(hosts, IDLE, np.uint8),
        idle_hosts=np.arange(hosts, dtype=np.int32),
        crowded_hosts=_ints(hosts),
        load_position=np.arange(hosts, dtype=np.int32),
        backlog=np.zeros(hosts),
        running=_ints(hosts, 0),
        start_sum=np.zeros(hosts),
        last_completion=np.zeros(hosts),
        core_task=_ints(cores),
        dirty_host=_flags(hosts),
        dirty_host_block=_ints(hosts // BLOCK + 1, 0),
        exists=exists,
        copy_count=first.copy_count,
        holder=first.holder,
        pending_readers=np.diff(graph.reader_ptr).astype(np.int32),
        delivered=_flags(m),
        replica=_ints(m),
        size=size,
        **records,
        place_up=np.ones(platform.network.n_places, np.uint8),
        storage_used=first.storage_used,
        disk_head=np.zeros(len(problem.storage), np.int64),
        disk_end=np.zeros(len(problem.storage), np.int64),
        disk_task=_ints(0),
        disk_item=_ints(0),
        disk_place=_ints(0),
        disk_position=_ints(n),
        link_up=np.ones(links, np.uint8),
        link_busy=_ints(links, 0),
        link_holder=_ints(links),
        **_request_arrays(requests, links, problem.longest_route),
        **_transfer_arrays(requests),
        command_kind=_ints(4 * (cores + requests) + 64),
        command_subject=_ints(4 * (cores + requests) + 64),
        command_from=_ints(4 * (cores + requests) + 64),
        command_to=_ints(4 * (cores + requests) + 64),
        to_replicate=_ints(m + 1),
        to_replicate_at=np.zeros(2, np.int64),
        stack=_ints(len(graph.reads) + m + 2),
        counters=np.zeros(N_COUNTS, np.int64),
    )
    state.counters[IDLE_HOSTS] = state.counters[HOSTS_UP] = hosts
    _add_initial_records(state, first)
    _fill_pool(state, hosts, np.flatnonzero(missing == 0).astype(np.int32))
    return state


def _ints(length: int, value: int = -1) -> Ints:
    return np.full(length, value, np.int32)


def _flags(length: int) -> Bytes:
    return np.zeros(length, np.uint8)


def _copy_records(capacity: int, items: int) -> dict[str, Any]:
    table = 1 << max(4, int(2 * capacity - 1).bit_length())
    return {
        "item_copies": _ints(items),
        "copy_item": _ints(capacity),
        "copy_place": _ints(capacity),
        "copy_status": _flags(capacity),
        "copy_needed": _ints(capacity, 0),
        "copy_relayed": _flags(capacity),
        "copy_next": _ints(capacity),
        "copy_request": _ints(capacity),
        "copy_outgoing": _ints(capacity),
        "copy_table": _ints(table),
    }


def _request_arrays(requests: int, links: int, longest_route: int) -> dict[str, Any]:
    queues = links + 1
    return {
        "request_head": _ints(queues),
        "request_tail": _ints(queues),
        "request_item": _ints(requests),
        "request_source": _ints(requests),
        "request_target": _ints(requests),
        "request_rank": np.zeros(requests),
        "request_next": _ints(requests),
        "request_previous": _ints(requests),
        "request_queue": _ints(requests),
        "request_mode": _flags(requests),
        "outgoing_next": _ints(requests),
        "outgoing_previous": _ints(requests),
        "free_requests": np.arange(requests, dtype=np.int32)[::-1].copy(),
        "order_head": _ints(queues),
        "order_tail": _ints(queues),
        "order_next": _ints(requests * longest_route),
        "order_previous": _ints(requests * longest_route),
        "dirty_queue": _flags(queues),
        "dirty_queue_block": _ints(queues // BLOCK + 1, 0),
    }


def _transfer_arrays(transfers: int) -> dict[str, Any]:
    return {
        "transfer_item": _ints(transfers),
        "transfer_source": _ints(transfers),
        "transfer_target": _ints(transfers),
        "transfer_rank": np.zeros(transfers),
        "transfer_start": np.zeros(transfers),
        "transfer_in_turn": _flags(transfers),
        "free_transfers": np.arange(transfers, dtype=np.int32)[::-1].copy(),
        "live_transfers": _ints(transfers),
        "live_position": _ints(transfers),
    }


def _add_initial_records(state: CoordinatorState, first: _InitialCopies) -> None:
    add_records(
        state.item_copies, state.copy_item, state.copy_place, state.copy_status, state.copy_next, state.copy_table,
        first.item, first.place,
    )  # fmt: skip
    state.counters[COPIES] = len(first.item)


def _fill_pool(state: CoordinatorState, pool: int, ready: Ints) -> None:
    if len(ready):
        state.queue_next[ready[:-1]] = ready[1:]
        state.queue_previous[ready[1:]] = ready[:-1]
        state.queue_head[pool], state.queue_tail[pool] = ready[0], ready[-1]
        state.queue_length[pool] = len(ready)
    state.counters[READY] = len(ready)


def with_more_copy_records(state: CoordinatorState, spare: int) -> CoordinatorState:
    """The same state with room for `spare` more copy records: drops dead records and grows the arrays if necessary."""
    used = int(state.counters[COPIES])
    alive = state.copy_status[:used] != ABSENT
    alive |= (
        (state.copy_needed[:used] > 0) | (state.copy_relayed[:used] > 0) | (state.copy_outgoing[:used] >= 0)
    )
    kept = np.flatnonzero(alive)
    capacity = len(state.copy_item)
    while len(kept) + spare > 0.75 * capacity:
        capacity *= 2
    records = _copy_records(capacity, len(state.item_copies))
    for name in RECORD_FIELDS:
        records[name][: len(kept)] = getattr(state, name)[kept]
    link_records(
        records["item_copies"], records["copy_item"], records["copy_place"], records["copy_next"],
        records["copy_table"], len(kept),
    )  # fmt: skip
    state.counters[COPIES] = len(kept)
    return state._replace(**records)
