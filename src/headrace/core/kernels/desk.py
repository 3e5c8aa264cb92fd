"""What the coordinator knows, as arrays: the case (fixed) and the desk (queues and where data lies).

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
ABSENT, ASKED, MOVING, HERE = 0, 1, 2, 3

# Orders to the back end.
START, MOVE, CANCEL, CUT, DROP = 0, 1, 2, 3, 4

# Where counters lie in `Desk.count`.
DONE, WAITING, DELIVERED, REQUESTS, MOVES, ORDERS, STOLEN, COPIED, REPLICAS, REDONE, NEWS, OFF = range(12)
N_COUNTS = 12

# Where settings lie in `Case.rule`.
CONTENTION, LINK_ORDER, STRICT, AHEAD, STEAL, DUPLICATE, REPLICATE, LOOK, LIMITED, RELAY = range(10)
N_RULES = 10

NONE, FIFO, FAIR = 0, 1, 2
IN_ORDER, OUT_OF_ORDER, HYBRID = 0, 1, 2


class Case(NamedTuple):
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
    goal: Any
    """The place where an item must be in the end; -1 for none."""
    kept: Any
    """Results without such a place: they must lie somewhere in the end."""
    free: Any
    """Items that need no transfer: signals, and inputs of a platform that has them everywhere."""
    host_place: Any
    core_ptr: Any
    place_host: Any
    """The host whose own place this is; -1 for a site's common storage."""
    place_site: Any
    storage: Any
    pair_ptr: Any
    pair_links: Any
    pair_home: Any
    pair_seconds: Any
    """Seconds per byte on the way from a place to another; inf where there is no route."""
    pair_latency: Any
    hop: Any
    """[places * places] the next place on the way where transfers go link by link."""
    far: Any
    """[places * places] seconds per megabyte of that way; inf where there is none."""
    origin: int
    rule: Any


class Desk(NamedTuple):
    """What changes: who is where, what is queued, what is moving."""

    missing: Any
    """Inputs of each task that exist nowhere."""
    lacking: Any
    """Inputs of each assigned task that are not at its host."""
    assigned: Any
    done: Any
    rank: Any
    asked: Any
    predicted: Any
    q_next: Any
    q_prev: Any
    s_next: Any
    s_prev: Any
    startable: Any
    run_host: Any
    run_core: Any
    run_start: Any
    dup_host: Any
    dup_core: Any
    dup_start: Any
    up: Any
    q_head: Any
    """Queues of tasks by rank, one a host; the last holds ready tasks that nobody has."""
    q_tail: Any
    q_len: Any
    s_head: Any
    """Tasks of each host's queue that can start now, by rank."""
    s_tail: Any
    busy: Any
    backlog: Any
    corrected: Any
    core_task: Any
    born: Any
    """Whether an item exists somewhere within reach."""
    copies: Any
    holder: Any
    usage: Any
    """Tasks that read an item and have not begun."""
    delivered: Any
    replica: Any
    present: Any
    """[items * places] ABSENT, ASKED, MOVING or HERE."""
    want: Any
    """[items * places] tasks assigned there that read it and have not finished."""
    via: Any
    """[items * places] whether an item passes through on its way; only where transfers go link by link."""
    place_up: Any
    used: Any
    link_up: Any
    link_busy: Any
    r_head: Any
    """Queues of requests, one a link; the last for transfers over no limited link."""
    r_tail: Any
    req_item: Any
    req_source: Any
    req_target: Any
    req_rank: Any
    req_next: Any
    req_prev: Any
    req_home: Any
    req_free: Any
    mv_item: Any
    mv_source: Any
    mv_target: Any
    mv_rank: Any
    mv_start: Any
    mv_free: Any
    mv_live: Any
    mv_at: Any
    order_kind: Any
    order_a: Any
    order_b: Any
    order_c: Any
    wish: Any
    """Items that wait to be replicated: a ring."""
    wish_at: Any
    stack: Any
    count: Any


def make_case(
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
) -> Case:
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
    rule = np.zeros(N_RULES, np.int64)
    rule[CONTENTION] = {"none": NONE, "fifo": FIFO, "fair": FAIR}[platform.contention]
    rule[LINK_ORDER] = link_order
    rule[STRICT] = strict
    rule[AHEAD] = ahead
    rule[STEAL] = steal
    rule[DUPLICATE] = duplicate
    rule[REPLICATE] = replicate
    rule[LOOK] = look
    rule[RELAY] = platform.routing == "links"
    rule[LIMITED] = bool(np.isfinite(network.storage).any())
    hop, far = _hops(per_byte, latency, places) if rule[RELAY] else (np.zeros(1, np.int32), np.zeros(1))
    everywhere = (graph.producer == OUTSIDE) & (network.origin == EVERYWHERE)
    everywhere[list(graph.homes.places_by_item(graph, platform))] = False
    goal = _goals(graph, platform)
    return Case(
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
        goal=goal,
        kept=graph.result & (graph.producer != OUTSIDE) & (graph.size > 0) & (goal < 0),
        free=(graph.size == 0) | everywhere,
        host_place=network.host_place,
        core_ptr=np.concatenate(([0], np.cumsum(cores))).astype(np.int32),
        place_host=own,
        place_site=network.site,
        storage=network.storage,
        pair_ptr=ptr,
        pair_links=links,
        pair_home=home,
        pair_seconds=per_byte,
        pair_latency=latency,
        hop=hop,
        far=far,
        origin=int(network.origin),
        rule=rule,
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


class _Lying(NamedTuple):
    """Which items exist, and where: see the fields of Desk."""

    born: Any
    present: Any
    copies: Any
    holder: Any
    used: Any


def _inputs_at_first(graph: Graph, platform: Platform, case: Case) -> _Lying:
    """Items from outside lie at the origin, or at the homes that the program gives them."""
    places = platform.network.n_places
    present = np.zeros(graph.n_items * places, np.uint8)
    copies, holder = np.zeros(graph.n_items, np.int32), np.full(graph.n_items, -1, np.int32)
    used = np.zeros(len(case.storage))
    if case.origin >= 0:
        outside = np.flatnonzero((graph.producer == OUTSIDE) & ~case.free)
        present[outside * places + case.origin] = HERE
        copies[outside] = 1
        holder[outside] = case.origin
    for item, homes in graph.homes.places_by_item(graph, platform).items():
        if not case.free[item]:
            present[item * places : (item + 1) * places] = ABSENT
            present[item * places + np.array(homes)] = HERE
            copies[item] = len(homes)
            holder[item] = homes[0]
    lies = present.reshape(graph.n_items, places) == HERE
    np.add.at(used, platform.network.site, graph.size @ lies)
    return _Lying((graph.producer == OUTSIDE).astype(np.uint8), present, copies, holder, used)


def make_desk(graph: Graph, platform: Platform, case: Case) -> Desk:
    """Everything at its beginning: nothing assigned, inputs at the origin, every host there."""
    n, m = graph.n_tasks, graph.n_items
    hosts, links = len(platform.hosts), platform.network.n_links
    places = platform.network.n_places
    requests = len(graph.reads) + 2 * m + 16
    cores = int(case.core_ptr[-1])

    def ints(length: int, value: int = -1) -> Any:
        return np.full(length, value, np.int32)

    first = _inputs_at_first(graph, platform, case)
    reader = np.repeat(np.arange(n), np.diff(graph.read_ptr))
    missing = np.bincount(reader[first.born[graph.reads] == 0], minlength=n).astype(np.int32)
    missing += graph.release > 0  # time is one more input
    desk = Desk(
        missing=missing,
        lacking=ints(n, 0),
        assigned=ints(n),
        done=np.zeros(n, np.uint8),
        rank=np.zeros(n),
        asked=np.zeros(n, np.uint8),
        predicted=np.zeros(n),
        q_next=ints(n),
        q_prev=ints(n),
        s_next=ints(n),
        s_prev=ints(n),
        startable=np.zeros(n, np.uint8),
        run_host=ints(n),
        run_core=ints(n),
        run_start=np.zeros(n),
        dup_host=ints(n),
        dup_core=ints(n),
        dup_start=np.zeros(n),
        up=np.ones(hosts, np.uint8),
        q_head=ints(hosts + 1),
        q_tail=ints(hosts + 1),
        q_len=ints(hosts + 1, 0),
        s_head=ints(hosts),
        s_tail=ints(hosts),
        busy=ints(hosts, 0),
        backlog=np.zeros(hosts),
        corrected=np.zeros(hosts),
        core_task=ints(cores),
        born=first.born,
        copies=first.copies,
        holder=first.holder,
        usage=np.diff(graph.reader_ptr).astype(np.int32),
        delivered=np.zeros(m, np.uint8),
        replica=ints(m),
        present=first.present,
        want=np.zeros(m * places, np.int32),
        via=np.zeros(m * places if case.rule[RELAY] else 1, np.uint8),
        place_up=np.ones(places, np.uint8),
        used=first.used,
        link_up=np.ones(links, np.uint8),
        link_busy=ints(links, 0),
        r_head=ints(links + 1),
        r_tail=ints(links + 1),
        req_item=ints(requests),
        req_source=ints(requests),
        req_target=ints(requests),
        req_rank=np.zeros(requests),
        req_next=ints(requests),
        req_prev=ints(requests),
        req_home=ints(requests),
        req_free=np.arange(requests, dtype=np.int32)[::-1].copy(),
        mv_item=ints(requests),
        mv_source=ints(requests),
        mv_target=ints(requests),
        mv_rank=np.zeros(requests),
        mv_start=np.zeros(requests),
        mv_free=np.arange(requests, dtype=np.int32)[::-1].copy(),
        mv_live=ints(requests),
        mv_at=ints(requests),
        order_kind=ints(4 * (cores + requests) + 64),
        order_a=ints(4 * (cores + requests) + 64),
        order_b=ints(4 * (cores + requests) + 64),
        order_c=ints(4 * (cores + requests) + 64),
        wish=ints(m + 1),
        wish_at=np.zeros(2, np.int64),
        stack=ints(len(graph.reads) + m + 2),
        count=np.zeros(N_COUNTS, np.int64),
    )
    ready = np.flatnonzero(missing == 0).astype(np.int32)
    _fill_pool(desk, hosts, ready)
    return desk


def _fill_pool(desk: Desk, pool: int, ready: Any) -> None:
    if len(ready):
        desk.q_next[ready[:-1]] = ready[1:]
        desk.q_prev[ready[1:]] = ready[:-1]
        desk.q_head[pool], desk.q_tail[pool] = ready[0], ready[-1]
        desk.q_len[pool] = len(ready)
    desk.count[WAITING] = len(ready)
