"""What waits for what in a plan: from its decisions alone, without its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.errors import BadPlan
from headrace.model.graph import OUTSIDE, Floats, Graph, Ints
from headrace.model.network import EVERYWHERE, Network
from headrace.model.plan import Plan

Edges = tuple[Ints, Ints]
Holders = Mapping[int, tuple[int, ...]]
TURN = -1.0
"""A lag, see `Dependencies`."""


class Dependencies(NamedTuple):
    """Tasks 0..n-1 and transfers n..n+k-1 with their successors (CSR) and numbers of predecessors."""

    ptr: Ints
    successors: Ints
    waits: Ints
    lag: Floats
    """For each successor: how long after the start of its predecessor it may start; inf: when that has finished; TURN:
    when its turn on shared links is over."""


@dataclass(frozen=True, eq=False)
class Needs:
    """What a plan's decisions say: who waits for which data, and the order of tasks on each core."""

    inputs: Edges
    """The task or transfer after which each task has each of its inputs, and the task."""
    sources: Edges
    """The task or transfer after which each transfer has its item at the source, and the transfer's node."""
    by_core: Ints
    """All tasks, those of a core together and in the order of their times."""


def needs(plan: Plan, holders: Holders) -> Needs:
    """O((tasks + reads + transfers) log)."""
    deliveries = _Deliveries(plan)
    return Needs(_inputs(plan, holders, deliveries), _sources(plan, holders, deliveries), by_core(plan))


def dependencies(plan: Plan, holders: Holders) -> Dependencies:
    """What must come before what: tasks on a core, inputs, sources of transfers, turns on links."""
    return in_lists(plan, needs(plan, holders))


def in_lists(plan: Plan, needed: Needs) -> Dependencies:
    """The same from what is needed: O((tasks + reads + transfers) log)."""
    later, earlier = one_after_another(plan, needed.by_core)
    edges = [(earlier, later), needed.inputs, needed.sources]
    if (plan.graph.cores > 1).any():
        edges.append(_held_cores(plan))
    lag = np.full(sum(len(pair[0]) for pair in edges), np.inf)
    if plan.platform.contention == "fifo" or plan.in_turn:
        first, second, busy = _link_order(plan)
        edges.append((first, second))
        lag = np.concatenate((lag, busy))
    total = plan.graph.n_tasks + len(plan.move_item)
    before = np.concatenate([pair[0] for pair in edges])
    after = np.concatenate([pair[1] for pair in edges])
    return _listed(before, after, lag, total)


def with_more(depends: Dependencies, before: Ints, after: Ints, lag: Floats) -> Dependencies:
    """The same with further edges."""
    total = len(depends.waits)
    source = np.repeat(np.arange(total, dtype=np.int32), np.diff(depends.ptr))
    return _listed(
        np.concatenate((source, before)),
        np.concatenate((depends.successors, after)),
        np.concatenate((depends.lag, lag)),
        total,
    )


def _listed(before: Ints, after: Ints, lag: Floats, total: int) -> Dependencies:
    ptr, number = as_lists(before, np.arange(len(before), dtype=np.int32), total)
    waits = np.bincount(after, minlength=total).astype(np.int32)
    return Dependencies(ptr, after[number], waits, lag[number])


def as_lists(key: Ints, value: Ints, keys: int) -> tuple[Ints, Ints]:
    """The values of each key, in their order, as CSR.

    >>> [a.tolist() for a in as_lists(np.array([1, 0, 1]), np.array([7, 8, 9]), 2)]
    [[0, 1, 3], [8, 7, 9]]
    """
    ptr = np.zeros(keys + 1, np.int32)
    np.cumsum(np.bincount(key, minlength=keys), out=ptr[1:])
    return ptr, value[np.argsort(key, kind="stable")]


def by_core(plan: Plan) -> Ints:
    """All tasks, those of a core together and in the order of their times."""
    ordered: Ints = np.lexsort((positions(plan), plan.finish, plan.start, plan.core, plan.host)).astype(
        np.int32
    )
    return ordered


def positions(plan: Plan) -> Ints:
    """The topological position of each task, which decides between tasks with the same times."""
    position = np.empty(plan.graph.n_tasks, np.int32)
    position[plan.graph.order] = np.arange(plan.graph.n_tasks)
    return position


def one_after_another(plan: Plan, ordered: Ints) -> tuple[Ints, Ints]:
    """Pairs of tasks that follow each other on a core, the later one first."""
    first, second = ordered[:-1], ordered[1:]
    same = (plan.host[first] == plan.host[second]) & (plan.core[first] == plan.core[second])
    return second[same], first[same]


def _held_cores(plan: Plan) -> Edges:
    """Tasks that hold several cores of a host wait for whoever had them last: cores are handed on in time order."""
    graph, position = plan.graph, positions(plan)
    before: list[int] = []
    after: list[int] = []
    for h, host in enumerate(plan.platform.hosts):
        here = np.flatnonzero(plan.host == h)
        if not (graph.cores[here] > 1).any():
            continue
        free = np.zeros(host.cores)
        last = np.full(host.cores, -1)
        for t in here[np.lexsort((position[here], plan.finish[here], plan.start[here]))].tolist():
            taken = np.argsort(free, kind="stable")[: graph.cores[t]]
            holders = np.unique(last[taken[last[taken] >= 0]]).tolist()
            before.extend(holders)
            after.extend([t] * len(holders))
            free[taken], last[taken] = plan.finish[t], t
    return np.array(before, np.int32), np.array(after, np.int32)


class _Deliveries:
    """Which transfer brings an item to a place."""

    def __init__(self, plan: Plan) -> None:
        self.places = plan.platform.network.n_places
        keys = plan.move_item.astype(np.int64) * self.places + plan.move_target
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, item: Ints, place: Ints) -> Ints:
        """The transfer for each (item, place), or -1."""
        wanted = item.astype(np.int64) * self.places + place
        at = np.searchsorted(self.keys, wanted)
        found = np.full(len(wanted), -1, np.int64)
        inside = at < len(self.keys)
        hit = np.flatnonzero(inside)[self.keys[at[inside]] == wanted[inside]]
        found[hit] = self.order[at[hit]]
        return found.astype(np.int32)


def _suppliers(
    plan: Plan, item: Ints, place: Ints, holders: Holders, deliveries: _Deliveries, what: str
) -> tuple[Ints, Ints]:
    """For each (item, place) the node after which the item is there: (index, node) of those that have one."""
    graph, network = plan.graph, plan.platform.network
    maker = graph.producer[item]
    made_here = maker != OUTSIDE
    made_here[made_here] = (network.host_place[plan.host[maker[made_here]]] == place[made_here]) | (
        graph.size[item[made_here]] == 0
    )
    there = (maker == OUTSIDE) & (
        (network.origin == EVERYWHERE) | (place == network.origin) | (graph.size[item] == 0)
    )
    if holders:
        held = {(i, p) for i, places in holders.items() for p in places}
        for at in np.flatnonzero((maker == OUTSIDE) & (graph.size[item] > 0)).tolist():
            i, p = int(item[at]), int(place[at])
            there[at] = (i, p) in held if holders.get(i) else there[at]
    delivery = deliveries.find(item, place)
    lacking = ~made_here & ~there & (delivery < 0)
    if lacking.any():
        at = int(np.flatnonzero(lacking)[0])
        raise BadPlan(
            f"item {graph.item_names[item[at]]!r} is needed at {network.place_names[place[at]]!r} {what}, "
            "but no transfer brings it",
            where=f"plan for {graph.name}",
            hint="run `headrace check` on the plan",
        )
    node = np.where(made_here, maker, np.where(there, -1, delivery + graph.n_tasks))
    index = np.flatnonzero(node >= 0)
    return index.astype(np.int32), node[index].astype(np.int32)


def _inputs(plan: Plan, holders: Holders, deliveries: _Deliveries) -> Edges:
    graph: Graph = plan.graph
    reader = np.repeat(np.arange(graph.n_tasks, dtype=np.int32), np.diff(graph.read_ptr))
    place = plan.platform.network.host_place[plan.host[reader]]
    index, node = _suppliers(plan, graph.reads, place, holders, deliveries, "by a task")
    return node, reader[index]


def _sources(plan: Plan, holders: Holders, deliveries: _Deliveries) -> Edges:
    index, node = _suppliers(plan, plan.move_item, plan.move_source, holders, deliveries, "for a transfer")
    return node, index + np.int32(plan.graph.n_tasks)


def _link_order(plan: Plan) -> tuple[Ints, Ints, Floats]:
    """Transfers that follow each other on a link, and for how long the first keeps it busy; as `Dependencies.lag`."""
    network, uses = plan.platform.network, link_uses(plan)
    seconds = uses.seconds
    if network.store_and_forward:
        seconds = np.full(len(uses.move), np.inf)
    elif plan.platform.contention == "fair":
        slow = network.slow(uses.link, route_bandwidth(plan)[uses.move])
        uses = LinkUses(uses.move[slow], uses.link[slow], uses.seconds[slow])
        seconds = _turn_seconds(plan)[uses.move]
    position = np.empty(len(plan.move_item), np.int64)
    position[transfer_order(plan)] = np.arange(len(position))
    by_time = np.lexsort((position[uses.move], uses.link))
    same = np.diff(uses.link[by_time]) == 0
    first, second = by_time[:-1][same], by_time[1:][same]
    n = np.int32(plan.graph.n_tasks)
    return uses.move[first] + n, uses.move[second] + n, seconds[first]


def _turn_seconds(plan: Plan) -> Floats:
    """How long after its start the turn of each transfer on shared links is over; as `Dependencies.lag`."""
    size, left = plan.graph.size[plan.move_item], after_turn(plan)
    lag: Floats = np.where(left >= size, size / route_bandwidth(plan), np.where(left > 0, TURN, np.inf))
    return lag


def after_turn(plan: Plan) -> Floats:
    """The bytes that the route of each transfer carries in its latency; when these are left, its turn is over.

    A turn on shared links is over as soon as it would be on fifo links if the transfer has them to itself.
    """
    network, bandwidth = plan.platform.network, route_bandwidth(plan)
    latency = network.route_latency[network.zone[plan.move_source], network.zone[plan.move_target]]
    limited = np.isfinite(bandwidth)
    return np.where(limited, latency, 0.0) * np.where(limited, bandwidth, 0.0)


def transfer_order(plan: Plan) -> Ints:
    """Transfers in the order in which they take their turns on every link.

    Of two with the same start the smaller comes first: it may be too small to keep a link busy at all.
    """
    size = plan.graph.size[plan.move_item]
    order: Ints = np.lexsort((np.arange(len(size)), plan.move_finish, size, plan.move_start)).astype(np.int32)
    return order


class LinkUses(NamedTuple):
    """Every use of a link by a transfer with bytes."""

    move: Ints
    link: Ints
    seconds: Floats
    """How long the link is busy, from the start of the transfer on."""


def link_uses(plan: Plan) -> LinkUses:
    """By transfer, in the order of the plan: O(transfers * links of a route)."""
    network = plan.platform.network
    ptr, links = routes(network, plan.move_source, plan.move_target)
    move = np.repeat(np.arange(len(plan.move_item), dtype=np.int32), np.diff(ptr))
    size: Floats = plan.graph.size[plan.move_item[move]]
    move, links, size = move[size > 0], links[size > 0], size[size > 0]
    if network.store_and_forward:
        return LinkUses(move, links, route_seconds(plan)[move])
    return LinkUses(move, links, size / network.link_bandwidth[links])


def route_seconds(plan: Plan) -> Floats:
    """How long each transfer takes if nothing else uses its links; signals take no time."""
    network, size = plan.platform.network, plan.graph.size[plan.move_item]
    zones = network.zone[plan.move_source], network.zone[plan.move_target]
    return np.where(size > 0, network.route_latency[zones] + size / route_bandwidth(plan), 0.0)


def route_bandwidth(plan: Plan) -> Floats:
    """The least bandwidth on the way of each transfer."""
    network = plan.platform.network
    zones = network.zone[plan.move_source], network.zone[plan.move_target]
    ports = np.minimum(network.port[plan.move_source], network.port[plan.move_target])
    least: Floats = np.minimum(ports, network.route_bandwidth[zones])
    return least


def routes(network: Network, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """The links from each source place to its target place, as CSR."""
    zones = len(network.route_bandwidth)
    at = network.zone[source].astype(np.int64) * zones + network.zone[target]
    first, count = network.route_ptr[at], network.route_ptr[at + 1] - network.route_ptr[at]
    way = np.repeat(np.arange(len(at), dtype=np.int32), count)
    inner = (
        network.route_links[
            np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(len(way))
        ]
        if len(way)
        else np.empty(0, np.int32)
    )
    out, into = network.out_port[source], network.in_port[target]
    everyone = np.arange(len(at), dtype=np.int32)
    ways = np.concatenate((everyone[out >= 0], way, everyone[into >= 0]))
    links = np.concatenate((out[out >= 0], inner, into[into >= 0]))
    return as_lists(ways, links.astype(np.int32), len(at))
